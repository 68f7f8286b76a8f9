// Checks what a driver in the cluster needs, and finds its record.
#include "driver_job_state.hpp"
#include "permissions.hpp"

#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

void DriverJob::State::require_all(const std::stop_token& stop) {
  std::vector<Use> uses{Use::submit};
  if (options.volume.empty()) uses.push_back(Use::new_claim);
  require_permissions(client, permissions_for(uses), stop);
  for (const auto& claim : {options.volume, options.workers.volume})
    if (!claim.empty() && !get(place({"api", "v1"}, "persistentvolumeclaims", claim), stop))
      fail(Errc::usage, "there is no volume claim '{}' in namespace '{}'", claim, client.name_space());
  if (!get(place({"api", "v1"}, "serviceaccounts", options.service_account), stop))
    fail(Errc::usage,
         "there is no service account '{}' in namespace '{}', as which the driver is to run: "
         "deploy/kubernetes/driver.yaml makes 'hypertune-driver', and --service-account names another one",
         options.service_account, client.name_space());
}

DriverRecord DriverJob::State::record(const std::stop_token& stop) {
  DriverRecord found{.claim = options.volume};
  if (found.claim.empty())
    if (const auto job = get(job_path(), stop))
      found.claim = text_at(*job, "/spec/template/spec/volumes/0/persistentVolumeClaim/claimName");
  if (found.claim.empty()) found.claim = name;
  const auto claim = get_if_allowed(place({"api", "v1"}, "persistentvolumeclaims", found.claim), stop);
  found.there = claim.has_value();
  const auto* labels = claim ? value_at(*claim, "/metadata/labels") : nullptr;
  found.made = claim && (claim->is_null() ? found.claim == name
                                          : labels != nullptr && labels->is_object() && found.claim == name &&
                                                labels->get_object().contains(job_label));
  return found;
}

void DriverJob::State::require_same_record(const std::stop_token& stop) {
  const auto job = get(job_path(), stop);
  if (!job || !has_begun(*job)) return;
  const auto earlier = text_at(*job, "/spec/template/spec/volumes/0/persistentVolumeClaim/claimName");
  if (earlier.empty() || earlier == claim()) return;
  fail(
      Errc::usage,
      "the earlier job '{}' in namespace '{}' has its record on the volume claim '{}', and a new record would begin on "
      "'{}': submit {} to go on with that record, or end the earlier job (hypertune down --kubernetes) to begin anew",
      name, client.name_space(), earlier, claim(),
      earlier == name ? std::string("without --volume") : fmt::format("with --volume {}", earlier));
}

std::string DriverJob::State::why_no_pod(const std::string& job, const std::stop_token& stop) {
  const auto events =
      get_if_allowed(place({"api", "v1"}, "events"), stop,
                     {{"fieldSelector", fmt::format("involvedObject.uid={},type=Warning", job)}, {"limit", "100"}});
  const auto* all = events ? array_at(*events, "/items") : nullptr;
  if (all == nullptr || all->empty()) return {};
  auto why = text_at(all->back(), "/message");
  std::replace_if(
      why.begin(), why.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return why;
}

}  // namespace hypertune::inline v0::k8s
