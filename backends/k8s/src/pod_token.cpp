// Stores the token of an experiment's workers.
#include "pod_token.hpp"

#include "http.hpp"
#include "json_at.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

namespace hypertune::inline v0::k8s {

namespace json = boost::json;

Secret pod_token(Client client, const std::string& name, const std::string& experiment, const Owner& owner,
                 const std::stop_token& stop) {
  auto token = Secret::generate();
  const json::object secret{{"apiVersion", "v1"},
                            {"kind", "Secret"},
                            {"metadata",
                             {{"name", json::string(name)},
                              {"labels", {{experiment_label, json::string(experiment)}, {role_label, "token"}}},
                              {"ownerReferences", json::array{owner_reference(owner)}}}},
                            {"stringData", {{"token", json::string(token.reveal())}}}};
  const auto made = client.call({.method = Method::post,
                                 .path = api_path({"api", "v1", "namespaces", client.name_space(), "secrets"}),
                                 .body = json::serialize(secret),
                                 .named = true},
                                stop);
  if (!made.existed) return token;
  const auto found =
      client.call({.path = api_path({"api", "v1", "namespaces", client.name_space(), "secrets", name})}, stop).json();
  const auto* text = value_at(found, "/data/token");
  const auto decoded = text != nullptr && text->is_string() ? detail::base64_decoded(text->get_string()) : std::nullopt;
  if (!decoded) fail(Errc::protocol, "the secret '{}' has no 'token': delete it", name);
  return Secret(*decoded);
}

}  // namespace hypertune::inline v0::k8s
