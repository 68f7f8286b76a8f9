// ProcessDriver: the workers, their messages, and the resulting actions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/local/process_driver.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <tuple>
#include <variant>

namespace hypertune::inline v0::local::detail {

void ProcessDriver::begin(Launch launch) {
  const Seconds now = hypertune::detail::steady_seconds();
  const auto worker = free_worker(launch);
  if (worker == nullptr) {
    emit(Failed{launch.trial, launch.attempt,
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

std::shared_ptr<ProcessDriver::Worker> ProcessDriver::free_worker(const Launch& launch) {
  const std::string wanted = devices(launch.allocation.lead);
  std::shared_ptr<Worker> fresh;
  for (const auto& [id, worker] : workers_) {
    if (!worker->link.free()) continue;
    if (worker->devices && *worker->devices == wanted) return worker;
    if (!worker->devices) fresh = worker;
  }
  return fresh != nullptr ? fresh : spawn();
}

void ProcessDriver::ensure_spare() {
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

std::shared_ptr<ProcessDriver::Worker> ProcessDriver::spawn() {
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
  link.hang_timeout = start_.hang_timeout;
  link.stop_grace = std::max(options_.stop_grace,
                             start_.program->stop_grace() + 1);  // so that a command may use all of its own grace
  link.prints = start_.program->external();
  link.reusable = start_.program->reusable();
  link.welcome.directory = start_.directory.string();
  link.welcome.checkpoints = start_.checkpoints.string();
  link.welcome.log_limit = start_.log_limit;
  for (const auto& origin : start_.origins) link.welcome.origins.push_back(origin.string());
  constexpr double heartbeat = 5;
  link.welcome.heartbeat = start_.hang_timeout > 0 ? std::clamp(start_.hang_timeout / 4, 0.01, heartbeat) : heartbeat;
  const auto worker = std::make_shared<Worker>(id, std::move(mine), std::move(link));
  workers_[id] = worker;
  watch(worker->socket.get(), id);
  return worker;
}

void ProcessDriver::answer(const Command& command) {
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
  if (found == by_trial_.end()) return;  // the run has ended meanwhile
  const auto worker = found->second;
  const Launch* here = worker->link.launch();
  if (here == nullptr || here->attempt != attempt) return;
  if (worker->link.state() == WorkerLink::State::parked && std::holds_alternative<Stop>(command)) {
    --parked_;
    by_trial_.erase(found);
    worker->drops = trial;
  }
  // All members of a group must do the same: those that can save end.
  const bool keep = here->seat ? false : parked_ < options_.max_parked;
  apply(worker, worker->link.perform(command, keep, hypertune::detail::steady_seconds()));
}

void ProcessDriver::read(Worker& reference) {
  const auto worker = workers_.at(reference.id);
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t n = ::recv(worker->socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {  // closed: the guardian reports its end, and is asked to kill it to be sure
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

void ProcessDriver::hear_guardian() {
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

void ProcessDriver::lose_guardian() {
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, guardian_->control(), nullptr);
  guardian_lost_ = true;
  for (const auto& [id, worker] : std::map(workers_))  // the kernel kills them with the guardian
    retire(worker,
           Cause{.source = FailureSource::infrastructure, .text = "the guardian of the worker processes was killed"});
}

void ProcessDriver::restart_guardian() {
  try {
    start_guardian();
    watch(guardian_->control(), control_key);
    guardian_lost_ = false;
  } catch (const Error& e) { spawn_error_ = e.what(); }
}

void ProcessDriver::retire(const std::shared_ptr<Worker>& worker, Cause cause) {
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
    append_last_output(cause, last_line(log_of(*launch), worker->log_begin, start_.log_limit),
                       "; the last line of its log: ");
  apply(worker, worker->link.exited(std::move(cause)));
  worker->socket = Descriptor();
}

bool ProcessDriver::has_limit(const Worker& worker) {
  const Launch* launch = worker.link.launch();
  return launch != nullptr && launch->allocation.lead.resources.memory > 0 && worker.pid > 0 &&
         worker.link.state() != WorkerLink::State::parked && worker.link.state() != WorkerLink::State::gone;
}

void ProcessDriver::tick() {
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

void ProcessDriver::look_at_memory(const std::shared_ptr<Worker>& worker) {
  const std::uint64_t limit = worker->link.launch()->allocation.lead.resources.memory;
  const std::uint64_t total = process::tree_memory(worker->pid);
  const std::uint64_t used = total - std::min(total, worker->baseline);
  if (used <= limit) return;
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); };
  apply(worker, worker->link.kill(Cause{.source = FailureSource::user,
                                        .text = fmt::format("memory limit of {:.0f} MiB exceeded: {:.0f} MiB in use",
                                                            mib(limit), mib(used))}));
}

void ProcessDriver::apply(const std::shared_ptr<Worker>& worker, LinkActions actions) {
  for (const auto& message : actions.send) wire::append(worker->out, message);
  if (!actions.send.empty()) flush(*worker);
  if (actions.kill && !guardian_lost_) guardian_->kill(worker->id);
  if (worker->link.free()) {
    worker->drops.reset();
    if (start_.program->external()) vacate(*worker);
  }
  for (auto& event : actions.events) {
    std::visit([&](const auto& e) { on(e); }, event);
    emit(std::move(event));
  }
}

void ProcessDriver::on(const Paused& e) {
  if (e.parked)
    ++parked_;
  else
    by_trial_.erase(RunKey(e.trial, e.member));
}

void ProcessDriver::emit(Event event) {
  if (groups_.on_event(event))
    groups_.work();
  else
    tell(std::move(event));
}

void ProcessDriver::tell(Event event) {
  if (!closing_ && start_.sink) start_.sink(std::move(event));
}

void ProcessDriver::kill(TrialId trial, Attempt attempt, int member) {
  const auto found = by_trial_.find(RunKey(trial, member));
  if (found == by_trial_.end()) return;
  const auto worker = found->second;
  if (const Launch* here = worker->link.launch(); here == nullptr || here->attempt != attempt) return;
  apply(worker, worker->link.kill({.source = FailureSource::infrastructure,
                                   .text = "it did not take part in a collective within the limit"}));
}

void ProcessDriver::flush(Worker& worker) {
  while (!worker.out.empty() && worker.socket) {
    const ssize_t n = ::send(worker.socket.get(), worker.out.data(), worker.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0)
      worker.out.clear();  // the worker is gone; the guardian will report it
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

std::filesystem::path ProcessDriver::log_of(const Launch& launch) const {
  return start_.directory / "trials" / std::to_string(launch.trial) / log_name(key_of(launch).second);
}

}  // namespace hypertune::inline v0::local::detail
