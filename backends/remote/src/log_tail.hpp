// LogTail: reads a trial's log as it grows or is truncated.
#pragma once

#include <hypertune/execute/detail/bounded_log.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace hypertune::inline v0::remote::detail {

class LogTail {
 public:
  LogTail() = default;
  /// Skips the current content of the file, which is from an earlier attempt. `limit`: bytes of the log that are kept.
  LogTail(const std::filesystem::path& path, std::uint64_t limit) : log_(path, limit) {}

  /// The text written since the last call, at most 32 KiB.
  std::string read() { return log_.read(); }
  void remove() {
    std::error_code ignored;
    std::filesystem::remove(log_.path(), ignored);
  }

 private:
  hypertune::detail::BoundedLogReader log_;
};

}  // namespace hypertune::inline v0::remote::detail
