// Agent: its connection to the driver, from hello to the end.
#include "agent_state.hpp"

#include <hypertune/detail/as_duration.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/network.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/process/process_marks.hpp>

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {
namespace {

// All or none: from an incomplete list the driver would conclude that there are no others.
std::vector<std::string> addresses_to_tell() {
  try {
    auto all = hypertune::detail::own_addresses();
    if (all.size() <= wire::max_addresses) return all;
  } catch (const Error&) {  // the agent can serve trials without them
  }
  return {};
}

}  // namespace

int Agent::run() {
  Descriptor in(::fcntl(options_.in, F_DUPFD_CLOEXEC, 3)), out(::fcntl(options_.out, F_DUPFD_CLOEXEC, 3));
  if (!in || !out) return 2;
  if (options_.in == STDIN_FILENO) {
    const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(null.get(), STDIN_FILENO);
  }
  if (options_.out == STDOUT_FILENO) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::signal(SIGPIPE, SIG_IGN);
  signals_.add(SIGTERM);
  signals_.add(SIGURG);
  wait_for_notice();
  channel_ = std::make_shared<Channel>(io_, std::move(in), std::move(out), false);
  channel_->send_banner();
  tunnel_ = std::make_shared<Tunnel>(io_, channel_, false);
  channel_->open({.message = [this](wire::Message message) { receive(std::move(message)); },
                  .heard = [this] { heard_ = steady_now(); },
                  .piece = [this] { return tunnel_->next_in_turn([this] { return next_whole(); }); },
                  .ended = [this](const std::string&) { stop(0); }});
  send_hello();
  heard_ = steady_now();
  const auto failed = [this](const std::string& why) { fail_all(why); };
  hypertune::detail::spawn(io_, check_liveness(), failed);
  hypertune::detail::run_handlers(io_, failed);
  stopping_ = true;
  stop_fetches_.request_stop();
  executor_.shutdown();
  tunnel_->close();
  channel_->close();
  fetches_.join();
  if (exchange_) exchange_->stop();
  if (disk_) disk_->join();
  if (helper_) helper_->join();
  if (share_) retire_area(share_->area);
  if (clean_ && folder_) folder_->remove();
  return code_;
}

// ---- The connection ----

void Agent::send_hello() {
  wire::Hello hello;
  hello.pid = ::getpid();
  utsname system{};
  if (::uname(&system) == 0) hello.machine = system.machine;
  hello.host = executor_.hosts().front();
  hello.host.name = system.nodename;
  hello.host.addresses = addresses_to_tell();
  hello.clock = run_clock();
  hello.by_content = can_exchange;
  channel_->send(hello);
}

void Agent::receive(wire::Message message) {
  if (left_) return;
  const bool at_once = std::visit([]<class M>(const M&) { return comes_before_begin<M>; }, message);
  if (begun_ || at_once)
    std::visit([this](auto& m) { on(m); }, message);
  else
    early_.push_back(std::move(message));
}

void Agent::on(const wire::Share& m) {
  shares_ = m.granted;
  share_received_.raise();
}

void Agent::on(const wire::Shutdown& m) {
  clean_ = m.clean;
  stop(0);
}

void Agent::on(const wire::Welcome& m) {
  wire::require_version(m.version, "driver");
  host_name_ = m.host_name;
  liveness_ = HostTimeouts::agent_liveness(m.heartbeat_timeout);
  liveness_check_.raise();  // end the wait with the old interval
  channel_->beat(m.heartbeat);
}

void Agent::on(const wire::Begin& m) {
  if (begin_) fail(Errc::protocol, "a second Begin");
  begin_ = m;
  rate_->set_rate(m.rate_limit);
  hypertune::detail::spawn(io_, begin(), [this](const std::string& why) { refuse(why); });
}

asio::awaitable<void> Agent::begin() {
  constexpr double most = 20;
  const Seconds until = steady_now() + most;
  while (try_lock() == Locking::again) {
    if (steady_now() > until) refuse(folder_->why_locked(), false);
    if (left_) co_return;
    co_await locking_.wait(0.02);
  }
  if (left_) co_return;
  if (send_proof()) co_await share_received_.wait(most);
  if (left_) co_return;
  if (!shares_) share_.reset();
  begin_locally();
}

// Returns whether a Proof was sent, which the driver will answer.
bool Agent::send_proof() {
  if (begin_->shared.empty()) return false;
  wire::Proof proof;
  try {
    const auto root = place_on_host(begin_->shared);
    auto said = prove_shared(root, begin_->shared_proof, begin_->shared_area);
    proof.read = std::move(said.read);
    proof.wrote = std::move(said.wrote);
    share_.emplace(Shared{root, root / shared_hosts / begin_->shared_area});
  } catch (const std::exception& e) { proof.error = e.what(); }
  channel_->send(proof);
  return true;
}

Agent::Locking Agent::try_lock() {
  try {
    if (!folder_) {
      const auto base = options_.directory.empty() ? default_agent_directory() : options_.directory;
      folder_.emplace(base, begin_->experiment, host_name_);
    }
    return folder_->try_lock(begin_->incarnation) ? Locking::done : Locking::again;
  } catch (const Error& e) { refuse(e.what(), e.code() != Errc::busy); } catch (const std::exception& e) {
    refuse(e.what());
  }
  return Locking::refused;
}

void Agent::begin_locally() {
  try {
    store_.emplace(folder_->path());
    store_->recover();
    cache_.emplace(*store_, options_.cache);
    // The program is made before the local executor forks the guardian, and that happens before there are threads.
    ExecutorStart start;
    start.program = make_program_(begin_->program);
    start.directory = folder_->path();
    start.hang_timeout = begin_->hang_timeout;
    start.log_limit = begin_->log_limit;
    if (share_) {
      start.checkpoints = share_->area;
      start.origins = {share_->root, folder_->path()};
      in_place_.emplace(share_->root);
      written_.emplace(share_->area);
    }
    start.sink = [this](Event event) {
      const auto shared = std::make_shared<Event>(std::move(event));
      asio::post(io_, [this, shared] { tell(std::move(*shared)); });
    };
    executor_.start(std::move(start));
    if (begin_->by_content) exchange_.emplace(*store_, begin_->token, rate_);
    start_threads();
  } catch (const std::exception& e) { return refuse(e.what()); }
  begun_ = true;
  if (exchange_) tunnel_->accept([this](int socket) { exchange_->serve(socket); });
  if (exchange_ && begin_->direct) try {
      channel_->send(wire::Serving{exchange_->listen(
          begin_->direct_network, static_cast<std::uint16_t>(begin_->direct_port), options_.address)});
    } catch (const std::exception& e) {
      channel_->send(Notice{hypertune::detail::format(
          "host '{}' gives no checkpoints to other hosts, they go through the driver: {}", host_name_, e.what())});
    }
  hypertune::detail::spawn(io_, follow_logs(), [this](const std::string& why) { fail_all(why); });
  hypertune::detail::run_apart(*helper_, [this] { poll_usage_and_notices(steady_now()); });
  for (auto& message : std::exchange(early_, {})) {
    if (left_) return;
    std::visit([this](auto& m) { on(m); }, message);
  }
}

void Agent::start_threads() {
  try {
    disk_.emplace(1);
    helper_.emplace(1);
  } catch (const std::exception& e) {
    fail(Errc::io, "its agent cannot start its threads: {}; are there too many processes (ulimit -u)?", e.what());
  }
}

void Agent::refuse(const std::string& why, bool permanent) {
  if (left_) return;
  left_ = true;
  code_ = 1;
  channel_->send(wire::Refusal{why, permanent});
  channel_->close_when_sent();
  hypertune::detail::spawn(io_, stop_soon(), [this](const std::string&) { io_.stop(); });
}

// A part of the agent has failed, so that it cannot be relied on. It ends, and the driver learns why.
void Agent::fail_all(const std::string& why) {
  hypertune::detail::say("hypertune: the agent ends: " + why);
  refuse("its agent failed: " + why, false);
}

asio::awaitable<void> Agent::stop_soon() {
  const Seconds until = steady_now() + 5;
  while (!channel_->closed() && steady_now() < until) co_await locking_.wait(0.01);
  io_.stop();
}

void Agent::stop(int code) {
  left_ = true;
  code_ = code;
  io_.stop();
}

// The driver gives the host up after a silence; what runs here must end before that.
asio::awaitable<void> Agent::check_liveness() {
  for (;;) {
    const double left = heard_ + liveness_ - steady_now();
    if (left <= 0) break;
    co_await liveness_check_.wait(left);
  }
  stop(3);
}

// ---- Termination notices ----

void Agent::wait_for_notice() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    if (signal == SIGURG)
      give_notice("its time is nearly over (SIGURG)", time_after_notice());
    else
      give_notice("its agent was asked to end (SIGTERM)", 30);
    wait_for_notice();
  });
}

