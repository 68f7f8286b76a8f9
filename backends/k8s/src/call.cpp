// Part of hypertune::k8s: one call with its attempts.
#include "engine.hpp"
#include "status.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace hypertune::inline v0::k8s::detail {

namespace {

const char* method_of(Method method) {
  switch (method) {
    case Method::get: return "GET";
    case Method::post: return "POST";
    case Method::put: return "PUT";
    case Method::patch: return "PATCH";
    case Method::remove: return "DELETE";
  }
  return "GET";
}

const char* type_of(Body body) {
  switch (body) {
    case Body::json: return "application/json";
    case Body::merge_patch: return "application/merge-patch+json";
    case Body::strategic_merge: return "application/strategic-merge-patch+json";
    case Body::json_patch: return "application/json-patch+json";
    case Body::apply: return "application/apply-patch+yaml";
  }
  return "application/json";
}

}  // namespace

asio::awaitable<Attempt> Engine::attempt(const Request& request, double seconds, std::uint64_t refused) {
  const double until = now() + seconds;
  const auto credential = co_await this->credential(refused);
  Attempt attempt;
  attempt.generation = credential->generation;
  RequestText text = text_of(method_of(request.method), target_of(request.path, request.query));
  if (!request.body.empty() || request.method != Method::get)
    text.content_type = type_of(request.body.empty() ? Body::json : request.type);
  text.body = request.body;
  const std::string bytes = bytes_of(std::move(text), *credential);
  Pool::Place place = co_await pool_.enter();
  Dialed dialed = co_await pool_.connection(*credential, std::min(until - now(), options_.connect));
  if (!dialed.wire) {
    attempt.outcome = std::move(dialed.failure);
    co_return attempt;
  }
  ResponseReader reader(options_.max_answer);
  dialed.wire->expires_in(std::max(until - now(), 0.01));
  Outcome& outcome = attempt.outcome;
  try {
    outcome.trouble = co_await exchange(*dialed.wire, bytes, reader);
    outcome.kind = outcome.trouble.empty() ? Outcome::Kind::answered : Outcome::Kind::lost;
  } catch (const Error& e) {
    outcome.kind = Outcome::Kind::impossible;
    outcome.trouble = e.what();
  }
  if (outcome.kind != Outcome::Kind::answered) {
    dialed.wire->close();
    co_return attempt;
  }
  outcome.status = reader.status();
  outcome.retry_after = reader.retry_after();
  attempt.body = std::move(reader.body());
  if (reader.keep_alive() && dialed.wire->socket().is_open())
    pool_.keep(std::move(dialed.wire));
  else
    dialed.wire->close();
  co_return attempt;
}

asio::awaitable<Outcome> Engine::stream(const std::string& target, double seconds, ResponseReader& reader,
                                        const std::function<void()>& headed) {
  const auto credential = co_await this->credential();
  const std::string bytes = bytes_of(text_of("GET", target), *credential);
  Dialed dialed = co_await dial(credential, options_.connect);
  if (!dialed.wire) co_return std::move(dialed.failure);
  Outcome outcome;
  dialed.wire->expires_in(seconds);
  try {
    outcome.trouble = co_await exchange(*dialed.wire, bytes, reader, headed);
    outcome.kind = reader.headed() ? Outcome::Kind::answered : Outcome::Kind::lost;
  } catch (const StreamAbandoned&) { outcome.kind = Outcome::Kind::answered; } catch (const Error& e) {
    outcome.kind = Outcome::Kind::impossible;
    outcome.trouble = e.what();
  }
  dialed.wire->close();
  if (reader.headed()) {
    outcome.status = reader.status();
    outcome.retry_after = reader.retry_after();
  }
  // Renew the credentials for the next attempt.
  if (outcome.status == 401) co_await this->credential(credential->generation);
  co_return outcome;
}

asio::awaitable<Answer> Engine::call(Request request) {
  const std::string doing = fmt::format("{} {}", method_of(request.method), request.path);
  const double until = now() + request.deadline;
  Retry retry(request.method, request.named, until, options_.max_backoff);
  std::uint64_t refused = 0;
  for (;;) {
    const bool in_time = co_await turn(until - now());
    if (!in_time)
      throw ApiError(0, "",
                     fmt::format("{:g} calls a second are allowed, and others come before this one: it would begin "
                                 "after its deadline of {:g} s ({})",
                                 options_.rate, request.deadline, doing));
    Attempt attempt = co_await this->attempt(request, std::min(options_.attempt, until - now()), refused);
    const Outcome& outcome = attempt.outcome;
    const bool success = outcome.kind == Outcome::Kind::answered && outcome.status >= 200 && outcome.status < 300;
    if (success) {
      Answer answer;
      answer.status = outcome.status;
      answer.body = std::move(attempt.body);
      co_return answer;
    }
    const bool exists = outcome.status == 409 && reason_of(attempt.body) == "AlreadyExists";
    const auto next = retry.after(outcome, exists, now(), uniform());
    if (next.kind == Retry::Decision::Kind::existed) {
      Answer answer;
      answer.status = outcome.status;
      answer.body = std::move(attempt.body);
      answer.existed = true;
      co_return answer;
    }
    if (next.kind == Retry::Decision::Kind::renew) {
      refused = attempt.generation;
      continue;
    }
    if (next.kind == Retry::Decision::Kind::done) {
      if (outcome.kind == Outcome::Kind::answered) throw api_error(outcome.status, attempt.body, doing, access_.origin);
      throw ApiError(0, "", fmt::format("{} ({})", outcome.trouble, doing));
    }
    co_await sleep_for(io_, next.pause);
  }
}

}  // namespace hypertune::inline v0::k8s::detail
