// LogTail: a trial's log as it grows, or is cut.
#pragma once

#include <hypertune/execute/bounded_log.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace hypertune::inline v0::remote::detail {

class LogTail {
 public:
  LogTail() = default;
  /// What is in the file by now is not read: an earlier attempt wrote it. `limit`: bytes of the log that are kept.
  LogTail(const std::filesystem::path& path, std::uint64_t limit) : log_(path, limit) {}

  /// What has been written since the last call, at most 32 KiB.
  std::string read() { return log_.read(); }
  void remove() {
    std::error_code ignored;
    std::filesystem::remove(log_.path(), ignored);
  }

 private:
  hypertune::detail::BoundedLogReader log_;
};

}  // namespace hypertune::inline v0::remote::detail
