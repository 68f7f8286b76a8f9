// ProcessDriver: serves all worker processes on one thread, as their WorkerLinks decide.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/wakeup_event.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/execute/detail/group/groups.hpp>
#include <hypertune/execute/detail/worker_link.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/local/cgroup.hpp>
#include <hypertune/local/gpu_gate.hpp>
#include <hypertune/local/gpu_watch.hpp>
#include <hypertune/local/guardian.hpp>
#include <hypertune/local/process_options.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

class ProcessDriver final : public hypertune::detail::ExecutorState {
 public:
  explicit ProcessDriver(ProcessOptions options);
  ProcessDriver(const ProcessDriver&) = delete;
  ProcessDriver& operator=(const ProcessDriver&) = delete;
  ~ProcessDriver() override { shutdown(); }

  Host host() const;
  std::vector<Host> hosts() override { return {host()}; }
  void start(ExecutorStart start) override;
  void perform(Command command) override;
  void wait(Seconds deadline) override { wakeup_.wait_for(deadline - run_clock()); }
  void notify() override { wakeup_.signal(); }
  void shutdown() override;

 private:
  struct Worker {
    Worker(std::uint64_t number, Descriptor fd, LinkOptions link_options)
        : id(number), socket(std::move(fd)), link(std::move(link_options)) {}
    std::uint64_t id;
    Descriptor socket;
    WorkerLink link;
    FrameDecoder decoder{wire::message_types};
    std::string out;  // bytes still to be sent
    bool writing = false;
    pid_t pid = 0;
    std::uint64_t baseline = 0;   // memory of the process when it was forked, shared with this program
    std::uint64_t log_begin = 0;  // length of the trial's log when the attempt began
    std::optional<std::string> devices;
    std::vector<int> gpus;         // devices on which it may hold memory
    std::optional<TrialId> drops;  // a paused trial that was stopped, until its run has ended
  };
  struct Held {  // a launch that waits for memory of a GPU or an old process
    Launch launch;
    Seconds since;
    bool told = false;
  };
  static constexpr std::uint64_t control_key = 0, wake_key = 1;

  void start_guardian();

  // ---- the thread ----
  void run();

  // At shutdown: lets idle workers exit normally, so that their objects are destroyed. Workers within a step are killed
  // first, because their trials may begin elsewhere now. Not needed for external commands, for which workers keep no
  // objects.
  void release_all();
  void on_ready(const epoll_event& event);
  int timeout() const;
  void carry_out();
  void carry_out(Command command);
  void launch(Launch launch);

  // ---- waiting launches ----
  bool must_wait(Held& held);
  void launch_held();
  bool stop_held(const Stop& stop);
  void occupy(Worker& worker, const std::vector<int>& gpus);
  void vacate(Worker& worker);

  // ---- workers ----
  void begin(Launch launch);
  std::string devices(const Slot& slot) const { return SlotBinding({}, gpus_, false).visible_devices(slot); }

  // A free worker that has run before and is bound to the same devices (CUDA reads them only once), else a new one.
  std::shared_ptr<Worker> free_worker(const Launch& launch);
  // Keeps one process more than needed, so that starting a trial does not wait for a fork.
  void ensure_spare();
  std::shared_ptr<Worker> spawn();
  void answer(const Command& command);
  void read(Worker& reference);
  void flush(Worker& worker);
  void hear_guardian();
  void lose_guardian();
  void restart_guardian();
  // The process is gone: first reads what it had sent.
  void retire(const std::shared_ptr<Worker>& worker, Cause cause);
  static bool has_limit(const Worker& worker);
  void tick();
  void look_at_memory(const std::shared_ptr<Worker>& worker);

  // ---- actions and events ----
  void apply(const std::shared_ptr<Worker>& worker, LinkActions actions);

  void on(const Finished& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void on(const Stopped& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void on(const Failed& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void on(const Paused& e);
  template <class E>
  void on(const E&) {}

  void emit(Event event);
  void tell(Event event);
  // Kills a worker of a group that does not take part any more.
  void kill(TrialId trial, Attempt attempt, int member);

  void watch(int fd, std::uint64_t key);
  void wake();
  std::filesystem::path log_of(const Launch& launch) const;

  ProcessOptions options_;
  std::vector<int> cores_;
  std::vector<std::string> gpus_;
  pid_t owner_;
  ExecutorStart start_;

  // Used by thread_.
  std::unique_ptr<Guardian> guardian_;
  bool guardian_lost_ = false;
  std::string spawn_error_;
  Descriptor poll_, wake_;
  std::map<std::uint64_t, std::shared_ptr<Worker>> workers_;
  std::map<RunKey, std::shared_ptr<Worker>> by_trial_;  // running or parked
  Groups groups_{{.down = [this](Command command) { carry_out(std::move(command)); },
                  .kill = [this](TrialId trial, Attempt attempt, int member) { kill(trial, attempt, member); },
                  .up = [this](Event event) { tell(std::move(event)); }}};
  std::size_t parked_ = 0;
  std::vector<Held> held_;
  std::optional<GpuGate> gate_;
  CgroupTree cgroups_;
  std::uint64_t next_id_ = 2;
  Seconds look_at_ = 0, guardian_look_ = 0;
  std::thread thread_;
  std::unique_ptr<GpuWatch> gpu_watch_;  // its thread wakes thread_

  hypertune::detail::WakeupEvent wakeup_;  // wakes the thread in wait()
  mutable std::mutex mutex_;               // guards queue_
  std::vector<Command> queue_;
  std::atomic<std::thread::id> io_thread_{};
  std::atomic<bool> closing_{false};
};

}  // namespace hypertune::inline v0::local::detail
