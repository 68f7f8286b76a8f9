// Access to values in JSON from other programs.
#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// The text at a JSON pointer ("/metadata/uid"); empty if there is none.
inline std::string text_at(const boost::json::value& value, const char* pointer) {
  boost::system::error_code error;
  const auto* found = value.find_pointer(pointer, error);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

/// Whether a Job has this condition.
inline bool has_condition(const boost::json::value& job, std::string_view type) {
  boost::system::error_code error;
  const auto* all = job.find_pointer("/status/conditions", error);
  if (all == nullptr || !all->is_array()) return false;
  for (const auto& each : all->get_array())
    if (text_at(each, "/type") == type && text_at(each, "/status") == "True") return true;
  return false;
}

/// Whether this Job is suspended.
inline bool is_suspended(const boost::json::value& job) {
  boost::system::error_code error;
  const auto* suspended = job.find_pointer("/spec/suspend", error);
  return suspended != nullptr && suspended->is_bool() && suspended->get_bool();
}

}  // namespace hypertune::inline v0::k8s
