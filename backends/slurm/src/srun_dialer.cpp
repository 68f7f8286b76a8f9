// Starting workers with srun.
#include "srun_dialer.hpp"

#include "queue.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/process/subprocess.hpp>

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

}  // namespace

remote::AgentStream SrunDialer::dial(const std::stop_token&) const {
  using process::Stream;
  // On SIGTERM, which also comes when this program dies, srun ends its job or removes it from the queue. A killed srun
  // would leave an allocation that nothing ends.
  process::SpawnOptions options{.in = Stream::pipe,
                                .out = Stream::pipe,
                                .err = Stream::pipe,
                                .environment = environment_,
                                .death_signal = SIGTERM};
  try {
    const auto child = std::make_shared<process::Subprocess>(arguments_, options);
    return {.to = std::move(child->in),
            .from = std::move(child->out),
            .err = std::move(child->err),
            .carrier = remote::StreamCarrier([child, job = job_, left = left_](double grace) {
              constexpr double patience = 15;  // srun waits for its step for Slurm's KillWait plus some seconds
              if (ends_within(*child, grace)) {
                child->wait();
                return;
              }
              child->signal(SIGTERM);
              if (!ends_within(*child, patience)) {
                child->signal(SIGKILL);
                left->add(job);
              }
              child->wait();
            })};
  } catch (const process::NotStarted& error) {
    throw remote::DialError(remote::FailureClass::permanent, error.what(), error.code());
  }
}

remote::FailureClass SrunDialer::classify(const std::string& said) const { return classify_srun(said); }
std::string SrunDialer::explain(const std::string& said) const { return reason_of_srun(said); }

}  // namespace hypertune::inline v0::slurm
