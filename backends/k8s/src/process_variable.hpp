// A variable of this process's environment.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// nullopt: it is not set, or empty.
inline std::optional<std::string> variable_of_process(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace hypertune::inline v0::k8s
