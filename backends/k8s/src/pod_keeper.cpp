// PodKeeper: the first process of a worker's pod.
#include "connect_request.hpp"
#include "keeper_state.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

void check(const KeeperOptions& options) {
  if (!(options.orphan_timeout > 0)) fail(Errc::usage, "a pod's keeper needs a positive orphan_timeout");
  if (options.token.empty()) return;
  if (!is_worker_name(options.worker))
    fail(Errc::usage, "{} is '{}', which is not a valid name of a worker", name_variable, options.worker);
  if (options.agent.empty()) fail(Errc::usage, "a pod's keeper that calls home needs the command of an agent");
}

}  // namespace

PodKeeper::PodKeeper(KeeperOptions options)
    : options_(std::move(options)),
      signals_(io_, SIGTERM, SIGINT, SIGCHLD),
      agents_(io_, options_.agents, [this] { look(); }),
      looking_(io_.get_executor()),
      pausing_(io_.get_executor()),
      driver_seen_at_(hypertune::detail::steady_seconds()),
      random_(std::random_device{}()) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // it is not pid 1 if the pod's containers share a process namespace
  std::error_code error;
  std::filesystem::create_directories(options_.agents, error);
  if (error && !connects_to_driver())
    fail(Errc::io, "cannot make '{}', in which agents leave their numbers: {}", options_.agents.string(),
         error.message());
}

int PodKeeper::run() {
  wait_for_signal();
  const auto failed = [this](const std::string& why) { fail_all(why); };
  hypertune::detail::spawn(io_, keep_looking(), failed);
  if (connects_to_driver()) {
    connecting_ = true;
    hypertune::detail::spawn(io_, keep_connecting(), failed);
  }
  hypertune::detail::run_handlers(io_, failed);
  return code_;
}

void PodKeeper::wait_for_signal() {
  signals_.async_wait([this](ErrorCode error, int number) {
    if (error) return;
    if (number == SIGCHLD)
      agents_.reap();
    else
      on_stop_signal(number);
    wait_for_signal();
  });
}

// Agents give their trials time to save a checkpoint, and exit; the kubelet kills what takes too long.
void PodKeeper::on_stop_signal(int number) {
  agents_.signal(++stop_signals_ == 1 ? SIGTERM : SIGKILL);
  if (stop_signals_ == 1) {
    hypertune::detail::say(fmt::format("hypertune: the pod is to end (signal {}): its agents are told", number));
    if (connection_ && !agents_.child_runs()) connection_->close("its pod is to end");
    pausing_.raise();
  }
  look();
}

// Wakes the coroutines that check for changes.
void PodKeeper::look() {
  if (connection_) connection_->look();
  looking_.raise();
}

bool PodKeeper::driver_is_there() {
  std::error_code error;
  const bool told = std::filesystem::remove(options_.agents / "alive", error);
  const bool agents = agents_.any();
  return told || agents || (connection_ && connection_->is_connected());
}

asio::awaitable<void> PodKeeper::keep_looking() {
  const double interval = std::clamp(options_.orphan_timeout / 10, 0.05, 2.0);
  for (;;) {
    agents_.reap();
    if (driver_is_there()) driver_seen_at_ = hypertune::detail::steady_seconds();
    if (stop_signals_ > 0 && !connecting_ && !agents_.any()) break;
    if (stop_signals_ == 0 && hypertune::detail::steady_seconds() - driver_seen_at_ > options_.orphan_timeout) {
      hypertune::detail::say(fmt::format("hypertune: no driver has been here for {:g} s, so that this pod ends{}{}",
                                         options_.orphan_timeout,
                                         trouble_.empty() ? "" : "; the last attempt to reach it: ", trouble_));
      break;
    }
    if (connection_ && connection_->is_connected()) {  // the driver may have been restarted elsewhere
      std::string ignored;
      const auto driver = find_driver(ignored);
      if (driver && *driver != connection_->driver()) connection_->close("the driver is elsewhere now");
    }
    co_await looking_.wait(interval);
  }
  finish();
}

// Without one of its parts, the pod would wait for agents or for its driver in vain.
void PodKeeper::fail_all(const std::string& why) {
  hypertune::detail::say("hypertune: this pod ends, because its keeper failed: " + why);
  code_ = 1;
  finish();
}

void PodKeeper::finish() {
  agents_.kill_child();
  io_.stop();
}

// ---- Connecting to the driver, again and again ----

std::optional<DriverAddress> PodKeeper::find_driver(std::string& why) const {
  std::ifstream in(options_.driver);
  std::string text(512, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  try {
    return DriverAddress::parse(text);
  } catch (const Error& e) {
    why = text.empty() ? "'" + options_.driver.string() + "' does not say yet where it is" : e.what();
  }
  return std::nullopt;
}

void PodKeeper::say_trouble(const std::string& where, const std::string& why) {
  constexpr double interval = 60;
  const std::string text = where + why;
  if (std::exchange(trouble_, text) == text && hypertune::detail::steady_seconds() - trouble_told_ < interval) return;
  trouble_told_ = hypertune::detail::steady_seconds();
  hypertune::detail::say("hypertune: no connection to the driver: " + text);
}

asio::awaitable<void> PodKeeper::keep_connecting() {
  double delay = options_.first_delay;
  while (stop_signals_ == 0) {
    std::string why;
    const auto driver = find_driver(why);
    bool was_connected = false;
    if (driver) {
      connection_ = std::make_shared<DriverConnection>(io_, options_, agents_, *driver);
      was_connected = co_await connection_->run();
      const auto connection = std::exchange(connection_, nullptr);
      why = connection->why();
    }
    if (stop_signals_ > 0) break;
    if (was_connected) {
      hypertune::detail::say("hypertune: the connection to the driver has ended: " + why);
      delay = options_.first_delay;
      trouble_.clear();
    } else {
      say_trouble(driver ? fmt::format("wss://{}:{}: ", driver->ip, driver->port) : std::string(), why);
    }
    const double jitter = std::uniform_real_distribution<double>(0.5, 1)(random_);
    co_await pause(delay * jitter, driver);
    constexpr double growth = 1.6;
    delay = std::min(options_.max_delay, delay * growth);
  }
  connecting_ = false;
  look();
}

// Waits `seconds`, or until the file names another address than `tried`.
asio::awaitable<void> PodKeeper::pause(double seconds, std::optional<DriverAddress> tried) {
  constexpr double interval = 1;
  const double until = hypertune::detail::steady_seconds() + seconds;
  while (stop_signals_ == 0 && hypertune::detail::steady_seconds() < until) {
    co_await pausing_.wait(std::min(interval, std::max(0.0, until - hypertune::detail::steady_seconds())));
    std::string ignored;
    const auto driver = find_driver(ignored);
    if (driver && driver != tried) co_return;
  }
}

int keep_pod(KeeperOptions options) {
  check(options);
  return PodKeeper(std::move(options)).run();
}

}  // namespace hypertune::inline v0::k8s
