// Agent: the local executor on one side, the stream to the driver on the other, and checkpoints between.
#pragma once

#include "channel.hpp"
#include "checkpoint_exchange.hpp"
#include "copies.hpp"
#include "host_folder.hpp"
#include "host_usage.hpp"
#include "log_tail.hpp"
#include "pace.hpp"
#include "shared_folder.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/host_machine.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::remote::detail {

/// One incarnation. Everything happens on the thread of run(), but for the local executor's own and for what reads or
/// syncs whole checkpoints or waits for commands.
class Agent {
 public:
  Agent(const ProgramMaker& make_program, AgentOptions options)
      : make_program_(make_program),
        options_(std::move(options)),
        signals_(io_),
        executor_(options_.processes),
        logs_(io_),
        liveness_check_(io_),
        locking_(io_),
        share_told_(io_) {}

  int run() {
    Descriptor in(::fcntl(options_.in, F_DUPFD_CLOEXEC, 3)), out(::fcntl(options_.out, F_DUPFD_CLOEXEC, 3));
    if (!in || !out) return 2;
    if (options_.in == STDIN_FILENO) {
      const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      ::dup2(null.get(), STDIN_FILENO);
    }
    if (options_.out == STDOUT_FILENO) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::signal(SIGPIPE, SIG_IGN);
    signals_.add(SIGTERM);
    wait_for_notice();
    channel_ = std::make_shared<Channel>(io_, std::move(in), std::move(out), false);
    channel_->send_banner();
    tunnel_ = std::make_shared<Tunnel>(io_, channel_, false);
    channel_->open({.message = [this](wire::Message message) { receive(std::move(message)); },
                    .heard = [this] { heard_ = steady_now(); },
                    .piece = [this] { return tunnel_->next_in_turn([this] { return next_whole(); }); },
                    .ended = [this](const std::string&) { leave(0); }});
    greet();
    heard_ = steady_now();
    asio::co_spawn(io_, check_liveness(), asio::detached);
    io_.run();
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

 private:
  struct Run {
    Launch launch;
    std::size_t candidate = 0;  // of launch.restore, looked at while resolving
    bool resolving = true, parked = false, over = false;
    bool started = false;  // which the driver has been told
    std::optional<CheckpointInfo> pinned = {};
    std::string damaged = {};  // what it was to go on from, and how
    int repairs = 0;           // how often that was the case
    int copies = 0;            // checkpoints of it on their way to the driver
    std::optional<Continue> held = {};
    std::optional<wire::Message> last = {};  // what ends it, once its copies and its log are sent
    LogTail log = {};
  };
  using RunPointer = std::shared_ptr<Run>;
  struct Sending {
    std::unique_ptr<OutgoingCopy> copy;
    RunPointer run;
  };

  // ---- The connection ----

  void greet() {
    wire::Hello hello;
    hello.pid = ::getpid();
    utsname system{};
    if (::uname(&system) == 0) hello.machine = system.machine;
    hello.host = executor_.hosts().front();
    hello.host.name = system.nodename;
    hello.clock = run_clock();
    hello.by_content = can_exchange;
    channel_->send(hello);
  }

  void receive(wire::Message message) {
    if (left_) return;
    if (auto* welcome = std::get_if<wire::Welcome>(&message)) return on(*welcome);
    if (auto* begin = std::get_if<wire::Begin>(&message)) return on(*begin);
    if (const auto* share = std::get_if<wire::Share>(&message)) {
      shares_ = share->granted;
      return share_told_.raise();
    }
    if (const auto* over = std::get_if<wire::Shutdown>(&message)) {
      clean_ = over->clean;
      return leave(0);
    }
    if (!begun_) {
      early_.push_back(std::move(message));
      return;
    }
    std::visit([this](auto& m) { on(m); }, message);
  }

  void on(const wire::Welcome& m) {
    wire::require_version(m.version, "driver");
    host_name_ = m.host_name;
    liveness_ = HostTimeouts::agent_liveness(m.liveness);
    liveness_check_.raise();  // it waits for as long as was right before the driver said
    channel_->beat(m.heartbeat);
  }
  void on(const wire::Begin& m) {
    if (begin_) fail(Errc::protocol, "a second Begin");
    begin_ = m;
    rate_->set_rate(m.rate_limit);
    asio::co_spawn(io_, begin(), asio::detached);
  }

  asio::awaitable<void> begin() {
    constexpr double most = 20;
    const Seconds until = steady_now() + most;
    while (try_lock() == Locking::again) {
      if (steady_now() > until) refuse("processes of an earlier connection to this host do not end", false);
      if (left_) co_return;
      co_await locking_.wait(0.02);
    }
    if (left_) co_return;
    if (show_share()) co_await share_told_.wait(most);
    if (left_) co_return;
    if (!shares_) share_.reset();
    begin_locally();
  }
  // Whether the driver has something to judge.
  bool show_share() {
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
  enum class Locking { done, again, refused };
  Locking try_lock() {
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
  void begin_locally() {
    try {
      store_.emplace(folder_->path());
      store_->recover();
      cache_.emplace(*store_, options_.cache);
      // The program is made before the local executor forks the guardian, and that before there are threads.
      ExecutorStart start;
      start.program = make_program_(begin_->program);
      start.directory = folder_->path();
      start.hang_limit = begin_->hang_limit;
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
    } catch (const std::exception& e) { return refuse(e.what()); }
    disk_.emplace(1);
    helper_.emplace(1);
    begun_ = true;
    if (exchange_) tunnel_->accept([this](int socket) { exchange_->serve(socket); });
    if (exchange_ && begin_->direct) try {
        channel_->send(
            wire::Serving{exchange_->listen(begin_->direct_network, static_cast<std::uint16_t>(begin_->direct_port))});
      } catch (const std::exception& e) {
        channel_->send(Notice{hypertune::detail::format(
            "host '{}' gives no checkpoints to other hosts, they go through the driver: {}", host_name_, e.what())});
      }
    asio::co_spawn(io_, follow_logs(), asio::detached);
    asio::post(*helper_, [this] { look_around(steady_now()); });
    for (auto& message : std::exchange(early_, {})) {
      if (left_) return;
      std::visit([this](auto& m) { on(m); }, message);
    }
  }

  void refuse(const std::string& why, bool permanent = true) {
    if (left_) return;
    left_ = true;
    code_ = 1;
    channel_->send(wire::Refusal{why, permanent});
    channel_->close_when_sent();
    asio::co_spawn(io_, stop_soon(), asio::detached);
  }
  asio::awaitable<void> stop_soon() {
    const Seconds until = steady_now() + 5;
    while (!channel_->closed() && steady_now() < until) co_await locking_.wait(0.01);
    io_.stop();
  }
  void leave(int code) {
    left_ = true;
    code_ = code;
    io_.stop();
  }

  // The driver gives the host up when it hears nothing; before that, what runs here ends.
  asio::awaitable<void> check_liveness() {
    for (;;) {
      const double left = heard_ + liveness_ - steady_now();
      if (left <= 0) break;
      co_await liveness_check_.wait(left);
    }
    leave(3);
  }

  // ---- Termination notices ----

  void wait_for_notice() {
    signals_.async_wait([this](boost::system::error_code error, int) {
      if (error) return;
      give_notice("its agent was asked to end (SIGTERM)", 30);
      wait_for_notice();
    });
  }
  void give_notice(const std::string& why, double seconds) {
    if (std::exchange(noticed_, true)) return;
    if (!begin_) return leave(0);
    channel_->send(wire::Draining{why, seconds});
  }

  // On the helper's thread, again and again: what is in use, and whether a notice was given.
  void look_around(Seconds next_notice) {
    if (stopping_.load()) return;
    const auto usage = usage_.look();
    asio::post(io_, [this, usage] {
      if (channel_->backlog() < quiet) channel_->send(usage);
    });
    const bool polls = !begin_->notice_command.empty() || !begin_->notice_url.empty();
    if (polls && steady_now() >= next_notice) {
      std::optional<std::string> said;
      if (!begin_->notice_command.empty()) said = output_of(begin_->notice_command, 10);
      if (!said && !begin_->notice_url.empty()) said = http_get(begin_->notice_url);
      if (said)
        asio::post(io_, [this, line = first_line(*said)] {
          give_notice("a termination notice: " + (line.empty() ? "it will be taken away" : line), 60);
        });
      next_notice = steady_now() + begin_->notice_interval;
    }
    const double pause = polls ? std::min(5.0, std::max(0.05, next_notice - steady_now())) : 5.0;
    const auto timer = std::make_shared<asio::steady_timer>(
        io_, std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(pause)));
    asio::post(io_, [this, timer, next_notice] {
      timer->async_wait([this, timer, next_notice](boost::system::error_code) {
        asio::post(*helper_, [this, next_notice] { look_around(next_notice); });
      });
    });
  }

  // ---- Commands ----

  RunPointer find(TrialId trial, Attempt attempt) const {
    const auto found = runs_.find(trial);
    return found != runs_.end() && found->second->launch.attempt == attempt ? found->second : nullptr;
  }

  void on(Launch& m) {
    if (m.parked) {
      if (const auto run = find(m.trial, m.attempt)) {
        run->parked = false;
        run->launch.slot = m.slot;
        executor_.perform(std::move(m));
      }
      return;
    }
    const auto run = std::make_shared<Run>();
    run->launch = std::move(m);
    run->log = LogTail(folder_->path() / "trials" / std::to_string(run->launch.trial) / "log", begin_->log_limit);
    if (const auto old = runs_.find(run->launch.trial); old != runs_.end()) old->second->over = true;
    runs_[run->launch.trial] = run;
    resolve(run);
  }
  void on(const Continue& m) {
    const auto run = find(m.trial, m.attempt);
    if (!run) return;
    // A trial that saves faster than its checkpoints can be copied is slowed down.
    if (m.save && run->copies >= copies_ahead)
      run->held = m;
    else
      executor_.perform(m);
  }
  void on(const Pause& m) {
    if (find(m.trial, m.attempt)) executor_.perform(m);
  }
  void on(const Stop& m) {
    const auto run = find(m.trial, m.attempt);
    if (!run) return;
    run->held.reset();
    if (run->resolving) {
      channel_->send(Stopped{m.trial, m.attempt});
      return forget(run);
    }
    executor_.perform(m);
    if (run->parked) forget(run);
  }

  // ---- Where a trial goes on from ----

  // Its worker reads all of it, so that it is found by name here. One that was found to be damaged then is not trusted
  // a second time: what of it is here is looked at, and the driver is asked.
  void resolve(const RunPointer& run) {
    if (run->over) return;
    if (run->candidate == run->launch.restore.size()) return begin(run, std::nullopt);
    const CheckpointInfo wanted = run->launch.restore[run->candidate];
    const bool trusted = run->damaged.empty();
    const auto in_place = std::make_shared<bool>(false);
    on_disk(
        [this, wanted, trusted, in_place]() -> std::optional<CheckpointInfo> {
          if (in_place_ && trusted && in_place_->names(wanted)) {
            *in_place = true;
            return wanted;
          }
          auto held = find_copy(*store_, wanted);
          if (!held || trusted) return held;
          try {
            store_->open(*held);
          } catch (const Error& e) {
            if (e.code() == Errc::corrupt) store_->set_aside(*held);
            return std::nullopt;
          }
          return held;
        },
        [this, run, in_place](std::optional<CheckpointInfo> held, const std::string&) {
          if (run->over) return;
          if (*in_place) return begin(run, std::move(held), false);
          // Dropped meanwhile, perhaps; from here on it is pinned.
          if (held && !std::filesystem::exists(store_->folder(*held))) held.reset();
          if (held) return begin(run, std::move(held));
          want(run, false);
        });
  }
  // The worker could not go on from what it was given.
  void repair(const RunPointer& run) {
    constexpr int most = 3;
    unpin(run);
    if (++run->repairs > most) return refuse_start(run, run->damaged);
    run->resolving = true;
    resolve(run);
  }
  void want(const RunPointer& run, bool from_driver, std::vector<std::string> without = {}) {
    const std::uint64_t transfer = next_transfer_++;
    wanted_[transfer] = run;
    channel_->send(
        wire::Want{transfer, run->launch.trial, run->launch.restore[run->candidate], from_driver, std::move(without)});
  }
  // From another host that has it, or else from the driver.
  void on(const wire::Source& m) {
    const auto found = wanted_.find(m.transfer);
    if (found == wanted_.end()) return;
    if (!exchange_) fail(Errc::protocol, "a source of checkpoints, without the means to fetch them");
    const auto outcome = std::make_shared<FetchOutcome>();
    const auto done = [this, outcome, transfer = m.transfer, direct = !m.peers.empty()] {
      fetched(transfer, direct, *outcome);
    };
    try {
      fetches_.run([this, outcome, done, m, wanted = found->second->launch.restore[found->second->candidate]] {
        const auto stop = stop_fetches_.get_token();
        const auto attempt = [&](const auto& fetch) {
          try {
            outcome->report = fetch();
          } catch (const std::exception& e) { outcome->error = e.what(); }
        };
        if (m.peers.empty()) attempt([&] { return exchange_->fetch(tunnel_, "the driver", wanted, stop); });
        for (const auto& peer : m.peers) {
          attempt([&] { return exchange_->fetch(peer, m.content_id, wanted, stop); });
          if (outcome->report) break;
          outcome->without.push_back(peer);
        }
        asio::post(io_, done);
      });
    } catch (const std::exception& e) { give_up_copy(m.transfer, e.what()); }
  }
  void fetched(std::uint64_t transfer, bool direct, const FetchOutcome& outcome) {
    const auto node = wanted_.extract(transfer);
    if (!node || left_) return;
    const auto run = node.mapped();
    if (const auto& report = outcome.report) {
      channel_->send(wire::Fetched{transfer, report->bytes_moved, report->bytes_reused, direct, outcome.without});
      arrived(run, report->checkpoint);
      return;
    }
    channel_->send(wire::Unavailable{transfer, outcome.error});
    if (run->over) return;
    if (direct) {
      channel_->send(Notice{hypertune::detail::format("a checkpoint that host '{}' needs comes through the driver: {}",
                                                      host_name_, outcome.error)});
      want(run, true, outcome.without);
    } else {
      refuse_start(run, outcome.error);
    }
  }
  // Pinned before the cache makes room, which could be by this one.
  void arrived(const RunPointer& run, const CheckpointInfo& copy) {
    if (!run || run->over)
      cache_->add(copy, true);
    else if (std::filesystem::exists(store_->folder(copy)))
      begin(run, copy);
    else
      resolve(run);  // another run's copy of the same content, and dropped since
  }
  // `cached`: `from` is in this host's own store, where it has to stay until the run has reported: a program may read
  // it long after it has started.
  void begin(const RunPointer& run, std::optional<CheckpointInfo> from, bool cached = true) {
    Launch launch = run->launch;
    launch.restore.clear();
    if (from) launch.restore.push_back(*from);
    launch.next_step = from ? from->steps : 0;
    launch.must_restore = from.has_value();
    if (cached) run->pinned = std::move(from);
    if (run->pinned) cache_->pin(*run->pinned);
    run->resolving = false;
    executor_.perform(std::move(launch));
  }
  void on(const wire::Unavailable& m) {
    const auto node = wanted_.extract(m.transfer);
    arriving_.erase(m.transfer);
    if (!node) return;
    const auto run = node.mapped();
    if (!m.lost) {
      if (!run->over) refuse_start(run, m.why);
      return;
    }
    ++run->candidate;
    run->damaged.clear();
    resolve(run);
  }
  void on(wire::Offer& m) {
    const auto found = wanted_.find(m.transfer);
    if (found == wanted_.end()) return;
    try {
      arriving_[m.transfer] = std::make_shared<IncomingCopy>(*store_, m);
    } catch (const std::exception& e) { return give_up_copy(m.transfer, e.what()); }
    complete_copy(m.transfer);
  }
  void on(const wire::Piece& m) {
    const auto found = arriving_.find(m.transfer);
    if (found == arriving_.end()) return;  // given up already
    try {
      found->second->add(m.bytes);
    } catch (const std::exception& e) { return give_up_copy(m.transfer, e.what()); }
    complete_copy(m.transfer);
  }
  void complete_copy(std::uint64_t transfer) {
    const auto copy = arriving_.at(transfer);
    if (!copy->complete()) return;
    arriving_.erase(transfer);
    on_disk([copy]() -> std::optional<CheckpointInfo> { return copy->seal(); },
            [this, transfer](std::optional<CheckpointInfo> sealed, const std::string& error) {
              if (!sealed) return give_up_copy(transfer, error);
              channel_->send(wire::Fetched{transfer, sealed->bytes, 0, false});
              const auto node = wanted_.extract(transfer);
              arrived(node ? node.mapped() : nullptr, *sealed);
            });
  }
  // Not for want of the checkpoint, which the driver has: this host cannot take it.
  void give_up_copy(std::uint64_t transfer, const std::string& why) {
    arriving_.erase(transfer);
    const auto node = wanted_.extract(transfer);
    channel_->send(wire::Unavailable{transfer, why});
    if (node && !node.mapped()->over) refuse_start(node.mapped(), why);
  }
  void refuse_start(const RunPointer& run, const std::string& why) {
    Cause cause{
        .blame = Blame::infrastructure,
        .text = hypertune::detail::format("its checkpoint could not be copied to host '{}': {}", host_name_, why)};
    channel_->send(Failed{run->launch.trial, run->launch.attempt, std::move(cause)});
    forget(run);
  }

  // ---- Events ----

  void tell(Event event) {
    if (left_) return;
    std::visit([this](auto& e) { heard(e); }, event);
  }
  void heard(Started& e) {
    if (const auto run = find(e.trial, e.attempt)) {
      run->damaged.clear();
      if (!std::exchange(run->started, true)) channel_->send(e);  // once, though it may have been repaired since
    }
  }
  void heard(Reported& e) {
    const auto run = find(e.trial, e.attempt);
    if (!run) return;
    unpin(run);
    const auto made = std::exchange(e.checkpoint, std::nullopt);
    channel_->send(e);
    if (made) offer(run, *made);
  }
  void heard(Checkpointed& e) {
    if (const auto run = find(e.trial, e.attempt)) offer(run, e.checkpoint);
  }
  void heard(CheckpointLost& e) {
    if (const auto run = runs_.find(e.trial); run != runs_.end()) run->second->damaged = e.why;
    channel_->send(Notice{hypertune::detail::format("trial {}: its copy of checkpoint {} on host '{}' is damaged: {}",
                                                    e.trial, e.checkpoint.name, host_name_, e.why)});
  }
  void heard(Paused& e) { last(e); }
  void heard(Finished& e) { last(e); }
  void heard(Stopped& e) { last(e); }
  void heard(Failed& e) {
    const auto run = find(e.trial, e.attempt);
    if (run && run->damaged.empty() && run->pinned && !std::filesystem::exists(store_->folder(*run->pinned)))
      run->damaged = "it vanished before it was read";
    if (run && !run->damaged.empty()) return repair(run);
    last(e);
  }
  void heard(SaveFailed& e) { channel_->send(e); }
  void heard(Notice& e) { channel_->send(e); }
  void heard(HostGained&) {}
  void heard(HostLost&) {}

  template <class E>
  void last(E& event) {
    const auto run = find(event.trial, event.attempt);
    if (!run) return;
    run->held.reset();
    run->last = wire::Message(std::move(event));
    settle(run);
  }
  // The end of an attempt is told when all that belongs to it has been.
  void settle(const RunPointer& run) {
    if (!run->last || run->over || run->copies > 0 || !send_log(*run)) return;
    const wire::Message message = *std::exchange(run->last, std::nullopt);
    channel_->send(message);
    unpin(run);
    if (const auto* paused = std::get_if<Paused>(&message); paused != nullptr && paused->parked) {
      run->parked = true;
      return;
    }
    const TrialId trial = run->launch.trial;
    const bool over = std::holds_alternative<Finished>(message) || std::holds_alternative<Stopped>(message);
    run->log.remove();
    forget(run);
    if (!over) return;
    cache_->forget(trial);
    if (exchange_) asio::post(*disk_, [this, trial] { exchange_->drop_partial(trial); });
  }
  void forget(const RunPointer& run) {
    run->over = true;
    unpin(run);
    const auto found = runs_.find(run->launch.trial);
    if (found != runs_.end() && found->second == run) runs_.erase(found);
  }
  void unpin(const RunPointer& run) {
    if (const auto pinned = std::exchange(run->pinned, std::nullopt)) cache_->unpin(*pinned);
  }

  // ---- Checkpoints, to the driver ----

  void offer(const RunPointer& run, const CheckpointInfo& made) {
    const std::uint64_t transfer = next_transfer_++;
    if (share_) {
      try {
        put_for_driver(*written_, made, transfer);
      } catch (const std::exception& e) { return complain(made, e.what()); }
      channel_->send(wire::Offer{.transfer = transfer, .attempt = run->launch.attempt, .info = made, .shared = true});
      ++run->copies;
      offered_[transfer] = {made, run};
      return;
    }
    if (exchange_ && made.bytes > begin_->inline_limit) {  // the driver fetches it
      cache_->add(made, false);
      channel_->send(
          wire::Offer{.transfer = transfer, .attempt = run->launch.attempt, .info = made, .by_content = true});
      ++run->copies;
      offered_[transfer] = {made, run};
      return;
    }
    try {
      Sending sending{std::make_unique<OutgoingCopy>(*store_, made, transfer, run->launch.attempt), run};
      cache_->add(made, false);
      channel_->send(sending.copy->offer());
      ++run->copies;
      offered_[transfer] = {made, run};
      sending_.push_back(std::move(sending));
      channel_->poke();
    } catch (const std::exception& e) { complain(made, e.what()); }
  }
  // Copies take turns, so that a large one does not keep the others waiting.
  std::optional<wire::Piece> next_whole() {
    while (!sending_.empty() && pace_->ready(channel_)) {
      Sending sending = std::move(sending_.front());
      sending_.pop_front();
      try {
        if (auto piece = sending.copy->next(pace_->longest())) {
          pace_->goes(piece->bytes.size());
          sending_.push_back(std::move(sending));
          return piece;
        }
      } catch (const std::exception& e) {
        complain(sending.copy->offer().info, e.what());
        channel_->send(wire::Unavailable{sending.copy->offer().transfer, e.what()});
        taken(sending.copy->offer().transfer, false);
      }
    }
    return std::nullopt;
  }
  void on(const wire::Taken& m) {
    std::erase_if(sending_, [&](const auto& s) { return s.copy->offer().transfer == m.transfer; });
    taken(m.transfer, m.error.empty());
  }
  void taken(std::uint64_t transfer, bool safe) {
    const auto node = offered_.extract(transfer);
    if (!node) return;
    const auto& [made, run] = node.mapped();
    if (safe) cache_->replicated(made);
    if (!safe && share_)
      asio::post(*disk_, [folder = told_folder(share_->area, transfer)] {
        std::error_code ignored;  // it goes with the area
        std::filesystem::remove_all(folder, ignored);
      });
    --run->copies;
    if (run->held && run->copies < copies_ahead) executor_.perform(*std::exchange(run->held, std::nullopt));
    settle(run);
  }
  void complain(const CheckpointInfo& made, const std::string& why) {
    channel_->send(SaveFailed{made.trial, made.steps, "it could not be sent: " + why});
  }

  void on(const wire::StreamOpen& m) { tunnel_->on(m); }
  void on(wire::StreamPiece& m) { tunnel_->on(m); }
  void on(const wire::StreamEnd& m) { tunnel_->on(m); }
  template <class M>
  void on(const M&) {
    fail(Errc::protocol, "the driver sent a message that only an agent sends");
  }

  // ---- Logs ----

  asio::awaitable<void> follow_logs() {
    for (;;) {
      const auto runs = runs_;
      for (const auto& [trial, run] : runs) {
        if (run->resolving || run->over) continue;
        if (run->last)
          settle(run);
        else
          send_log(*run);
      }
      co_await logs_.wait(0.05);
    }
  }
  // True: all that is there has been sent.
  bool send_log(Run& run) {
    while (channel_->backlog() < quiet) {
      std::string text = run.log.read();
      if (text.empty()) return true;
      channel_->send(wire::LogPiece{run.launch.trial, run.launch.attempt, std::move(text)});
    }
    return false;
  }

  template <class Job, class Then>
  void on_disk(Job job, Then then) {
    asio::post(*disk_, [this, job = std::move(job), then = std::move(then)]() mutable {
      std::optional<CheckpointInfo> result;
      std::string error;
      try {
        result = job();
      } catch (const std::exception& e) { error = e.what(); }
      asio::post(io_, [then = std::move(then), result = std::move(result), error = std::move(error)]() mutable {
        then(std::move(result), error);
      });
    });
  }

  static constexpr int copies_ahead = 2;
  static constexpr std::size_t quiet = std::size_t{512} << 10U;  // of the stream: what may wait before logs do

  const ProgramMaker& make_program_;
  AgentOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  ProcessExecutor executor_;
  std::shared_ptr<Channel> channel_;
  Signal logs_, liveness_check_, locking_, share_told_;
  Seconds heard_ = 0;
  double liveness_ = 60;  // until the driver says
  std::string host_name_ = "this host";
  std::optional<wire::Begin> begin_;
  std::deque<wire::Message> early_;
  bool begun_ = false, left_ = false, noticed_ = false, clean_ = false;
  int code_ = 0;
  std::optional<HostFolder> folder_;
  std::optional<LocalCheckpointStore> store_;
  struct Shared {
    std::filesystem::path root, area;
  };
  std::optional<Shared> share_;                             // the folder that the driver has as well
  bool shares_ = false;                                     // which it agrees to
  std::optional<LocalCheckpointStore> in_place_, written_;  // below the one and the other
  std::optional<CopyCache> cache_;
  std::map<TrialId, RunPointer> runs_;
  std::uint64_t next_transfer_ = 1;
  std::map<std::uint64_t, RunPointer> wanted_;
  std::map<std::uint64_t, std::shared_ptr<IncomingCopy>> arriving_;
  std::map<std::uint64_t, std::pair<CheckpointInfo, RunPointer>> offered_;
  std::deque<Sending> sending_;
  const std::shared_ptr<TokenBucket> rate_ = std::make_shared<TokenBucket>();  // of all that is sent
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>(io_, rate_);
  std::shared_ptr<Tunnel> tunnel_;
  std::optional<CheckpointExchange> exchange_;
  std::stop_source stop_fetches_;
  JobThreads fetches_;
  HostUsage usage_;  // of the helper's thread
  std::atomic<bool> stopping_{false};
  std::optional<asio::thread_pool> disk_, helper_;
};

}  // namespace hypertune::remote::detail
