// Agent: connects the local executor to the driver's stream, and transfers checkpoints between them.
#pragma once

#include "channel.hpp"
#include "checkpoint_exchange.hpp"
#include "copies.hpp"
#include "copy_cache.hpp"
#include "host_folder.hpp"
#include "host_usage.hpp"
#include "job_threads.hpp"
#include "log_tail.hpp"
#include "memory_kills.hpp"
#include "pace.hpp"
#include "shared_folder.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/net/spawn.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/host_state_machine.hpp>

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

namespace hypertune::inline v0::remote::detail {

/// One incarnation. Everything runs on the thread of run(), except the local executor's own threads and those that read
/// or sync whole checkpoints or wait for commands.
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
        share_received_(io_) {}

  int run();

 private:
  struct Run {
    Launch launch;
    std::size_t candidate = 0;  // index into launch.restore, used while resolving
    bool resolving = true, parked = false, over = false;
    bool started = false;  // the driver was told that it started
    std::optional<CheckpointInfo> pinned = {};
    std::string damaged = {};  // how the checkpoint it should continue from is damaged
    int repairs = 0;           // how often that has happened
    int copies = 0;            // its checkpoints that are being sent to the driver
    std::optional<Continue> held = {};
    std::optional<wire::Message> last = {};  // its final event, sent after its copies and its log
    Seconds send_not_before = 0;             // earliest time to send it
    LogTail log = {};
  };
  using RunPointer = std::shared_ptr<Run>;
  struct Sending {
    std::unique_ptr<OutgoingCopy> copy;
    RunPointer run;
  };

  // ---- The connection ----

  void send_hello();

  // Messages that are handled before Begin has been carried out.
  template <class M>
  static constexpr bool comes_before_begin = std::is_same_v<M, wire::Welcome> || std::is_same_v<M, wire::Begin> ||
                                             std::is_same_v<M, wire::Share> || std::is_same_v<M, wire::Shutdown>;

  void receive(wire::Message message);

  void on(const wire::Welcome& m);
  void on(const wire::Begin& m);
  void on(const wire::Share& m);
  void on(const wire::Shutdown& m);

  asio::awaitable<void> begin();
  bool send_proof();
  enum class Locking { done, again, refused };
  Locking try_lock();
  void begin_locally();
  void start_threads();

  void refuse(const std::string& why, bool permanent = true);
  void fail_all(const std::string& why);
  asio::awaitable<void> stop_soon();
  void stop(int code);

  asio::awaitable<void> check_liveness();

  // ---- Termination notices ----

  void wait_for_notice();
  static double time_after_notice();
  void give_notice(const std::string& why, double seconds);

  void poll_usage_and_notices(Seconds next_notice);

  // ---- Commands ----

  template <class M>
  RunPointer find(const M& m) const {
    const auto found = runs_.find(RunKey(m.trial, m.member));
    return found != runs_.end() && found->second->launch.attempt == m.attempt ? found->second : nullptr;
  }

  void on(Launch& m);
  void on(const Continue& m);
  void on(const Pause& m);
  void on(const Stop& m);
  void on(GroupMessage& m);

  // ---- The checkpoint that a trial continues from ----

  void resolve(const RunPointer& run);
  void repair(const RunPointer& run);
  void want(const RunPointer& run, bool from_driver, std::vector<std::string> without = {});
  void on(const wire::Source& m);
  void fetched(std::uint64_t transfer, bool direct, const FetchOutcome& outcome);
  void arrived(const RunPointer& run, const CheckpointInfo& copy);
  void begin(const RunPointer& run, std::optional<CheckpointInfo> from, bool cached = true);
  void on(const wire::Unavailable& m);
  void on(wire::Offer& m);
  void on(const wire::Piece& m);
  void complete_copy(std::uint64_t transfer);
  void give_up_copy(std::uint64_t transfer, const std::string& why);
  void refuse_start(const RunPointer& run, const std::string& why);

  // ---- Events ----

