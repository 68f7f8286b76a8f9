// AccessFiles: kubeconfigs in a folder of their own, and an environment that a test makes.
#pragma once

#include "support/temporary_directory.hpp"

#include <hypertune/error.hpp>
#include <hypertune/k8s/access.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::test {

struct AccessFiles {
  TemporaryDirectory folder;
  mutable std::map<std::string, std::string> variables;

  std::filesystem::path path(const std::string& name) const { return folder.path() / name; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  k8s::AccessOptions options(std::vector<std::filesystem::path> files) const {
    k8s::AccessOptions options;
    options.kubeconfig = std::move(files);
    options.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    return options;
  }
};

/// What an Error says; "none" where there is none.
template <class F>
std::string problem(F&& f) {
  try {
    f();
  } catch (const Error& error) { return error.what(); }
  return "none";
}

}  // namespace hypertune::inline v0::test
