// Kubeconfig: the merged contents of kubeconfig files.
#pragma once

#include <hypertune/config/yaml.hpp>
#include <hypertune/k8s/access.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// For each name, the entry of the first file that has it; entries of the same name are not merged.
class Kubeconfig {
 public:
  /// Adds a file. Error of kind `input`.
  void add(const Node& root);

  bool empty() const { return files_.empty(); }
  /// The access of a context; empty: the current one. Error of kind `input`, or `usage` for an unknown name.
  Access access(const std::string& context) const;

 private:
  using Entries = std::map<std::string, Node, std::less<>>;

  void add_entries(const Node& root, const char* list, const char* kind, Entries& into);
  std::string listed() const;
  static void take_cluster(const std::string& name, const Node& cluster, Access& access);
  static void take_user(const std::string& name, const Node& user, Access& access);

  std::vector<std::string> files_;
  std::string current_;
  Entries clusters_, users_, contexts_;
};

/// A file's text of at most `max_size` bytes. The Error of kind `input` names it; `what`: "certificate-authority".
std::string read_named_file(const std::filesystem::path& path, const std::string& where, const std::string& what,
                            std::size_t max_size = std::size_t{1} << 20U);

}  // namespace hypertune::inline v0::k8s::detail
