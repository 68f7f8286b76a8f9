// OwnerJob: the owner of the pods of a driver outside of the cluster.
#include "owner_job.hpp"

#include "json_at.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

bool is_over(const json::value& job) {
  return value_at(job, "/metadata/deletionTimestamp") != nullptr || has_condition(job, "Failed") ||
         has_condition(job, "Complete") || has_condition(job, "FailureTarget");
}

}  // namespace

OwnerJob::OwnerJob(Client client, std::string name, std::string experiment, std::string image)
    : client_(std::move(client)),
      name_(std::move(name)),
      experiment_(std::move(experiment)),
      image_(std::move(image)) {}

std::string OwnerJob::path() const {
  return api_path({"apis", "batch", "v1", "namespaces", client_.name_space(), "jobs", name_});
}

void OwnerJob::make(const std::stop_token& stop) {
  // A Job must have a template; it is never used.
  json::object container{{"name", "none"}, {"image", json::string(image_)}};
  json::object pod{{"restartPolicy", "Never"}, {"containers", json::array{std::move(container)}}};
  json::object labels{{experiment_label, json::string(experiment_)}, {role_label, "owner"}};
  json::object job{{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"metadata", {{"name", json::string(name_)}, {"labels", labels}}},
                   {"spec",
                    {{"parallelism", 0},
                     {"backoffLimit", 0},
                     {"activeDeadlineSeconds", static_cast<std::int64_t>(lasts)},
                     {"ttlSecondsAfterFinished", 0},
                     {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(pod)}}}}}};
  const auto stem = name_;
  constexpr int most = 20;
  for (int i = 1; i <= most; ++i) {
    job["metadata"].get_object()["name"] = json::string(name_);
    const Request create{.method = Method::post,
                         .path = api_path({"apis", "batch", "v1", "namespaces", client_.name_space(), "jobs"}),
                         .body = json::serialize(job),
                         .named = true};
    const auto answer = client_.call(create, stop);
    const auto found = answer.existed ? client_.call({.path = path()}, stop).json() : answer.json();
    if (!is_over(found)) {
      const auto* deadline = value_at(found, "/spec/activeDeadlineSeconds");
      made_at_ = hypertune::detail::steady_seconds();
      // The deadline counts from the Job's start: just now, or at an unknown time if it existed already.
      base_ = answer.existed && deadline != nullptr && deadline->is_int64()
                  ? static_cast<Seconds>(deadline->get_int64())
                  : looks_every;
      due_ = answer.existed ? made_at_ : made_at_ + lasts / 4;
      // A new Job that is suspended from the start was suspended by an admission controller of the cluster, because of
      // pods that this Job does not have.
      follows_suspension_ = answer.existed || !flag_at(found, "/spec/suspend");
      take(found, made_at_);
      owner_ = Owner{.api_version = "batch/v1", .kind = "Job", .name = name_, .uid = text_at(found, "/metadata/uid")};
      return;
    }
    name_ = fmt::format("{}-{}", stem, i + 1);  // that Job is being deleted, with all that it owns
  }
  throw ApiError(409, "AlreadyExists", fmt::format("jobs '{}' of earlier runs do not go away: delete them", stem));
}

// False: the Job is over.
bool OwnerJob::take(const json::value& job, Seconds now) {
  if (is_over(job)) return false;
  look_at_ = now + looks_every;
  const bool was = std::exchange(suspended_, follows_suspension_ && flag_at(job, "/spec/suspend"));
  if (!was || suspended_) return true;
  // Its deadline counts anew from when it is resumed, which is noticed at most looks_every seconds later.
  made_at_ = due_ = now;
  base_ = looks_every;
  return true;
}

bool OwnerJob::keep(Seconds now, const std::stop_token& stop) {
  if (!owner_) return false;
  try {
    if (now >= look_at_ && !take(client_.call({.path = path(), .deadline = 10}, stop).json(), now)) return false;
    // A suspended Job's deadline does not run.
    if (now < due_ || suspended_) return true;
    const auto deadline = std::ceil(base_ + (now - made_at_) + lasts);
    const Request move{.method = Method::patch,
                       .path = path(),
                       .body = fmt::format(R"({{"spec": {{"activeDeadlineSeconds": {:.0f}}}}})", deadline),
                       .type = Body::merge_patch,
                       .deadline = 10};
    if (!take(client_.call(move, stop).json(), now)) return false;
    due_ = now + lasts / 4;
  } catch (const ApiError& error) {
    if (error.not_found()) return false;
    look_at_ = now + looks_every;
    if (now >= due_) due_ = now + lasts / 20;  // leaves time for several more attempts
    if (error.code() == Errc::usage && !error.conflict()) throw;
  }
  return true;
}

void OwnerJob::remove() {
  try {
    client_.call({.method = Method::remove,
                  .path = path(),
                  .body = R"({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})",
                  .deadline = 15});
  } catch (const ApiError& error) {
    if (!error.not_found()) throw;
  }
}

}  // namespace hypertune::inline v0::k8s