  void tell(Event event);
  void on_event(Started& e);
  void on_event(Reported& e);
  void on_event(Checkpointed& e);
  void on_event(CheckpointLost& e);
  void on_event(Paused& e) { last(e); }
  void on_event(Finished& e) { last(e); }
  void on_event(Stopped& e) { last(e); }
  void on_event(Failed& e);
  void on_event(SaveFailed& e) { channel_->send(e); }
  void on_event(Notice& e) { channel_->send(e); }
  void on_event(HostGained&) {}
  void on_event(HostLost&) {}
  void on_event(MemberLost&) {}  // groups are formed by the driver
  void on_event(Resized&) {}
  void on_event(GroupMessage& m) { channel_->send(std::move(m)); }

  template <class E>
  void last(E& event) {
    const auto run = find(event);
    if (!run) return;
    run->held.reset();
    run->last = wire::Message(std::move(event));
    tell_end(run);
  }
  void tell_end(const RunPointer& run);
  void forget(const RunPointer& run);
  void unpin(const RunPointer& run);

  // ---- Sending checkpoints to the driver ----

  void offer(const RunPointer& run, const CheckpointInfo& made);
  std::optional<wire::Piece> next_whole();
  void on(const wire::Taken& m);
  void taken(std::uint64_t transfer, bool safe);
  void complain(const CheckpointInfo& made, const std::string& why);

  void on(const wire::StreamOpen& m) { tunnel_->on(m); }
  void on(wire::StreamPiece& m) { tunnel_->on(m); }
  void on(const wire::StreamEnd& m) { tunnel_->on(m); }
  template <class M>
  void on(const M&) {
    fail(Errc::protocol, "the driver sent a message that only an agent sends");
  }

  // ---- Logs ----

  asio::awaitable<void> follow_logs();
  bool send_log(Run& run);

  template <class Job, class Then>
  void on_disk(Job job, Then then) {
    hypertune::detail::run_apart(*disk_, [this, job = std::move(job), then = std::move(then)]() mutable {
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
  static constexpr Seconds follow_up_delay = 0.2;                // from a trial's end by a signal to the agent's end
  static constexpr std::size_t quiet = std::size_t{512} << 10U;  // limit of the stream's backlog for sending logs

  const ProgramMaker& make_program_;
  AgentOptions options_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  ProcessExecutor executor_;
  std::shared_ptr<Channel> channel_;
  Wakeup logs_, liveness_check_, locking_, share_received_;
  Seconds heard_ = 0;
  double liveness_ = 60;  // until the driver sets it
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
  std::optional<Shared> share_;                             // the folder shared with the driver
  bool shares_ = false;                                     // the driver has agreed to share it
  std::optional<LocalCheckpointStore> in_place_, written_;  // stores below `root` and below `area`
  std::optional<CopyCache> cache_;
  std::map<RunKey, RunPointer> runs_;
  std::uint64_t next_transfer_ = 1;
  std::map<std::uint64_t, RunPointer> wanted_;
  std::map<std::uint64_t, std::shared_ptr<IncomingCopy>> arriving_;
  std::map<std::uint64_t, std::pair<CheckpointInfo, RunPointer>> offered_;
  std::deque<Sending> sending_;
  const std::shared_ptr<TokenBucket> rate_ = std::make_shared<TokenBucket>();  // limits everything that is sent
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>(io_, rate_);
  std::shared_ptr<Tunnel> tunnel_;
  std::optional<CheckpointExchange> exchange_;
  std::stop_source stop_fetches_;
  JobThreads fetches_;
  std::optional<std::uint64_t> memory_kills_ = count_memory_kills();  // that have been told
  HostUsage usage_;                                                   // used only on the helper's thread
  bool unasked_ = false;  // likewise: a failure to ask for a notice was told
  std::atomic<bool> stopping_{false};
  std::optional<asio::thread_pool> disk_, helper_;
};

}  // namespace hypertune::inline v0::remote::detail
