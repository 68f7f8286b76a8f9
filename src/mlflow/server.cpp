#include "server.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::detail::mlflow {

namespace {

namespace json = boost::json;

// A text that the answer must have.
std::string required(const json::value& value, const char* pointer) {
  const auto* found = value_at(value, pointer);
  if (found == nullptr || !found->is_string())
    throw Refused(200, fmt::format("its answer has no {}: is it an MLflow server?", pointer));
  return std::string(found->as_string());
}

const char* trial_tag = "hypertune.trial";
const char* identity_tag = "hypertune.id";

}  // namespace

net::Url address_of_server(const std::string& uri) {
  auto url = net::parse_url(uri);
  if (!url || !url->user.empty() || (url->scheme != "http" && url->scheme != "https"))
    fail(Errc::usage, "'{}' is no address of an MLflow server: write it as http://localhost:5000", uri);
#ifndef HYPERTUNE_NET_TLS
  if (url->scheme == "https")
    fail(Errc::usage, "'{}': this hypertune was built without OpenSSL, which https needs", uri);
#endif
  return *std::move(url);
}

Server::Server(const MlflowOptions& options, const std::string& authorization)
    : http_(address_of_server(options.uri),
            authorization.empty() ? net::Headers() : net::Headers{{"Authorization", authorization}}) {}

json::value Server::call(std::string_view method, const std::string& body) {
  const net::Answer answer = http_.request(fmt::format("/api/2.0/mlflow/{}", method), body, limit_());
  boost::system::error_code wrong;
  json::value value = json::parse(answer.body, wrong);
  constexpr unsigned not_implemented = 501;  // and will not be later
  if (answer.status == 408 || answer.status == 429 || (answer.status >= 500 && answer.status != not_implemented))
    throw Unreachable(fmt::format("it answered {}", answer.status));
  if (answer.status != 200) {
    const std::string text = wrong ? std::string() : detail::text_at(value, "/message");
    constexpr std::size_t most = 300;
    throw Refused(static_cast<unsigned>(answer.status),
                  text.empty() ? fmt::format("status {}", answer.status) : cut(text, most));
  }
  if (wrong) throw Refused(static_cast<unsigned>(answer.status), "its answer is no JSON: is it an MLflow server?");
  return value;
}

bool Server::open(const std::string& experiment, const std::string& identity) {
  identity_ = identity;
  const auto find = [&]() -> std::string {
    std::string encoded;
    for (const char c : experiment) encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    const auto found = call("experiments/get-by-name?experiment_name=" + encoded, "");
    if (required(found, "/experiment/lifecycle_stage") == "deleted")
      throw Refused(200, fmt::format("its experiment '{}' was deleted: restore it, or name another one", experiment));
    return required(found, "/experiment/experiment_id");
  };
  std::string id;
  try {
    id = find();
  } catch (const Refused& refused) {
    if (refused.status != 404) throw;
    try {
      const auto body = JsonWriter(JsonFor::file).begin_object().member("name", experiment).end_object().take();
      id = required(call("experiments/create", body), "/experiment_id");
    } catch (const Refused& also) {
      if (also.status != 400) throw;
      id = find();  // another client has just created it
    }
  }
  experiment_ = id;
  try {
    find_runs();
  } catch (...) {
    close();
    throw;
  }
  return runs_.contains(parent_run);
}

void Server::find_runs() {
  runs_.clear();
  std::string page;
  do {
    JsonWriter body(JsonFor::file);
    body.begin_object().key("experiment_ids").begin_array().value(experiment_).end_array().member("max_results", 1000);
    body.member("filter", fmt::format("tags.`{}` = '{}'", identity_tag, identity_));
    if (!page.empty()) body.member("page_token", page);
    const json::value found = call("runs/search", body.end_object().take());
    page = detail::text_at(found, "/next_page_token");
    const auto* runs = array_in(found, "runs");
    if (runs == nullptr) break;
    for (const auto& run : *runs) {
      const auto* tags = array_at(run, "/data/tags");
      if (tags == nullptr) continue;
      for (const auto& tag : *tags) {
        if (required(tag, "/key") != trial_tag) continue;
        const auto trial = detail::parse_number<TrialId>(required(tag, "/value")).value_or(parent_run);
        runs_.try_emplace(trial, required(run, "/info/run_id"));
      }
    }
  } while (!page.empty());
}

const std::string& Server::run_of(TrialId trial, const RunUpdate& update) {
  if (const auto found = runs_.find(trial); found != runs_.end()) return found->second;
  JsonWriter body(JsonFor::file);
  body.begin_object().member("experiment_id", experiment_).member("run_name", update.name);
  body.member("start_time", update.created).key("tags").begin_array();
  const auto tag = [&](const char* name, const std::string& value) {
    body.begin_object().member("key", name).member("value", value).end_object();
  };
  tag(identity_tag, identity_);
  tag(trial_tag, trial == parent_run ? "experiment" : fmt::to_string(trial));
  if (trial != parent_run)
    if (const auto parent = runs_.find(parent_run); parent != runs_.end()) tag("mlflow.parentRunId", parent->second);
  const auto answer = call("runs/create", body.end_array().end_object().take());
  return runs_.emplace(trial, required(answer, "/run/info/run_id")).first->second;
}

void Server::send(TrialId trial, const RunUpdate& update) {
  const std::string& run = run_of(trial, update);
  for (const auto& body : log_batches(run, update)) call("runs/log-batch", body);
  if (update.status.empty()) return;
  JsonWriter body(JsonFor::file);
  body.begin_object().member("run_id", run).member("status", update.status);
  if (update.ended) body.member("end_time", *update.ended);
  call("runs/update", body.end_object().take());
}

}  // namespace hypertune::inline v0::detail::mlflow
