// PodFleet: workers that run out of memory get more, in their pods where Kubernetes can resize these in place.
#include "pod_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

std::string mebibytes(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20U); }

}  // namespace

// A worker that had `above` ran out of it. False: it is the most, or others have more already. Call with mutex_ held.
bool PodFleet::raise_memory(std::uint64_t above) {
  if (above < memory_ || memory_ >= options_.max_memory) return false;
  memory_ = std::min(options_.max_memory, memory_ > options_.max_memory / 2 ? options_.max_memory : memory_ * 2);
  ++changes_;
  return true;
}

std::string PodFleet::give_more_memory(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  const auto* pod = pods_.usable_of(worker);
  if (pod == nullptr || pod->memory == 0) return {};
  if (!raise_memory(pod->memory) && pod->memory >= memory_) return {};
  changed_.notify_all();
  return fmt::format("its worker gets {} in place of {}", mebibytes(memory_), mebibytes(pod->memory));
}

bool PodFleet::gets_memory(const std::string& worker) const {
  const std::lock_guard lock(mutex_);
  const auto* pod = pods_.usable_of(worker);
  return pod != nullptr && pod->memory > 0 && pod->memory < memory_;
}

// In place, at which its processes go on. Where that cannot be, another pod with more memory takes the pod's place.
void PodFleet::resize(const PodState& pod, const std::stop_token& stop) {
  std::uint64_t memory = 0;
  {
    const std::lock_guard lock(mutex_);
    memory = memory_;
    if (!pod.cannot_grow && std::exchange(resized_[pod.name], memory) == memory) return;
  }
  bool refused = pod.cannot_grow;  // by its node
  if (!refused) try {
      const auto amount = fmt::format(R"({{"memory": "{}"}})", memory);
      client_.call({.method = Method::patch,
                    .path = pods_path() + api_path({pod.name, "resize"}),
                    .body = fmt::format(R"({{"spec": {{"containers": [{{"name": "{}", "resources": {{"requests": {}, )"
                                        R"("limits": {}}}}}]}}}})",
                                        container_, amount, amount),
                    .type = Body::strategic_merge,
                    .deadline = 10},
                   stop);
    } catch (const ApiError& error) {
      if (error.code() != Errc::usage) {
        const std::lock_guard lock(mutex_);
        resized_.erase(pod.name);
        throw;
      }
      refused = true;  // before Kubernetes 1.33 there is no such call
    }
  if (!refused) return;
  notices_->say(
      fmt::format("{}: its pod cannot get {} where it is: another one takes its place", pod.worker, mebibytes(memory)));
  discard(pod.name, false);
}

}  // namespace hypertune::inline v0::k8s
