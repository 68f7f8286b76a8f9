// ProcessDriver: carries out what the WorkerLinks say, on one thread, for all processes.
#pragma once

#include <hypertune/detail/doorbell.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/bounded_log.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/execute/groups.hpp>
#include <hypertune/execute/worker.hpp>
#include <hypertune/execute/worker_link.hpp>
#include <hypertune/local/cgroup.hpp>
#include <hypertune/local/gpu_watch.hpp>
#include <hypertune/local/guardian.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/process_options.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::local::detail {

class ProcessDriver {
 public:
  explicit ProcessDriver(ProcessOptions options)
      : options_(std::move(options)), cores_(usable_cores()), owner_(::getpid()) {
    options_.validate();
    if (options_.gpus != 0) gpus_ = usable_gpus();
    if (options_.gpus < 0) options_.gpus = static_cast<double>(gpus_.size());
    for (std::size_t i = gpus_.size(); i < static_cast<std::size_t>(std::ceil(options_.gpus)); ++i)
      gpus_.push_back(std::to_string(i));
    gpus_.resize(static_cast<std::size_t>(std::ceil(options_.gpus)));
    if (options_.memory == 0) options_.memory = usable_memory();
    if (options_.cpus <= 0)
      options_.cpus = options_.workers > 0 ? options_.workers : static_cast<double>(cores_.size());
  }
  ProcessDriver(const ProcessDriver&) = delete;
  ProcessDriver& operator=(const ProcessDriver&) = delete;
  ~ProcessDriver() { shutdown(); }

  Host host() const {
    return Host{
        .name = "localhost",
        .total = {.cpus = options_.cpus, .gpus = options_.gpus, .memory = options_.memory, .custom = options_.custom}};
  }

