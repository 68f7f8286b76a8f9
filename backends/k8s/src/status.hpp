// Status: what the API server says of a failure, as an ApiError.
#pragma once

#include <hypertune/k8s/api_error.hpp>

#include <boost/json/fwd.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

/// One line of what may be anything: no control characters, not too long.
std::string one_line(std::string_view text, std::size_t most = 400);

/// The queries of URLs in it are left out: a command's arguments are there.
std::string without_queries(std::string_view text);

/// Of an answer with this status and body. `doing`: "GET /api/v1/pods", without its query. `origin`: where credentials
/// are from that it does not take.
ApiError api_error(int status, std::string_view body, std::string_view doing, std::string_view origin = {});

/// `reason` of a Status object; empty where the body is none.
std::string reason_of(std::string_view body);

/// nullptr: it is no object, or has no such object.
const boost::json::object* object_in(const boost::json::value& value, std::string_view key);
/// Empty where there is no such text.
std::string_view text_in(const boost::json::object& object, std::string_view key);

}  // namespace hypertune::inline v0::k8s::detail
