// RemoteExecutor: routing commands to hosts and events back, and hosts that join and leave.
#pragma once

#include "driver_checkpoints.hpp"
#include "link.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/wakeup_event.hpp>
#include <hypertune/execute/detail/group/groups.hpp>
#include <hypertune/execute/detail/host_text.hpp>
#include <hypertune/remote/executor.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <variant>

namespace hypertune::inline v0::remote {

/// The part that is equal for the same problem of several workers; names of workers, pods and nodes are removed.
std::string kind_of_problem(const std::string& why);

class RemoteExecutor::State final : public hypertune::detail::ExecutorState,
                                    public std::enable_shared_from_this<RemoteExecutor::State> {
 public:
  using Link = detail::Link;
  using LinkPointer = detail::LinkPointer;
  using Connection = detail::Connection;
  using ConnectionPointer = detail::ConnectionPointer;
  using Route = detail::Route;

  State(HostPool pool, RemoteOptions options) : pool_(std::move(pool)), options_(std::move(options)) {
    options_.validate();
  }
  ~State() override { shutdown(); }

  std::vector<Host> hosts() override;
  void start(ExecutorStart start) override;
  void perform(Command command) override;
  void wait(Seconds deadline) override;
  void notify() override { wakeup_.signal(); }
  void shutdown() override;
  std::vector<HostAccount> accounts();

 private:
  // ---- hosts (executor_hosts.cpp) ----
  void begin();
  void look_soon();
  void look_at_pool();
  void number(const LinkPointer& link);
  void step(const LinkPointer& link, const std::function<HostActions(HostStateMachine&)>& change);
  void arm(const LinkPointer& link);
  void tick(const LinkPointer& link);
  detail::asio::awaitable<void> connect(LinkPointer link, std::uint64_t generation);
  void open(const LinkPointer& link, AgentStream stream);
  detail::asio::awaitable<void> read_errors(ConnectionPointer connection);
  detail::asio::awaitable<void> retire(LinkPointer link, ConnectionPointer connection, std::string why);
  void give_up(const LinkPointer& link, const std::string& why);
  void close(const LinkPointer& link, double grace);
  void send_begin(const LinkPointer& link);
  void announce(const LinkPointer& link);
  void say_why(const LinkPointer& link);
  void fail_all(const LinkPointer& link, bool preempted);

  // ---- hosts that go away (executor_leaving.cpp) ----
  void drain(const LinkPointer& link, const std::string& why, double seconds, bool for_good);
  void ask_to_leave(const LinkPointer& link, RunKey run, Route& route);
  void leave_if_empty(const LinkPointer& link);
  void retire_host(const LinkPointer& link);

  // ---- state that other threads may read (executor_run.cpp) ----
  void publish(Link& link);
  bool all_refused() const;
  void check_all_refused();
  void fail_run(const std::string& why, Errc code);
  detail::asio::awaitable<void> close_connections();
  void stop_thread();

  // ---- commands and events (executor_routes.cpp) ----
  void drain_queue();
  void execute(Launch& m);
  void execute(const Continue& m);
  void execute(const Pause& m);
  void execute(const Stop& m);
  void execute(const Resize&) {}  // of groups that no longer exist; groups_ handles the others
  void execute(const GroupMessage& m);
  LinkPointer link_of(RunKey run) const;
  void erase(const LinkPointer& link, RunKey run);
  void receive(const LinkPointer& link, const ConnectionPointer& connection, wire::Message message);
  // Not by const reference: the template below would be preferred.
  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::Hello& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::Refusal& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Started& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Reported& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Paused& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Finished& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Stopped& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Failed& m);
  static constexpr Seconds max_for_memory = 60;
  void end_with_more_memory(const LinkPointer& link, const Failed& failed, Seconds until);
  void on(const LinkPointer& link, const ConnectionPointer& connection, SaveFailed& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, GroupMessage& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, Notice& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::LogPiece& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::Usage& m);
  void on(const LinkPointer& link, const ConnectionPointer& connection, wire::Draining& m);
  template <class M>
  void on(const LinkPointer& link, const ConnectionPointer& connection, M& m);
  template <class E>
  void end(const LinkPointer& link, E& event);
  void emit(Event event);
  void tell(Event event);
  void append_log(const wire::LogPiece& piece);

  HostPool pool_;
  RemoteOptions options_;
  detail::asio::io_context io_{1};
  std::optional<detail::asio::executor_work_guard<detail::asio::io_context::executor_type>> work_;
  // Separate pools, because hosts that hang must not hold up the checkpoints of those that work.
  std::optional<detail::asio::thread_pool> dials_;  // a hanging host blocks a thread
  std::optional<detail::asio::thread_pool> ends_;   // for ending processes, and access to shared folders
  std::thread thread_;
  std::stop_source stop_dialing_;
  std::stop_source closing_;  // used on any thread; declared before the members that refer to it
  bool closing() const { return closing_.stop_requested(); }
  bool start_called_ = false;  // used by the thread that calls start() and shutdown()

  // Used on the executor's thread:
  std::vector<LinkPointer> links_;
  std::vector<LinkPointer> by_index_;  // hosts that the Tuner knows, by its number
  struct RunHash {
    std::size_t operator()(RunKey run) const {
      return std::hash<TrialId>()(run.first) ^ (static_cast<std::size_t>(run.second) << 40U);
    }
  };
  std::unordered_map<RunKey, LinkPointer, RunHash> by_run_;  // running or parked
  Groups groups_{{.down = [this](Command command) { std::visit([this](auto& m) { execute(m); }, command); },
                  .kill =
                      [this](TrialId trial, Attempt attempt, int member) {
                        execute(GroupMessage{
                            .trial = trial, .attempt = attempt, .member = member, .kind = GroupMessage::Kind::end});
                      },
                  .up = [this](Event event) { tell(std::move(event)); }}};
  std::vector<Command> carrying_;  // commands that drain_queue() is carrying out; empty otherwise
  ExecutorStart start_;
  bool started_ = false, active_ = false;
  std::vector<Notice> early_;  // raised before the experiment is active
  std::string experiment_;
  std::uint64_t epoch_ = 0, serial_ = 0;
  bool log_failed_ = false, limit_reported_ = false;
  detail::DriverCheckpoints checkpoints_{{.io = io_,
                                          .links = links_,
                                          .options = options_.transfer,
                                          .closing = closing_,
                                          .emit = [this](Event event) { emit(std::move(event)); },
                                          .publish = [this](Link& link) { publish(link); }}};
  std::optional<detail::asio::steady_timer> refusal_timer_;  // runs while every host is refused

  // Used on any thread:
  std::atomic<bool> look_pending_{false};
  std::atomic<int> ending_{0};  // ending processes of connections that are waited for
  mutable std::mutex mutex_;    // guards the following members
  std::condition_variable tried_changed_;
  std::vector<Host> hosts_;
  struct Published {
    HostAccount account;
    std::string problem;              // why the host is not used, without the consequence
    std::optional<Seconds> up_since;  // start of the current connection, for its seconds
    bool usable = false, tried = false;
  };
  std::vector<Published> published_;    // in the order of links_
  std::size_t usable_ = 0, tried_ = 0;  // counts in published_
  std::string failure_;                 // why the run cannot continue
  Errc failure_code_ = Errc::resources;
  std::vector<Command> queue_;
  bool woken_ = false;
  hypertune::detail::WakeupEvent wakeup_;
};

}  // namespace hypertune::inline v0::remote
