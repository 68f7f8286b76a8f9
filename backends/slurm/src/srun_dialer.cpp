// Starting workers with srun.
#include "srun_dialer.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/slurm/detail/messages.hpp>

#include <algorithm>
#include <csignal>
#include <memory>

namespace hypertune::inline v0::slurm {
namespace {

bool ends_within(const process::Subprocess& child, double seconds) {
  const double until = hypertune::detail::steady_seconds() + seconds;
  for (double left = seconds;; left = until - hypertune::detail::steady_seconds()) {
    if (child.ready(std::max(0.0, left)).exited) return true;
    if (left <= 0) return false;
  }
}

// `ended` is called once srun has ended.
remote::AgentStream stream_of(const std::vector<std::string>& srun, const Environment& environment,
                              std::function<void()> ended) {
  using process::Stream;
  // On SIGTERM, which also comes when this program dies, srun ends its step.
  const process::SpawnOptions options{.in = Stream::pipe,
                                      .out = Stream::pipe,
                                      .err = Stream::pipe,
                                      .environment = environment,
                                      .death_signal = SIGTERM};
  try {
    const auto child = std::make_shared<process::Subprocess>(srun, options);
    return {.to = std::move(child->in),
            .from = std::move(child->out),
            .err = std::move(child->err),
            .carrier = remote::StreamCarrier([child, ended = std::move(ended)](double grace) {
              constexpr double patience = 15;  // srun waits for its step for Slurm's KillWait plus some seconds
              if (!ends_within(*child, grace)) {
                child->signal(SIGTERM);
                if (!ends_within(*child, patience)) child->signal(SIGKILL);
              }
              child->wait();
              if (ended) ended();
            })};
  } catch (const process::NotStarted& error) {
    throw remote::DialError(remote::FailureClass::permanent, error.what(), error.code());
  }
}

}  // namespace

remote::AgentStream StepDialer::dial(const std::stop_token&) const { return stream_of(srun_, environment_, {}); }
remote::FailureClass StepDialer::classify(const std::string& said) const { return classify_srun(said); }
std::string StepDialer::explain(const std::string& said) const { return reason_of_srun(said); }

remote::AgentStream JobDialer::dial(const std::stop_token& stop) const {
  const auto id = jobs_->start(commands_.worker, commands_.job, commands_.sbatch, stop);
  try {
    return stream_of(commands_.srun(id), environment_, [jobs = jobs_, id] { jobs->end(id); });
  } catch (...) {
    jobs_->end(id);
    throw;
  }
}
remote::FailureClass JobDialer::classify(const std::string& said) const { return classify_srun(said); }
std::string JobDialer::explain(const std::string& said) const { return reason_of_srun(said); }

}  // namespace hypertune::inline v0::slurm
