// PodFleet: objects beside the pods: a template for claims of GPUs, and groups that the scheduler places all or none.
#include "json_at.hpp"
#include "pod_fleet.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/parse_number.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

constexpr const char* group_api = "scheduling.k8s.io/v1beta1";
constexpr const char* claim_api = "resource.k8s.io/v1";

}  // namespace

bool knows_pod_groups(Client client, const std::stop_token& stop) {
  try {
    const auto found = client.call({.path = fmt::format("/apis/{}", group_api), .deadline = 30}, stop).json();
    const auto* kinds = array_at(found, "/resources");
    return kinds != nullptr && std::any_of(kinds->begin(), kinds->end(), [](const json::value& each) {
             return text_at(each, "/name") == "podgroups";
           });
  } catch (const ApiError& error) {
    if (error.code() == Errc::usage) return false;  // there is no such group of the API, or it may not be looked at
    throw;
  }
}

// Makes an object of the experiment, once for each of its owners. The owner takes it along; if the owner stays after
// the run, finish() deletes it.
void PodFleet::make_object(const char* api, std::string_view kind, std::string_view kinds, const std::string& name,
                           json::object spec, const std::optional<Owner>& owner, const std::stop_token& stop) {
  const auto all = api_path({"apis"}) + "/" + api + api_path({"namespaces", client_.name_space(), kinds});
  const auto path = all + api_path({name});
  {
    const std::lock_guard lock(mutex_);
    if (objects_.contains(path)) return;
  }
  json::object metadata{{"name", json::string(name)},
                        {"labels", {{experiment_label, json::string(plan_.experiment)}, {role_label, "worker"}}}};
  if (owner) metadata["ownerReferences"] = json::array{owner_reference(*owner)};
  const json::object object{
      {"apiVersion", api}, {"kind", json::string(kind)}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  client_.call({.method = Method::post, .path = all, .body = json::serialize(object), .named = true}, stop);
  const std::lock_guard lock(mutex_);
  objects_.insert(path);
}

// The objects that a pod of the worker names; they have to be there before it.
void PodFleet::make_objects(PodPlan& pod, const std::stop_token& stop) {
  const auto owned = [&](std::string_view text) {  // another owner has other objects: its predecessor's may be going
    const auto hash = hypertune::detail::ContentHash::of(fmt::format("{} {}", pod.owner ? pod.owner->uid : "", text));
    return hash.substr(0, 8);
  };
  if (!options_.gpu_class.empty()) {
    pod.claim_template =
        fmt::format("{}-gpus-{}", plan_.name, owned(fmt::format("{} {}", options_.gpu_class, options_.gpus)));
    json::object request{{"name", "gpus"},
                         {"exactly",
                          {{"deviceClassName", json::string(options_.gpu_class)},
                           {"allocationMode", "ExactCount"},
                           {"count", options_.gpus}}}};
    json::object devices{{"requests", json::array{std::move(request)}}};
    make_object(claim_api, "ResourceClaimTemplate", "resourceclaimtemplates", pod.claim_template,
                {{"spec", {{"devices", std::move(devices)}}}}, pod.owner, stop);
  }
  const int group = plan_.gang.group_of(pod.worker);
  if (group == 0) return;
  pod.group = fmt::format("{}-group-{}-{}", plan_.name, group, owned(fmt::to_string(plan_.gang.least)));
  json::object spec{{"schedulingPolicy", {{"gang", {{"minCount", plan_.gang.least}}}}}};
  if (!options_.priority_class.empty()) spec["priorityClassName"] = json::string(options_.priority_class);
  make_object(group_api, "PodGroup", "podgroups", pod.group, std::move(spec), pod.owner, stop);
}

int Gang::group_of(std::string_view worker) const {
  if (least <= 1) return 0;
  const auto number = hypertune::detail::parse_number<int>(worker.substr(worker.find_last_of('-') + 1)).value_or(0);
  if (number < 1) return 0;
  const int group = (number - 1) / pods;
  return std::min(pods, workers - group * pods) >= least ? group + 1 : 0;
}

}  // namespace hypertune::inline v0::k8s
