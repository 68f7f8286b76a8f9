// SlurmExecutor: the parts that are specific to Slurm.
#include "queue.hpp"
#include "srun.hpp"
#include "workers.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/waiting_lines.hpp>
#include <hypertune/slurm/executor.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::slurm {
namespace detail {

using hypertune::detail::steady_seconds;
using remote::HostState;

/// The jobs of one experiment's workers, and their state in the queue.
class SlurmWatch {
 public:
  SlurmWatch(const SlurmSetup& setup, const Workload& workload)
      : setup_(setup),
        notices_(std::make_shared<remote::Notices>(remote::said_by(setup.say, workload.quiet, "hypertune: "))),
        workers_(make_workers(setup, workload, [notices = notices_](const std::string& line) { notices->say(line); })) {
    if (workers_.all.empty()) fail(Errc::usage, "the Slurm allocation has no node");
  }

  const std::shared_ptr<remote::Notices>& notices() const { return notices_; }

  remote::ElasticPlan plan() const {
    remote::ElasticPlan plan{.min = setup_.options.pool.min,
                             .idle_timeout = setup_.options.idle_timeout,
                             .keep_all = !workers_.jobs,  // the nodes of an allocation are ours anyway
                             .remote = remote_options(),
                             .asked = "has been asked for, and Slurm has not said yet when it comes",
                             .kind = "node of the Slurm allocation"};
    for (const auto& worker : workers_.all)
      plan.workers.push_back({.name = worker.name, .total = worker.total, .dialer = worker.dialer});
    if (workers_.jobs)
      plan.options = {{"cpus", "executor.cpus"}, {"gpus", "executor.gres"}, {"memory", "executor.memory"}};
    return plan;
  }

  // Sees which jobs run, and tells the user what the others wait for. If Slurm does not answer, running workers
  // continue.
  Seconds poll(remote::ElasticWorkers& workers) {
    constexpr Seconds interval = 0.25;
    if (!workers_.jobs) return 10;
    workers_.jobs->clean_up();
    const auto waiting = workers_.jobs->waiting();
    if (waiting.empty()) {
      lines_.clear();
    } else if (steady_seconds() >= next_question_) {
      look_at_queue(workers, waiting);
      // The longer all have waited, the less often: what is lost is a small part of the time that they have waited.
      Seconds age = 0;
      for (const auto& job : waiting) age = std::max(age, job.submitted);
      age = steady_seconds() - age;
      next_question_ =
          steady_seconds() + (silences_ > 0 ? std::min(10.0, 1.0 * silences_) : std::clamp(age / 4, 0.5, 10.0));
    }
    return interval;
  }
  void stop() { asking_.request_stop(); }
  void ended(const std::string& worker) {
    if (workers_.jobs) workers_.jobs->release(worker);
  }
  void finish() {
    if (!workers_.jobs) return;
    if (const auto left = workers_.jobs->finish(); !left.empty()) hypertune::detail::say("hypertune: " + left);
  }

 private:
  remote::RemoteOptions remote_options() const {
    auto options = setup_.remote;
    options.timeouts.heartbeat = setup_.options.heartbeat_timeout;
    options.transfer = setup_.options.transfer;
    options.timeouts.connect = 9e8;  // a job may wait in the queue for as long as it takes
    options.dials = std::clamp(static_cast<int>(workers_.all.size()), 1, 4096);  // no dial waits for another one's job
    options.timeouts.max_delay = std::min(options.timeouts.max_delay, 30.0);
    options.notice_grace = std::max(options.notice_grace, setup_.options.save_grace);
    return options;
  }

