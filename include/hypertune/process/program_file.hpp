// Finds the file of a program as a shell does.
#pragma once

#include <hypertune/detail/text.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::process {

/// The file that `program` names: itself if it contains a '/', else the first of that name in a folder of PATH
/// ("/usr/bin:/bin" if that is not set). Empty if there is no regular file that may be executed.
inline std::filesystem::path program_file(std::string_view program) {
  const auto runs = [](const std::filesystem::path& file) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string_view::npos) {
    std::filesystem::path file(program);
    return runs(file) ? file : std::filesystem::path();
  }
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    auto file = std::filesystem::path(hypertune::detail::take_until(rest, ':')) / program;
    if (runs(file)) return file;
  }
  return {};
}

}  // namespace hypertune::inline v0::process