// The sender of SIGURG sets the time until the end in the environment.
double Agent::time_after_notice() {
  const char* text = std::getenv("HYPERTUNE_NOTICE");
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return seconds >= 1 && seconds <= 86400 ? seconds : 60;
}

void Agent::give_notice(const std::string& why, double seconds) {
  if (std::exchange(noticed_, true)) return;
  if (!begin_) return stop(0);
  channel_->send(wire::Draining{why, seconds});
}

// Runs repeatedly on the helper's thread: reports the resources in use, and polls for a notice.
void Agent::poll_usage_and_notices(Seconds next_notice) {
  if (stopping_.load()) return;
  const auto usage = usage_.look();
  asio::post(io_, [this, usage] {
    if (channel_->backlog() < quiet) channel_->send(usage);
  });
  const bool polls = !begin_->notice_command.empty() || !begin_->notice_url.empty();
  if (polls && steady_now() >= next_notice) {
    std::optional<std::string> said;
    try {
      if (!begin_->notice_command.empty()) said = output_of(begin_->notice_command, 10);
      if (!said && !begin_->notice_url.empty()) said = http_get(begin_->notice_url);
    } catch (const std::exception& e) {  // no process can be started now, for example: asks again
      if (!std::exchange(unasked_, true))
        hypertune::detail::say(
            hypertune::detail::format("hypertune: cannot ask for a termination notice: {}", e.what()));
    }
    if (said)
      asio::post(io_, [this, line = first_line(*said)] {
        give_notice("a termination notice: " + (line.empty() ? "it will be taken away" : line), 60);
      });
    next_notice = steady_now() + begin_->notice_interval;
  }
  const double pause = polls ? std::min(5.0, std::max(0.05, next_notice - steady_now())) : 5.0;
  const auto timer = std::make_shared<asio::steady_timer>(io_, hypertune::detail::as_duration(pause));
  asio::post(io_, [this, timer, next_notice] {
    timer->async_wait([this, timer, next_notice](boost::system::error_code) {
      hypertune::detail::run_apart(*helper_, [this, next_notice] { poll_usage_and_notices(next_notice); });
    });
  });
}

}  // namespace detail

int agent_main(const ProgramMaker& make_program, AgentOptions options) {
  // The process that started the agent may not be the one that learns of the machine's end; that one finds the agent by
  // this mark.
  const char* marks = std::getenv("HYPERTUNE_AGENTS");
  std::optional<process::ProcessMark> mark;
  if (marks != nullptr && *marks != '\0') {
    mark.emplace(marks);
    if (!mark->left())
      hypertune::detail::say(hypertune::detail::format(
          "hypertune: cannot leave a mark in '{}' (HYPERTUNE_AGENTS): a termination notice may not reach this agent",
          marks));
  }
  return detail::Agent(make_program, std::move(options)).run();
}

}  // namespace hypertune::inline v0::remote
