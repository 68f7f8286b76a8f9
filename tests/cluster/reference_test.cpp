// docs/cluster.md says what the reader of a CLUSTER.yaml knows: every key, and nothing else.
#include "support/reference.hpp"

#include "support/test.hpp"

#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/detail/keys.hpp>

#include <fmt/format.h>

#include <set>
#include <string>

namespace hc = hypertune::cluster;

namespace {

const std::filesystem::path page = std::filesystem::path(HYPERTUNE_SOURCE_DIR) / "docs/cluster.md";

hc::ClusterConfig read(const std::string& text, const std::string& name) {
  return hc::cluster_from_yaml(hypertune::load_yaml_text(text, name));
}

}  // namespace

TEST_CASE("the reference of clusters: every key") {
  const auto reference = support::read_reference(page);
  support::WatchedKeys watched;
  for (const char* provider :
       {"{type: local, head_ip: a}", "{type: aws, region: b}", "{type: command, command: [./c]}"})
    read(fmt::format("cluster_name: a\nprovider: {}\nauth: {{ssh_user: u}}\n"
                     "available_node_types: {{head: {{price: {{spot: 1}}}}}}\n",
                     provider),
         provider);
  read(
      "cluster_name: a\nprovider: {type: kubernetes}\n"
      "available_node_types: {head: {node_config: {spec: {containers: [{image: b}]}}}}\n",
      "pods");
  const std::pair<const char*, const char*> tables[] = {
      {"cluster", ""},
      {"provider", "provider"},
      {"auth", "auth"},
      {"available_node_types.<type>", "available_node_types.head"},
      {"available_node_types.<type>.price", "available_node_types.head.price"},
      {"available_node_types.<type>.node_config", "available_node_types.head.node_config"}};
  std::set<std::string> seen;
  for (const auto& [table, path] : tables) {
    support::check_table(reference, table, watched, path);
    seen.insert(table);
  }
  for (const auto& [table, rows] : reference.tables) CHECK(seen.contains(table));
  CHECK(watched.known.size() == seen.size());  // no map of keys that no table is about
}

TEST_CASE("the reference of clusters: what each key means is what the reader's tables say") {
  const auto reference = support::read_reference(page);
  support::check_key_table(reference, "cluster", hc::detail::cluster_keys());
  support::check_key_table(reference, "auth", hc::detail::auth_keys());
  support::check_key_table(reference, "available_node_types.<type>", hc::detail::node_type_keys());
  support::check_key_table(reference, "available_node_types.<type>.price", hc::detail::price_keys());
  hypertune::Keys provider;
  for (const char* type : {"local", "aws", "kubernetes", "command"})
    for (const auto& key : hc::detail::provider_keys(type)) provider.push_back(key);
  support::check_key_table(reference, "provider", provider);
}

TEST_CASE("the reference of clusters: its examples are read as they stand") {
  const auto reference = support::read_reference(page);
  CHECK(reference.examples.size() >= 3);
  for (const auto& [line, text] : reference.examples) {
    INFO("cluster.md:" << line);
    CHECK(read(text, fmt::format("cluster.md:{}", line)).warnings.empty());
  }
}
