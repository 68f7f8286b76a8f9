// Status: converts the API server's failures to ApiError.
#pragma once

#include <hypertune/k8s/api_error.hpp>
#include <hypertune/remote/detail/json_read.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

using remote::detail::array_in;
using remote::detail::object_in;
using remote::detail::parse_json;
using remote::detail::text_in;

/// Any text as one line: without control characters, and not too long.
std::string one_line(std::string_view text, std::size_t most = 400);

/// Removes the queries of URLs from the text, because they contain a command's arguments.
std::string without_queries(std::string_view text);

/// The error for an answer with this status and body. `doing`: "GET /api/v1/pods", without its query. `origin`: where
/// the rejected credentials come from.
ApiError api_error(int status, std::string_view body, std::string_view doing, std::string_view origin = {});

/// `reason` of a Status object; empty if the body is not one.
std::string reason_of(std::string_view body);

}  // namespace hypertune::inline v0::k8s::detail
