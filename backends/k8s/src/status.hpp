// Status: converts the API server's failures to ApiError.
#pragma once

#include "json_at.hpp"

#include <hypertune/k8s/api_error.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

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
