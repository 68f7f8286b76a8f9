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
        workers_(make_workers(setup, workload.name, workload.useful_workers(setup.options.workers.max), left_)) {
    if (workers_.all.empty()) fail(Errc::usage, "the Slurm allocation has no node");
  }

  const std::shared_ptr<remote::Notices>& notices() const { return notices_; }

  remote::ElasticPlan plan() const {
    remote::ElasticPlan plan{.min = setup_.options.workers.min,
                             .idle = setup_.options.idle,
                             .keep_all = !workers_.own_jobs,  // the nodes of an allocation are ours anyway
                             .remote = remote_options(),
                             .asked = "has been asked for, and Slurm has not said yet when it comes",
                             .kind = "node of the Slurm allocation"};
    for (const auto& worker : workers_.all)
      plan.workers.push_back({.name = worker.name, .total = worker.total, .dialer = worker.dialer});
    if (workers_.own_jobs)
      plan.options = {{"cpus", "executor.cpus"}, {"gpus", "executor.gres"}, {"memory", "executor.memory"}};
    return plan;
  }

  // Tells the user what workers wait for. If Slurm does not answer, running workers continue.
  Seconds look(remote::ElasticWorkers& workers) {
    cancel_left();
    if (workers_.own_jobs) look_at_queue(workers);
    return std::min(10.0, 1.0 * ++looks_);
  }
  void stop() { asking_.request_stop(); }
  void finish() {
    if (!cancel_left())
      hypertune::detail::say(
          fmt::format("hypertune: Slurm does not answer, and these jobs may be left: end them with "
                      "scancel --name={}",
                      fmt::join(left_->names(), " --name=")));
  }

 private:
  remote::RemoteOptions remote_options() const {
    auto options = setup_.remote;
    options.timeouts.liveness = setup_.options.silence;
    options.transfer = setup_.options.transfer;
    options.timeouts.connect = 9e8;  // a job may wait in the queue for as long as it takes
    options.timeouts.max_delay = std::min(options.timeouts.max_delay, 30.0);
    options.notice_grace = std::max(options.notice_grace, setup_.options.notice);
    return options;
  }

  void look_at_queue(remote::ElasticWorkers& workers) {
    std::vector<std::string> jobs;
    std::map<std::string, std::string> names;
    bool was_up = false, is_up = false;
    for (const auto& account : workers.accounts()) {
      is_up = is_up || is_usable(account.state);
      was_up = was_up || account.seconds > 0;
      // Connected workers are skipped, but one in back-off may be reconnecting, which is not reported.
      if (account.state != HostState::connecting && account.state != HostState::backing_off) continue;
      for (const auto& worker : workers_.all)
        if (worker.name == account.name) {
          jobs.push_back(worker.job);
          names[worker.job] = worker.name;
        }
    }
    if (jobs.empty()) {
      lines_.clear();
      looks_ = 0;
      return;
    }
    std::string trouble;
    const auto queue = ask_queue(jobs, asking_.get_token(), trouble);
    if (asking_.stop_requested()) return;
    if (!queue) {
      if (++silences_ == 3)
        notices_->say(fmt::format("Slurm does not answer ({}): what runs goes on, and it is asked again", trouble));
      return;
    }
    if (std::exchange(silences_, 0) >= 3) notices_->say("Slurm answers again");
    // If workers were connected before, the nodes may only be temporarily unavailable: keep waiting, and report why.
    const bool may_refuse = is_up || !was_up;
    std::vector<remote::WaitingWorker> waiting;
    for (const auto& [job, seen] : *queue) {
      const auto name = names.find(job);
      if (name == names.end()) continue;
      if (const auto never = why_never(seen); !never.empty() && may_refuse) {
        // Refused only after two equal answers, because Slurm may be about to change the reason.
        if (std::exchange(unable_to_start_[name->second], seen.reason) == seen.reason)
          workers.refuse(name->second,
                         fmt::format("{}: it asks for {} (lower that, or name another partition, account or QOS)",
                                     never, asked_for()));
        continue;
      }
      unable_to_start_.erase(name->second);
      workers.explain(name->second, why_waiting(seen));
      if (seen.state == "PENDING") waiting.push_back({reason_word(seen), why_waiting(seen)});
    }
    if (const auto line = lines_.look(waiting, "in Slurm's queue", is_up, steady_seconds()); !line.empty()) {
      if (lines_.news()) looks_ = 0;
      notices_->say(line);
    }
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

  bool cancel_left() {
    const auto names = left_->names();
    if (names.empty()) return true;
    if (!cancel_jobs(names)) return false;
    left_->remove(names);
    return true;
  }

  SlurmSetup setup_;
  std::shared_ptr<LeftJobs> left_ = std::make_shared<LeftJobs>();
  std::shared_ptr<remote::Notices> notices_;
  Workers workers_;
  std::stop_source asking_;  // interrupts squeue
  // Used only by the thread that calls look().
  int silences_ = 0, looks_ = 0;
  std::map<std::string, std::string> unable_to_start_;  // workers, as of the last look, with the reason
  remote::WaitingLines lines_;
};

}  // namespace detail

SlurmExecutor::SlurmExecutor(SlurmSetup setup)
    : ElasticExecutor("slurm", [setup](const Workload& workload) {
        const auto watch = std::make_shared<detail::SlurmWatch>(setup, workload);
        return remote::ElasticExperiment{
            .plan = watch->plan(),
            .hooks = {.look = [watch](remote::ElasticWorkers& workers) { return watch->look(workers); },
                      .stop = [watch] { watch->stop(); },
                      .finish = [watch](bool) { watch->finish(); }},
            .notices = watch->notices()};
      }) {
  check_options(setup.options);
  setup.remote.validate();
}

}  // namespace hypertune::inline v0::slurm
