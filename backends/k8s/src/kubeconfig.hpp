// Kubeconfig: what the files of contexts say, merged.
#pragma once

#include <hypertune/config/yaml.hpp>
#include <hypertune/k8s/access.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// Of each name, what the first file that has it says; nothing of the others is added to it.
class Kubeconfig {
 public:
  /// Adds a file. Error of kind `input`.
  void add(const Node& root);

  bool empty() const { return files_.empty(); }
  /// What a context says; empty: the current one. Error of kind `input`, or `usage` for a name that is not there.
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

/// A file's text, with at most `max_size` bytes. Error of kind `input` that names it; `what`: "certificate-authority".
std::string read_named_file(const std::filesystem::path& path, const std::string& where, const std::string& what,
                            std::size_t max_size = std::size_t{1} << 20U);

}  // namespace hypertune::inline v0::k8s::detail