  void look_at_queue(remote::ElasticWorkers& workers, const std::vector<WorkerJob>& jobs) {
    bool was_up = false, is_up = false;
    std::map<std::string, HostState> states;
    for (const auto& account : workers.accounts()) {
      is_up = is_up || is_usable(account.state);
      was_up = was_up || account.seconds > 0;
      states[account.name] = account.state;
    }
    std::vector<std::string> names;
    std::vector<WorkerJob> asked;
    for (const auto& job : jobs) {
      if (states[job.worker] != HostState::connecting) {  // it was refused
        workers_.jobs->release(job.worker);
        continue;
      }
      names.push_back(job.name);
      asked.push_back(job);
    }
    Trouble trouble;
    const auto queue = workers_.jobs->queue().newest(names, asking_.get_token(), trouble);
    if (asking_.stop_requested()) return;
    if (!queue) {
      if (++silences_ == 3)
        notices_->say(fmt::format("Slurm does not answer ({}): what runs goes on, and it is asked again", trouble.why));
      return;
    }
    if (std::exchange(silences_, 0) >= 3) notices_->say("Slurm answers again");
    // If workers were connected before, the nodes may only be temporarily unavailable: keep waiting, and report why.
    const bool may_refuse = is_up || !was_up;
    std::vector<remote::WaitingWorker> waiting;
    for (const auto& job : asked) {
      const auto found = queue->find(job.name);
      if (found == queue->end() || found->second.id != job.id) {
        workers_.jobs->vanished(job.id);
        continue;
      }
      const auto& seen = found->second;
      if (const auto never = why_never(seen); !never.empty() && may_refuse) {
        // Refused only after two equal answers, because Slurm may be about to change the reason.
        const auto& [reason, since] =
            unable_to_start_.try_emplace(job.worker, seen.reason, steady_seconds()).first->second;
        if (reason != seen.reason)
          unable_to_start_.insert_or_assign(job.worker, std::pair(seen.reason, steady_seconds()));
        else if (steady_seconds() - since >= 1)
          workers.refuse(job.worker,
                         fmt::format("{}: it asks for {} (lower that, or name another partition, account or QOS)",
                                     never, asked_for()));
        continue;
      }
      unable_to_start_.erase(job.worker);
      workers.explain(job.worker, why_waiting(seen));
      // Slurm gives a reason once it has tried to start the job.
      const bool tried = !reason_word(seen).empty() || steady_seconds() - job.submitted > 5;
      if (seen.state == "PENDING" && tried) waiting.push_back({reason_word(seen), why_waiting(seen)});
      if (seen.state == "RUNNING") workers_.jobs->began(job.id);
      if (seen.state == "COMPLETING") workers_.jobs->vanished(job.id);
    }
    if (waiting.empty()) lines_.clear();
    if (const auto line = lines_.look(waiting, "in Slurm's queue", is_up, steady_seconds()); !line.empty())
      notices_->say(line);
  }

  // The requested resources, for the message: the user may have to change them.
  std::string asked_for() const {
    const auto& options = setup_.options;
    std::string text = fmt::format("{} cpu{}", options.cpus, options.cpus == 1 ? "" : "s");
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) text += fmt::format(", {} {}", name, value);
    };
    add("gres", options.gres);
    if (options.memory > 0) add("memory", fmt::format("{} bytes", options.memory));
    if (options.time > 0) add("time", time_text(options.time));
    text += options.partition.empty() ? ", the default partition" : fmt::format(", partition '{}'", options.partition);
    add("account", options.account);
    add("qos", options.qos);
    if (!options.args.empty()) text += fmt::format(", {}", fmt::join(options.args, " "));
    return text;
  }

  SlurmSetup setup_;
  std::shared_ptr<remote::Notices> notices_;
  Workers workers_;
  std::stop_source asking_;  // interrupts squeue
  // Used only by the thread that calls poll().
  int silences_ = 0;
  Seconds next_question_ = 0;
  // Workers that can never start as they are: the reason, and since when Slurm has given it.
  std::map<std::string, std::pair<std::string, Seconds>> unable_to_start_;
  remote::WaitingLines lines_;
};

}  // namespace detail

SlurmExecutor::SlurmExecutor(SlurmSetup setup)
    : ElasticExecutor("slurm", [setup = (setup.options.take_old_names(), setup)](const Workload& workload) {
        const auto watch = std::make_shared<detail::SlurmWatch>(setup, workload);
        return remote::ElasticExperiment{
            .plan = watch->plan(),
            .hooks = {.poll = [watch](remote::ElasticWorkers& workers) { return watch->poll(workers); },
                      .stop = [watch] { watch->stop(); },
                      .ended = [watch](const std::string& worker) { watch->ended(worker); },
                      .finish = [watch](bool) { watch->finish(); }},
            .notices = watch->notices()};
      }) {
  check_options(setup.options);
  setup.remote.validate();
}

}  // namespace hypertune::inline v0::slurm
