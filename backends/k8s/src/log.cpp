// Part of hypertune::k8s: logs of containers.
#include "engine.hpp"
#include "log_machine.hpp"
#include "status.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace hypertune::inline v0::k8s {

namespace detail {

struct LogTask {
  LogTask(std::shared_ptr<Client::State> e, PodLog what, LogHandler handler)
      : engine(std::move(e)), machine(named(std::move(what), *engine), std::move(handler)) {}
  static PodLog named(PodLog what, const Client::State& engine) {
    if (what.name_space.empty()) what.name_space = engine.access().name_space;
    return what;
  }

  enum class State : std::uint8_t { unknown, waiting, running, ended, gone };

  asio::awaitable<void> run();
  asio::awaitable<void> stream(bool follow);
  asio::awaitable<void> look();
  std::string pod_path() const {
    return api_path({"api", "v1", "namespaces", machine.what().name_space, "pods", machine.what().pod});
  }

  std::shared_ptr<Client::State> engine;
  LogMachine machine;
  State state = State::unknown;
  std::string trouble;
  Task task;
};

namespace {

/// The state of a container, taken from its pod's status.
LogTask::State state_in(const boost::json::value& pod, const std::string& container) {
  using State = LogTask::State;
  const auto* status = object_in(pod, "status");
  if (status == nullptr) return State::unknown;
  const auto phase = text_in(*status, "phase");
  if (phase == "Succeeded" || phase == "Failed") return State::ended;
  const auto* list = array_in(*status, "containerStatuses");
  if (list == nullptr) return State::waiting;
  for (const auto& one : *list) {
    const auto* object = one.if_object();
    if (object == nullptr || (!container.empty() && text_in(*object, "name") != container)) continue;
    const auto* state = object_in(one, "state");
    if (state == nullptr) return State::unknown;
    return state->contains("terminated") ? State::ended : state->contains("running") ? State::running : State::waiting;
  }
  return State::waiting;
}

}  // namespace

asio::awaitable<void> LogTask::look() {
  Request request;
  request.path = pod_path();
  const Attempt attempt = co_await engine->attempt(request, engine->options().attempt, 0);
  state = State::unknown;
  if (attempt.outcome.kind != Outcome::Kind::answered) {
    trouble = attempt.outcome.trouble;
  } else if (attempt.outcome.status == 404) {
    state = State::gone;
  } else if (attempt.outcome.status != 200) {
    trouble = api_error(attempt.outcome.status, attempt.body, "GET " + request.path).what();
  } else {
    const Answer answer{.body = attempt.body};
    state = state_in(answer.json(), machine.what().container);
  }
}

asio::awaitable<void> LogTask::stream(bool follow) {
  const std::string target = target_of(pod_path() + "/log", machine.begin(follow));
  std::string refusal;
  ResponseReader* current = nullptr;
  const auto take = [&](std::string_view bytes) {
    if (current->status() == 200)
      machine.feed(bytes);
    else if (refusal.size() < (std::size_t{64} << 10U))
      refusal += bytes;
  };
  ResponseReader reader(0, take);
  current = &reader;
  constexpr double whole_day = 86400;
  const Outcome outcome = co_await engine->stream(target, whole_day, reader, nothing);
  machine.over(outcome.status == 200 && reader.done() && state == State::ended);
  if (outcome.status == 0) trouble = outcome.trouble;
  // 400: the container has not started; the pod's status says why.
  if (outcome.status != 0 && outcome.status != 200 && outcome.status != 400 && outcome.status != 404)
    trouble = api_error(outcome.status, refusal, "GET " + pod_path() + "/log").what();
}

asio::awaitable<void> LogTask::run() {
  BackOff back_off(0.2, 10);
  for (;;) {
    trouble.clear();
    co_await engine->turn(1e9);
    try {
      co_await stream(true);
      if (trouble.empty()) co_await look();
      if (trouble.empty() && state == State::ended) co_await stream(false);  // the rest of the log
    } catch (const Error& e) { trouble = e.what(); }
    if (trouble.empty() && (state == State::ended || state == State::gone)) break;
    if (!trouble.empty()) machine.tell(LogEvent::Kind::trouble, trouble);
    if (machine.heard()) back_off.reset();
    co_await sleep_for(engine->io(), back_off.pause(engine->uniform()));
  }
  machine.tell(LogEvent::Kind::ended, state == State::gone ? "the pod is gone" : "the container has ended");
}

}  // namespace detail

LogFollower Client::follow_log(PodLog what, LogHandler handler) {
  auto task = std::make_shared<detail::LogTask>(state_, std::move(what), std::move(handler));
  task->task = state_->spawn(task->run());
  return LogFollower(std::move(task));
}

void LogFollower::end() noexcept {
  const auto task = std::exchange(task_, nullptr);
  if (!task) return;
  task->task.cancel(task->engine->io());
  task->task.join();
}

LogFollower& LogFollower::operator=(LogFollower&& other) noexcept {
  if (this == &other) return *this;
  end();
  task_ = std::move(other.task_);
  return *this;
}

LogFollower::~LogFollower() { end(); }

}  // namespace hypertune::inline v0::k8s
