// OwnPod: finds out whether this program runs in a pod, and in which.
#include "own_pod.hpp"

#include "json_at.hpp"
#include "process_variable.hpp"

#include <hypertune/detail/sleep_for.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

// A pod's host name is its own name, unless it uses the node's network or another host name was set.
std::string own_name() {
  if (auto given = variable_of_process("HYPERTUNE_POD_NAME")) return *std::move(given);
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::optional<OwnPod> find_own_pod(Client client, const std::stop_token& stop) {
  if (std::getenv("KUBERNETES_SERVICE_HOST") == nullptr) return std::nullopt;
  const auto name = own_name();
  if (name.empty()) return std::nullopt;
  const char* given = std::getenv("HYPERTUNE_POD_IP");
  std::string ip = given != nullptr ? given : "";
  json::value pod;
  // The status of a pod that has just begun may have no address yet.
  constexpr int attempts = 20;
  for (int i = 0; i < attempts && !stop.stop_requested(); ++i) {
    try {
      pod =
          client.call({.path = api_path({"api", "v1", "namespaces", client.name_space(), "pods", name})}, stop).json();
    } catch (const ApiError& error) {
      if (error.not_found() || error.forbidden()) return std::nullopt;
      throw;
    }
    if (ip.empty()) ip = text_at(pod, "/status/podIP");
    if (!ip.empty()) break;
    hypertune::detail::sleep_for(stop, 0.25);
  }
  OwnPod own{.name = name,
             .ip = ip,
             .owner = {.api_version = "v1", .kind = "Pod", .name = name, .uid = text_at(pod, "/metadata/uid")}};
  if (own.ip.empty() || own.owner.uid.empty()) return std::nullopt;
  if (const auto* owners = array_at(pod, "/metadata/ownerReferences"))
    for (const auto& each : *owners)
      if (text_at(each, "/kind") == "Job" && !text_at(each, "/uid").empty())
        own.owner = {.api_version = text_at(each, "/apiVersion"),
                     .kind = "Job",
                     .name = text_at(each, "/name"),
                     .uid = text_at(each, "/uid")};
  return own;
}

}  // namespace hypertune::inline v0::k8s