  void start(ExecutorStart start) {
    if (thread_.joinable()) fail(Errc::usage, "the executor has been started already");
    start_ = std::move(start);
    closing_ = false;
    start_guardian();
    poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!poll_ || !wake_) fail(Errc::io, "cannot watch worker processes: {}", std::generic_category().message(errno));
    watch(guardian_->control(), control_key);
    watch(wake_.get(), wake_key);
    const hypertune::detail::SignalBlock block;
    if (!gpus_.empty() && options_.gpu_wait > 0) {
      gate_.emplace(gpus_.size(), options_.gpu_wait, hypertune::detail::steady_seconds());
      gpu_watch_ = std::make_unique<GpuWatch>(gpus_, hypertune::detail::steady_seconds, [this] { wake(); });
    }
    thread_ = std::thread([this] { run(); });
  }

  void perform(Command command) {
    bool first = false;
    {
      const std::lock_guard guard(mutex_);
      first = queue_.empty();
      queue_.push_back(std::move(command));
    }
    if (first && std::this_thread::get_id() != io_thread_.load()) wake();
  }

  void wait(Seconds deadline) { bell_.wait_for(deadline - run_clock()); }
  void notify() { bell_.ring(); }

  void shutdown() {
    if (::getpid() !=
        owner_) {  // a worker that leaves by exit() destroys its copy of this: the processes are not its own
      if (thread_.joinable()) thread_.detach();
      static_cast<void>(guardian_.release());
      return;
    }
    if (thread_.joinable()) {
      closing_ = true;
      wake();
      thread_.join();
    }
    gpu_watch_.reset();
    gate_.reset();
    guardian_.reset();
    cgroups_.remove();
    held_.clear();
    workers_.clear();
    by_trial_.clear();
    groups_.clear();
    queue_.clear();
    parked_ = 0;
    poll_ = Descriptor();
    wake_ = Descriptor();
    start_.sink = nullptr;
    start_.program.reset();
  }

 private:
  struct Worker {
    Worker(std::uint64_t number, Descriptor fd, LinkOptions link_options)
        : id(number), socket(std::move(fd)), link(std::move(link_options)) {}
    std::uint64_t id;
    Descriptor socket;
    WorkerLink link;
    FrameDecoder decoder{wire::message_types};
    std::string out;  // what the socket did not take yet
    bool writing = false;
    pid_t pid = 0;
    std::uint64_t baseline = 0;   // memory that it shared with this program when it began
    std::uint64_t log_begin = 0;  // where the attempt's part of the trial's log begins
    std::optional<std::string> devices;
    std::vector<int> gpus;         // where it may hold memory
    std::optional<TrialId> drops;  // a paused trial that is not needed any more, while it is on its way out
  };
  struct Held {  // a launch that waits for something to be gone
    Launch launch;
    Seconds since;
    bool told = false;
  };
  static constexpr std::uint64_t control_key = 0, wake_key = 1;

  void start_guardian() {
    const SlotBinding binding(cores_, gpus_, options_.pin && options_.cpus <= static_cast<double>(cores_.size()));
    const auto worker_main = [this, binding](int socket) {
      WorkerOptions options;
      options.bind_slot = [this, binding](const Slot& slot) {
        binding(slot);
        cgroups_.enter(slot.resources.memory);
      };
      return run_worker(socket, *start_.program, std::move(options));
    };
    guardian_ = std::make_unique<Guardian>(worker_main, [this] { cgroups_.remove(); });
  }

  // ---- the thread ----
  void run() {
    io_thread_ = std::this_thread::get_id();
    ensure_spare();
    std::array<epoll_event, 64> ready;
    while (!closing_) {
      carry_out();
      launch_held();
      if (closing_) break;
      const int n = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()), timeout());
      for (int i = 0; i < n && !closing_; ++i) hear(ready[static_cast<std::size_t>(i)]);
      tick();
    }
    release_all();
    io_thread_ = std::thread::id();
  }

  // The objects that workers keep are destroyed, as those of any process that ends. A step under way is not waited for:
  // it ends before anything else is waited for, as its trial may begin elsewhere now. Of commands there is nothing in a
  // worker.
  void release_all() {
    if (start_.program->external() || guardian_lost_) return;
    const Seconds until = hypertune::detail::steady_seconds() + options_.grace;
    std::vector<std::uint64_t> leaving;
    for (const auto& [id, worker] : workers_)
      if (worker->link.launch() != nullptr &&
          (worker->link.state() == WorkerLink::State::running || worker->link.state() == WorkerLink::State::greeting))
        guardian_->kill(id);
    for (const auto& [id, worker] : workers_) {
      apply(worker, worker->link.release());
      if (worker->link.state() == WorkerLink::State::leaving) leaving.push_back(id);
    }
    const auto gone = [&](std::uint64_t id) { return !workers_.contains(id); };
    std::array<epoll_event, 64> ready;
    for (std::erase_if(leaving, gone); !leaving.empty() && !guardian_lost_; std::erase_if(leaving, gone)) {
      const double left = until - hypertune::detail::steady_seconds();
      if (left <= 0) return;
      const int n = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(std::min(left, 60.0) * 1000) + 1);
      for (int i = 0; i < n; ++i) hear(ready[static_cast<std::size_t>(i)]);
    }
  }

  void hear(const epoll_event& event) {
    if (event.data.u64 == wake_key) {
      std::uint64_t count = 0;
      while (::read(wake_.get(), &count, sizeof count) > 0) {}
    } else if (event.data.u64 == control_key) {
      hear_guardian();
    } else if (const auto found = workers_.find(event.data.u64); found != workers_.end()) {
      const auto worker = found->second;
      if ((event.events & EPOLLOUT) != 0) flush(*worker);
      if ((event.events & ~static_cast<unsigned>(EPOLLOUT)) != 0) read(*worker);
    }
  }

  int timeout() const {
    if (const std::lock_guard guard(mutex_); !queue_.empty()) return 0;
    Seconds at = std::numeric_limits<Seconds>::infinity();
    bool limited = false;
    for (const auto& [id, worker] : workers_) {
      at = std::min(at, worker->link.deadline());
      limited = limited || has_limit(*worker);
    }
    if (limited) at = std::min(at, look_at_);
    if (!workers_.empty()) at = std::min(at, guardian_look_);
    if (gate_ && !held_.empty()) at = std::min(at, hypertune::detail::steady_seconds() + 0.25);
    if (std::isinf(at)) return -1;
    return static_cast<int>(std::clamp((at - hypertune::detail::steady_seconds()) * 1000 + 1, 0.0, 60000.0));
  }

  void carry_out() {
    for (;;) {
      std::vector<Command> commands;
      {
        const std::lock_guard guard(mutex_);
        commands.swap(queue_);
      }
      if (commands.empty()) return;
      for (auto& command : commands) {
        if (closing_) return;
        if (groups_.perform(command))
          groups_.work();
        else
          carry_out(std::move(command));
      }
    }
  }

  void carry_out(Command command) {
    const auto* message = std::get_if<GroupMessage>(&command);
    if (auto* launch = std::get_if<Launch>(&command))
      this->launch(std::move(*launch));
    else if (message != nullptr && message->kind == GroupMessage::Kind::end)
      kill(message->trial, message->attempt, message->member);
    else
      answer(command);
  }

  void launch(Launch launch) {
    const Seconds now = hypertune::detail::steady_seconds();
    if (launch.parked) {
      const auto found = by_trial_.find(key_of(launch));
      if (found == by_trial_.end() || found->second->link.state() != WorkerLink::State::parked) {
        Cause cause{.source = FailureSource::infrastructure, .text = "its process is gone"};
        if (found != by_trial_.end() && found->second->link.lost_parked()) cause = *found->second->link.lost_parked();
        if (found != by_trial_.end()) by_trial_.erase(found);
        cause.text = "while it was paused: " + cause.text;
        emit(Failed{launch.trial, launch.attempt, std::move(cause), key_of(launch).second});
        return;
      }
      --parked_;
      apply(found->second, found->second->link.start(std::move(launch), now));
      return;
    }
    if (Held held{std::move(launch), now}; must_wait(held))
      held_.push_back(std::move(held));
    else
      begin(std::move(held.launch));
  }

  // ---- launches that wait ----
  bool must_wait(Held& held) {
    const Launch& launch = held.launch;
    // There are never two processes of one trial.
    for (const auto& [id, worker] : workers_)
      if (worker->drops == launch.trial) return true;
    if (!gate_ || launch.allocation.lead.gpus.empty()) return false;
    if (!start_.program->external())  // a process that goes on there has its memory already
      for (const auto& [id, worker] : workers_)
        if (worker->link.free() && worker->devices == devices(launch.allocation.lead)) return false;
    if (auto reading = gpu_watch_->take()) gate_->observe(std::move(*reading));
    const Seconds now = hypertune::detail::steady_seconds();
    const auto answer = gate_->ask(launch.allocation.lead.gpus, launch.allocation.lead.resources.gpus, now);
    if (!answer.given_up.empty())
      emit(Notice{fmt::format("trial {} begins all the same: {}", launch.trial, answer.given_up)});
    if (answer.go) return false;
    if (now >= held.since + 1 && !std::exchange(held.told, true))
      emit(Notice{fmt::format("trial {} waits for {}", launch.trial, answer.waits)});
    gpu_watch_->look();
    return true;
  }
  void launch_held() {
    for (std::size_t i = 0; i < held_.size() && !closing_;) {
      if (must_wait(held_[i])) {
        ++i;
        continue;
      }
      Launch launch = std::move(held_[i].launch);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
      begin(std::move(launch));
    }
  }
  bool stop_held(const Stop& stop) {
    const auto held = std::find_if(held_.begin(), held_.end(), [&](const Held& h) {
      return key_of(h.launch) == std::pair(stop.trial, stop.member) && h.launch.attempt == stop.attempt;
    });
    if (held == held_.end()) return false;
    held_.erase(held);
    emit(Stopped{stop.trial, stop.attempt, stop.member});
    return true;
  }
  void occupy(Worker& worker, const std::vector<int>& gpus) {
    if (!gate_ || !worker.gpus.empty()) return;
    worker.gpus = gpus;
    gate_->enter(worker.gpus);
  }
  void vacate(Worker& worker) {
    if (gate_ && !worker.gpus.empty()) gate_->leave(worker.gpus, hypertune::detail::steady_seconds());
    worker.gpus.clear();
  }

  void begin(Launch launch) {
    const Seconds now = hypertune::detail::steady_seconds();
    const auto worker = free_worker(launch);
    if (worker == nullptr) {
      emit(
          Failed{launch.trial, launch.attempt,
                 Cause{.source = FailureSource::infrastructure, .text = "no process could be started: " + spawn_error_},
                 key_of(launch).second});
      return;
    }
    worker->devices = devices(launch.allocation.lead);
    occupy(*worker, launch.allocation.lead.gpus);
    if (launch.allocation.lead.resources.memory > 0) cgroups_.prepare();
    worker->log_begin = hypertune::detail::LogParts::of(log_of(launch), start_.log_limit).length();
    by_trial_[key_of(launch)] = worker;
    apply(worker, worker->link.start(std::move(launch), now));
    ensure_spare();
  }

  std::string devices(const Slot& slot) const { return SlotBinding({}, gpus_, false).visible_devices(slot); }

  // One that has served before and is bound to the same devices (CUDA reads them once), else a new one.
  std::shared_ptr<Worker> free_worker(const Launch& launch) {
    const std::string wanted = devices(launch.allocation.lead);
    std::shared_ptr<Worker> fresh;
    for (const auto& [id, worker] : workers_) {
      if (!worker->link.free()) continue;
      if (worker->devices && *worker->devices == wanted) return worker;
      if (!worker->devices) fresh = worker;
    }
    return fresh != nullptr ? fresh : spawn();
  }

  // Starting a trial shall not wait for a fork: there is always a process more than needed.
  void ensure_spare() {
    std::size_t free = 0;
    bool fresh = false;
    for (const auto& [id, worker] : workers_) {
      if (!worker->link.free()) continue;
      ++free;
      fresh = fresh || !worker->devices;
    }
    if (free == 0 || (!fresh && !gpus_.empty())) spawn();
    const auto most = static_cast<std::size_t>(options_.cpus) + 2;
    if (free <= most) return;
    for (const auto& [id, worker] : std::map(workers_)) {
      if (free <= most) break;
      if (!worker->link.free()) continue;
      --free;
      apply(worker, worker->link.dismiss());
    }
  }

  std::shared_ptr<Worker> spawn() {
    if (guardian_lost_) restart_guardian();
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      spawn_error_ = std::generic_category().message(errno);
      return nullptr;
    }
    Descriptor mine(ends[0]);
    const Descriptor theirs(ends[1]);
    const std::uint64_t id = next_id_++;
    if (guardian_lost_ || !guardian_->spawn(id, theirs.get())) {
      spawn_error_ = "the guardian of the worker processes is gone";
      return nullptr;
    }
    LinkOptions link;
    link.hang_limit = start_.hang_limit;
    link.grace = std::max(options_.grace, start_.program->grace() + 1);  // a run that needs all of its own may save
    link.prints = start_.program->external();
    link.reusable = start_.program->reusable();
    link.welcome.directory = start_.directory.string();
    link.welcome.checkpoints = start_.checkpoints.string();
    link.welcome.log_limit = start_.log_limit;
    for (const auto& origin : start_.origins) link.welcome.origins.push_back(origin.string());
    constexpr double heartbeat = 5;
    link.welcome.heartbeat = start_.hang_limit > 0 ? std::clamp(start_.hang_limit / 4, 0.01, heartbeat) : heartbeat;
    const auto worker = std::make_shared<Worker>(id, std::move(mine), std::move(link));
    workers_[id] = worker;
    watch(worker->socket.get(), id);
    return worker;
  }

  void answer(const Command& command) {
    const auto [trial, attempt, member] = std::visit(
        [](const auto& c) {
          if constexpr (requires { c.member; })
            return std::tuple(c.trial, c.attempt, c.member);
          else
            return std::tuple(c.trial, c.attempt, 0);
        },
        command);
    if (const auto* stop = std::get_if<Stop>(&command); stop != nullptr && !held_.empty() && stop_held(*stop)) return;
    const auto found = by_trial_.find(RunKey(trial, member));
    if (found == by_trial_.end()) return;  // it ended meanwhile
    const auto worker = found->second;
    const Launch* here = worker->link.launch();
    if (here == nullptr || here->attempt != attempt) return;
    if (worker->link.state() == WorkerLink::State::parked && std::holds_alternative<Stop>(command)) {
      --parked_;
      by_trial_.erase(found);
      worker->drops = trial;
    }
    // Of several workers all do the same: what can be saved ends.
    const bool keep = here->seat ? false : parked_ < options_.max_parked;
    apply(worker, worker->link.perform(command, keep, hypertune::detail::steady_seconds()));
  }

  void read(Worker& reference) {
    const auto worker = workers_.at(reference.id);
    std::array<char, 65536> buffer;
    for (;;) {
      const ssize_t n = ::recv(worker->socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {  // closed: its end is told by the guardian, which is asked to make sure
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, worker->socket.get(), nullptr);
        if (worker->link.state() != WorkerLink::State::leaving) guardian_->kill(worker->id);
        return;
      }
      try {
        worker->decoder.feed(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
        while (auto frame = worker->decoder.next())
          apply(worker, worker->link.receive(wire::decode(*frame), hypertune::detail::steady_seconds()));
      } catch (const Error& e) {
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, worker->socket.get(), nullptr);
        apply(worker,
              worker->link.kill(Cause{.source = FailureSource::infrastructure,
                                      .text = fmt::format("its process broke the worker protocol: {}", e.what())}));
        return;
      }
      if (static_cast<std::size_t>(n) < buffer.size()) return;
    }
  }

  void hear_guardian() {
    for (;;) {
      bool lost = false;
      const auto reply = guardian_->reply(lost);
      if (lost) return lose_guardian();
      if (!reply) return;
      const auto found = workers_.find(reply->id);
      if (found == workers_.end()) continue;
      const auto worker = found->second;
      switch (reply->what) {
        case GuardianReply::What::spawned:
          worker->pid = reply->pid;
          worker->baseline = process::resident_memory(reply->pid);
          break;
        case GuardianReply::What::exited: retire(worker, cause_of_status(reply->status)); break;
        case GuardianReply::What::failed:
          retire(worker, Cause{.source = FailureSource::infrastructure,
                               .text = fmt::format("no process could be forked: {}",
                                                   std::generic_category().message(reply->status))});
          break;
      }
    }
  }

  void lose_guardian() {
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, guardian_->control(), nullptr);
    guardian_lost_ = true;
    for (const auto& [id, worker] : std::map(workers_))  // the kernel ends them with it
      retire(worker,
             Cause{.source = FailureSource::infrastructure, .text = "the guardian of the worker processes was killed"});
  }
  void restart_guardian() {
    try {
      start_guardian();
      watch(guardian_->control(), control_key);
      guardian_lost_ = false;
    } catch (const Error& e) { spawn_error_ = e.what(); }
  }

  // The process is gone: what it had sent comes first.
  void retire(const std::shared_ptr<Worker>& worker, Cause cause) {
    read(*worker);
    workers_.erase(worker->id);
    const bool was_parked = worker->link.state() == WorkerLink::State::parked;
    if (was_parked) --parked_;
    vacate(*worker);
    worker->drops.reset();
    if (const Launch* launch = worker->link.launch(); launch != nullptr && cgroups_.killed(worker->pid))
      cause =
          Cause{.source = FailureSource::user,
                .text = fmt::format("memory limit of {:.0f} MiB exceeded: the kernel ended the trial's processes",
                                    static_cast<double>(launch->allocation.lead.resources.memory) / (1024.0 * 1024.0))};
    cgroups_.drop(worker->pid);
    if (const Launch* launch = worker->link.launch())
      add_last_words(cause, last_line(log_of(*launch), worker->log_begin, start_.log_limit),
                     "; the last line of its log: ");
    apply(worker, worker->link.exited(std::move(cause)));
    worker->socket = Descriptor();
  }

  static bool has_limit(const Worker& worker) {
    const Launch* launch = worker.link.launch();
    return launch != nullptr && launch->allocation.lead.resources.memory > 0 && worker.pid > 0 &&
           worker.link.state() != WorkerLink::State::parked && worker.link.state() != WorkerLink::State::gone;
  }

  void tick() {
    const Seconds now = hypertune::detail::steady_seconds();
    if (now >= guardian_look_) {
      guardian_look_ = now + 1;
      if (!guardian_lost_ && guardian_->wake())
        emit(Notice{"the guardian of the worker processes had been stopped, and goes on"});
    }
    const bool look = now >= look_at_;
    if (look) look_at_ = now + options_.memory_interval;
    std::vector<std::shared_ptr<Worker>> due;
    for (const auto& [id, worker] : workers_)
      if (now >= worker->link.deadline() || (look && has_limit(*worker))) due.push_back(worker);
    for (const auto& worker : due) {
      apply(worker, worker->link.tick(now));
      if (look && has_limit(*worker) && !cgroups_.holds(worker->pid)) look_at_memory(worker);
    }
  }

  void look_at_memory(const std::shared_ptr<Worker>& worker) {
    const std::uint64_t limit = worker->link.launch()->allocation.lead.resources.memory;
    const std::uint64_t total = process::tree_memory(worker->pid);
    const std::uint64_t used = total - std::min(total, worker->baseline);
    if (used <= limit) return;
    const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); };
    apply(worker, worker->link.kill(Cause{.source = FailureSource::user,
                                          .text = fmt::format("memory limit of {:.0f} MiB exceeded: {:.0f} MiB in use",
                                                              mib(limit), mib(used))}));
  }

  void apply(const std::shared_ptr<Worker>& worker, LinkActions actions) {
    for (const auto& message : actions.send) wire::append(worker->out, message);
    if (!actions.send.empty()) flush(*worker);
    if (actions.kill && !guardian_lost_) guardian_->kill(worker->id);
    if (worker->link.free()) {
      worker->drops.reset();
      if (start_.program->external()) vacate(*worker);
    }
    for (auto& event : actions.events) {
      std::visit([&](const auto& e) { follow(e); }, event);
      emit(std::move(event));
    }
  }

  void follow(const Finished& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void follow(const Stopped& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void follow(const Failed& e) { by_trial_.erase(RunKey(e.trial, e.member)); }
  void follow(const Paused& e) {
    if (e.parked)
      ++parked_;
    else
      by_trial_.erase(RunKey(e.trial, e.member));
  }
  template <class E>
  void follow(const E&) {}

  void emit(Event event) {
    if (groups_.hear(event))
      groups_.work();
    else
      tell(std::move(event));
  }
  void tell(Event event) {
    if (!closing_ && start_.sink) start_.sink(std::move(event));
  }
  // A worker of a group does not take part any more.
  void kill(TrialId trial, Attempt attempt, int member) {
    const auto found = by_trial_.find(RunKey(trial, member));
    if (found == by_trial_.end()) return;
    const auto worker = found->second;
    if (const Launch* here = worker->link.launch(); here == nullptr || here->attempt != attempt) return;
    apply(worker, worker->link.kill({.source = FailureSource::infrastructure,
                                     .text = "it did not take part in a collective within the limit"}));
  }

  void flush(Worker& worker) {
    while (!worker.out.empty() && worker.socket) {
      const ssize_t n = ::send(worker.socket.get(), worker.out.data(), worker.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) break;
      if (n < 0)
        worker.out.clear();  // it is gone; the guardian tells
      else
        worker.out.erase(0, static_cast<std::size_t>(n));
    }
    const bool more = !worker.out.empty();
    if (more != worker.writing && worker.socket) {
      worker.writing = more;
      epoll_event event{};
      event.events = EPOLLIN | (more ? static_cast<unsigned>(EPOLLOUT) : 0U);
      event.data.u64 = worker.id;
      ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, worker.socket.get(), &event);
    }
  }

  void watch(int fd, std::uint64_t key) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      fail(Errc::io, "cannot watch a worker process: {}", std::generic_category().message(errno));
  }
  void wake() {
    const std::uint64_t one = 1;
    if (wake_) static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }
  std::filesystem::path log_of(const Launch& launch) const {
    return start_.directory / "trials" / std::to_string(launch.trial) / log_name(key_of(launch).second);
  }

  ProcessOptions options_;
  std::vector<int> cores_;
  std::vector<std::string> gpus_;
  pid_t owner_;
  ExecutorStart start_;

  // Of the thread.
  std::unique_ptr<Guardian> guardian_;
  bool guardian_lost_ = false;
  std::string spawn_error_;
  Descriptor poll_, wake_;
  std::map<std::uint64_t, std::shared_ptr<Worker>> workers_;
  std::map<RunKey, std::shared_ptr<Worker>> by_trial_;  // under way, or parked
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
  std::unique_ptr<GpuWatch> gpu_watch_;  // has a thread that wakes this one

  hypertune::detail::Doorbell bell_;  // wakes the thread that waits for the experiment
  mutable std::mutex mutex_;          // of the queue
  std::vector<Command> queue_;
  std::atomic<std::thread::id> io_thread_{};
  std::atomic<bool> closing_{false};
};

}  // namespace hypertune::inline v0::local::detail
