// ProcessDriver: start and shutdown, its thread, and launches.
#pragma once

#include <hypertune/detail/signal_block.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/detail/worker.hpp>
#include <hypertune/local/process_driver.hpp>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>
#include <variant>

namespace hypertune::inline v0::local::detail {

ProcessDriver::ProcessDriver(ProcessOptions options)
    : options_(std::move(options)), cores_(usable_cores()), owner_(::getpid()) {
  options_.validate();
  if (options_.gpus != 0) gpus_ = usable_gpus();
  if (options_.gpus < 0) options_.gpus = static_cast<double>(gpus_.size());
  for (std::size_t i = gpus_.size(); i < static_cast<std::size_t>(std::ceil(options_.gpus)); ++i)
    gpus_.push_back(std::to_string(i));
  gpus_.resize(static_cast<std::size_t>(std::ceil(options_.gpus)));
  if (options_.memory == 0) options_.memory = usable_memory();
  if (options_.cpus <= 0) options_.cpus = options_.pool > 0 ? options_.pool : static_cast<double>(cores_.size());
}

Host ProcessDriver::host() const {
  return Host{
      .name = "localhost",
      .total = {.cpus = options_.cpus, .gpus = options_.gpus, .memory = options_.memory, .custom = options_.custom}};
}

void ProcessDriver::start(ExecutorStart start) {
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

void ProcessDriver::perform(Command command) {
  bool first = false;
  {
    const std::lock_guard guard(mutex_);
    first = queue_.empty();
    queue_.push_back(std::move(command));
  }
  if (first && std::this_thread::get_id() != io_thread_.load()) wake();
}

void ProcessDriver::shutdown() {
  if (::getpid() !=
      owner_) {  // a forked worker that calls exit() destroys its copy of this object, which must not end the processes
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

void ProcessDriver::start_guardian() {
  const SlotBinding binding(cores_, gpus_, options_.pin && options_.cpus <= static_cast<double>(cores_.size()));
  const auto worker_main = [this, binding](int socket) {
    WorkerOptions options;
    options.bind_slot = [this, binding](const Slot& slot) {
      binding(slot);
      cgroups_.enter(slot.resources.memory);
    };
    options.bind_cores = [binding](const std::vector<int>& cpus) { binding.bind_cores(cpus); };
    return run_worker(socket, *start_.program, std::move(options));
  };
  guardian_ = std::make_unique<Guardian>(worker_main, [this] { cgroups_.remove(); });
}

void ProcessDriver::run() {
  int unjudged = 0;  // rounds since the last tick()
  io_thread_ = std::this_thread::get_id();
  ensure_spare();
  std::array<epoll_event, 64> ready;
  while (!closing_) {
    carry_out();
    launch_held();
    if (closing_) break;
    const int n = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()), timeout());
    for (int i = 0; i < n && !closing_; ++i) on_ready(ready[static_cast<std::size_t>(i)]);
    // No worker is judged by its silence before all that was sent has been heard: this process may have been stopped
    // for a while, and its wait ends with EINTR when it goes on.
    const bool all_heard = n >= 0 && static_cast<std::size_t>(n) < ready.size();
    if (!all_heard && ++unjudged < 64) continue;
    unjudged = 0;
    tick();
  }
  release_all();
  io_thread_ = std::thread::id();
}

void ProcessDriver::release_all() {
  if (start_.program->external() || guardian_lost_) return;
  const Seconds until = hypertune::detail::steady_seconds() + options_.stop_grace;
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
    for (int i = 0; i < n; ++i) on_ready(ready[static_cast<std::size_t>(i)]);
  }
}

void ProcessDriver::on_ready(const epoll_event& event) {
  const std::uint64_t key = event.data.u64;  // epoll_event is packed on x86: no reference can be bound to its parts
  if (key == wake_key) {
    std::uint64_t count = 0;
    while (::read(wake_.get(), &count, sizeof count) > 0) {}
  } else if (key == control_key) {
    hear_guardian();
  } else if (const auto found = workers_.find(key); found != workers_.end()) {
    const auto worker = found->second;
    if ((event.events & EPOLLOUT) != 0) flush(*worker);
    if ((event.events & ~static_cast<unsigned>(EPOLLOUT)) != 0) read(*worker);
  }
}

int ProcessDriver::timeout() const {
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

void ProcessDriver::carry_out() {
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

void ProcessDriver::carry_out(Command command) {
  const auto* message = std::get_if<GroupMessage>(&command);
  if (auto* launch = std::get_if<Launch>(&command))
    this->launch(std::move(*launch));
  else if (message != nullptr && message->kind == GroupMessage::Kind::end)
    kill(message->trial, message->attempt, message->member);
  else
    answer(command);
}

void ProcessDriver::launch(Launch launch) {
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

bool ProcessDriver::must_wait(Held& held) {
  const Launch& launch = held.launch;
  // A trial never has two processes at once.
  for (const auto& [id, worker] : workers_)
    if (worker->drops == launch.trial) return true;
  if (!gate_ || launch.allocation.lead.gpus.empty()) return false;
  if (!start_.program->external())  // a process that is reused there has its memory already
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

void ProcessDriver::launch_held() {
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

bool ProcessDriver::stop_held(const Stop& stop) {
  const auto held = std::find_if(held_.begin(), held_.end(), [&](const Held& h) {
    return key_of(h.launch) == std::pair(stop.trial, stop.member) && h.launch.attempt == stop.attempt;
  });
  if (held == held_.end()) return false;
  held_.erase(held);
  emit(Stopped{stop.trial, stop.attempt, stop.member});
  return true;
}

void ProcessDriver::occupy(Worker& worker, const std::vector<int>& gpus) {
  if (!gate_ || !worker.gpus.empty()) return;
  worker.gpus = gpus;
  gate_->enter(worker.gpus);
}

void ProcessDriver::vacate(Worker& worker) {
  if (gate_ && !worker.gpus.empty()) gate_->leave(worker.gpus, hypertune::detail::steady_seconds());
  worker.gpus.clear();
}

void ProcessDriver::watch(int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    fail(Errc::io, "cannot watch a worker process: {}", std::generic_category().message(errno));
}

void ProcessDriver::wake() {
  const std::uint64_t one = 1;
  if (wake_) static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

}  // namespace hypertune::inline v0::local::detail
