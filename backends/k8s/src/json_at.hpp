// Access to values in JSON of the API server.
#pragma once

#include <hypertune/detail/json_read.hpp>

#include <string_view>

namespace hypertune::inline v0::k8s {

using hypertune::detail::array_at;
using hypertune::detail::array_in;
using hypertune::detail::each_object;
using hypertune::detail::flag_at;
using hypertune::detail::object_in;
using hypertune::detail::parse_json;
using hypertune::detail::text_at;
using hypertune::detail::text_in;
using hypertune::detail::value_at;
using hypertune::detail::value_in;

/// Whether a Job has this condition.
inline bool has_condition(const boost::json::value& job, std::string_view type) {
  if (const auto* all = array_at(job, "/status/conditions"))
    for (const auto& each : *all)
      if (text_at(each, "/type") == type && text_at(each, "/status") == "True") return true;
  return false;
}

}  // namespace hypertune::inline v0::k8s
