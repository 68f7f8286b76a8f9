// Part of hypertune::k8s.
#include "engine.hpp"
#include "status.hpp"
#include "watch_machine.hpp"

#include <hypertune/k8s/watch.hpp>

#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include <limits>

namespace hypertune::inline v0::k8s {

namespace detail {

struct WatchTask {
  WatchTask(std::shared_ptr<Client::State> e, WatchOptions options, WatchHandler handler)
      : engine(std::move(e)), machine(std::move(options), std::move(handler)) {}

  asio::awaitable<void> run();
  asio::awaitable<void> list(Query query);
  asio::awaitable<void> stream(Query query, double seconds);
  std::string doing(const char* verb) const { return fmt::format("{} {}", verb, machine.options().path); }

  std::shared_ptr<Client::State> engine;
  WatchMachine machine;
  Task task;
  std::uint64_t refused = 0;  // generation of the credentials that the server rejected
};

asio::awaitable<void> WatchTask::run() {
  for (;;) {
    auto action = machine.next(engine->uniform());
    if (action.kind == WatchMachine::Action::Kind::pause) {
      co_await sleep_for(engine->io(), action.seconds);
      continue;
    }
    // Lists and streams count against the rate limit; they may wait for their turn without a time limit.
    co_await engine->turn(std::numeric_limits<double>::infinity());
    std::string trouble;
    try {
      if (action.kind == WatchMachine::Action::Kind::list)
        co_await list(std::move(action.query));
      else
        co_await stream(std::move(action.query), action.seconds);
    } catch (const Error& e) { trouble = e.what(); }
    if (!trouble.empty()) machine.failed(0, trouble);
  }
}

asio::awaitable<void> WatchTask::list(Query query) {
  Request request;
  request.path = machine.options().path;
  request.query = std::move(query);
  Attempt attempt = co_await engine->attempt(request, engine->options().attempt, refused);
  refused = attempt.outcome.status == 401 ? attempt.generation : 0;
  const Outcome& outcome = attempt.outcome;
  if (outcome.kind != Outcome::Kind::answered)
    machine.failed(0, outcome.trouble);
  else if (outcome.status == 200)
    machine.listed(attempt.body);
  else
    machine.failed(outcome.status, api_error(outcome.status, attempt.body, doing("list")).what(), outcome.retry_after);
}

asio::awaitable<void> WatchTask::stream(Query query, double seconds) {
  const std::string target = target_of(machine.options().path, query);
  std::string refusal;
  ResponseReader* current = nullptr;
  const auto take = [&](std::string_view bytes) {
    if (current->status() == 200) {
      if (!machine.feed(bytes)) throw StreamAbandoned();
    } else if (refusal.size() < (std::size_t{64} << 10U)) {
      refusal += bytes;
    }
  };
  ResponseReader reader(0, take);
  current = &reader;
  const double begin = Engine::now();
  const std::function<void()> headed = [&] {
    if (reader.status() == 200) machine.streaming();
  };
  const Outcome outcome = co_await engine->stream(target, seconds, reader, headed);
  if (outcome.status == 200)
    machine.stream_over(Engine::now() - begin);
  else if (outcome.status != 0)
    machine.failed(outcome.status, api_error(outcome.status, refusal, doing("watch")).what(), outcome.retry_after);
  else
    machine.failed(0, outcome.trouble);
}

}  // namespace detail

Watch Client::watch(WatchOptions options, WatchHandler handler) {
  auto task = std::make_shared<detail::WatchTask>(state_, std::move(options), std::move(handler));
  task->task = state_->spawn(task->run());
  return Watch(std::move(task));
}

void Watch::end() noexcept {
  const auto task = std::exchange(task_, nullptr);
  if (!task) return;
  task->task.cancel(task->engine->io());
  task->task.join();
}

Watch& Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  end();
  task_ = std::move(other.task_);
  return *this;
}

Watch::~Watch() { end(); }

}  // namespace hypertune::inline v0::k8s
