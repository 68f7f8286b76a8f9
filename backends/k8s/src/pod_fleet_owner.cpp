// PodFleet: the owner of the pods of one experiment.
#include "pod_fleet.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <fmt/format.h>

#include <utility>

namespace hypertune::inline v0::k8s {

using hypertune::detail::steady_seconds;

std::optional<Owner> PodFleet::owner(const std::stop_token& stop) {
  if (plan_.owner) return plan_.owner;
  const std::lock_guard lock(owner_mutex_);
  if (without_owner_) return std::nullopt;
  try {
    if (!owner_job_)
      owner_job_.emplace(client_, plan_.name + "-owner", plan_.experiment,
                         options_.image.empty() ? "none" : options_.image);
    // Repeated calls use the existing one.
    if (!owner_job_->owner()) owner_job_->make(stop);
    apply_suspension();
    return owner_job_->owner();
  } catch (const ApiError& error) {
    // The account has the rights (see Use::owner_job): a quota of Jobs, or an admission controller.
    if (!error.forbidden()) throw;
    without_owner_ = true;
    owner_job_.reset();
    notices_->say(fmt::format(
        "workers have no owner, so that their pods stay behind if this program is killed: no job can be made ({})",
        error.what()));
    return std::nullopt;
  }
}

void PodFleet::keep_owner(const std::stop_token& stop) {
  const std::lock_guard lock(owner_mutex_);
  if (owner_job_ && owner_job_->owner() && !owner_job_->keep(steady_seconds(), stop)) owner_job_.reset();
  apply_suspension();
}

// A user who suspends the owner wants the resources of the workers for a while. Call with owner_mutex_ held.
void PodFleet::apply_suspension() {
  const std::string now = owner_job_ && owner_job_->suspended() ? owner_job_->name() : "";
  std::string before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(suspended_, now);
    if (before == now) return;
    ++changes_;
    changed_.notify_all();
  }
  notices_->say(now.empty() ? fmt::format("the job '{}' is not suspended any more: workers are asked for again", before)
                            : fmt::format("the job '{}' is suspended: workers end, and trials wait until it is resumed "
                                          "(kubectl patch job {} -n {} -p '{{\"spec\": {{\"suspend\": false}}}}')",
                                          now, now, client_.name_space()));
}

}  // namespace hypertune::inline v0::k8s
