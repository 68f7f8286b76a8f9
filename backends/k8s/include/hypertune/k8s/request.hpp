// Request, Answer: one call of the API server.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <boost/json/fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

enum class Method : std::uint8_t { get, post, put, patch, remove };

/// The type of a request's body.
enum class Body : std::uint8_t {
  json,
  merge_patch,      ///< RFC 7386
  strategic_merge,  ///< Kubernetes' own: lists are merged by their keys
  json_patch,       ///< RFC 6902
  apply,            ///< server-side apply; give `fieldManager` in the query
};

/// Names and values of a query; they are percent-encoded.
using Query = std::vector<std::pair<std::string, std::string>>;

/// "/api/v1/namespaces/x/pods" of {"api", "v1", "namespaces", "x", "pods"}; each part is percent-encoded.
std::string api_path(std::initializer_list<std::string_view> parts);

/// Meant for designated initialisers.
struct Request {
  Method method = Method::get;
  std::string path;  ///< as api_path() makes it
  Query query = {};
  std::string body = {};
  Body type = Body::json;
  /// Seconds for the whole call: waiting for the rate limit, all attempts, and the pauses between them.
  Seconds deadline = 60;
  /// A POST of an object whose name nobody else uses: it is tried again if it is unknown whether it was performed, and
  /// "already exists" then counts as success (Answer::existed).
  bool named = false;
};

struct Answer {
  int status = 200;
  std::string body = {};
  bool existed = false;  ///< the object was there already: `body` is a Status object
  /// Error of kind `protocol` if the body is not JSON, or is nested more than 64 levels deep.
  boost::json::value json() const;
};

}  // namespace hypertune::inline v0::k8s
