// BoundedLog: a trial's log, of which the beginning and the end are kept when it grows beyond a limit.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

inline constexpr std::string_view log_cut_begin = "\n[hypertune: ", log_cut_end = "]\n";

/// What of a log's file is which part of the log. A log of a limit is kept whole up to it. Then it is its first half of
/// the limit, a line that says how many bytes follow in the log and not in the file, and the log's end.
struct LogParts {
  std::uint64_t size = 0;      ///< of the file
  std::uint64_t head = 0;      ///< bytes before the line
  std::uint64_t marker = 0;    ///< length of the line; 0: nothing was left out
  std::uint64_t left_out = 0;  ///< bytes

  /// Of the log as it was printed.
  std::uint64_t length() const { return size - marker + left_out; }

  /// Finds them in the file. Empty where that cannot be read.
  static LogParts of(int file, std::uint64_t limit) {
    LogParts parts;
    struct stat status{};
    if (::fstat(file, &status) != 0) return parts;
    parts.size = static_cast<std::uint64_t>(status.st_size);
    parts.head = parts.size;
    if (limit == 0 || parts.size <= limit / 2) return parts;
    std::array<char, 160> buffer{};
    const ssize_t n = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(limit / 2));
    std::string_view text(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    const auto end = text.find(log_cut_end);
    if (!text.starts_with(log_cut_begin) || end == std::string_view::npos) return parts;
    text.remove_prefix(log_cut_begin.size());
    std::uint64_t left_out = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), left_out);
    if (error != std::errc() || rest == text.data()) return parts;
    parts.head = limit / 2;
    parts.marker = end + log_cut_end.size();
    parts.left_out = left_out;
    return parts;
  }
  static LogParts of(const std::filesystem::path& path, std::uint64_t limit) {
    const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW);
    return file ? of(file.get(), limit) : LogParts{};
  }
};

}  // namespace detail

/// A log that is appended to. Beyond `limit` bytes (0: none) its middle is left out, and a line there says how much.
/// The file stays the same one, so that a reader who follows it goes on. Used by one thread at a time.
class BoundedLog {
 public:
  /// Error of kind `io` if the file cannot be written.
  BoundedLog(std::filesystem::path path, std::uint64_t limit)
      : path_(std::move(path)),
        limit_(limit),
        file_(detail::open_at(AT_FDCWD, path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {
    if (!file_) detail::fail_io(errno, "open", path_);
    trim();
  }

  const std::filesystem::path& path() const { return path_; }

  /// False: the disk did not take it.
  bool write(std::string_view text) {
    const std::size_t piece =
        limit_ == 0 ? text.size() : static_cast<std::size_t>(std::max<std::uint64_t>(1, limit_ / 4));
    bool good = true;
    while (!text.empty() && good) {
      const std::string_view part = text.substr(0, piece);
      good = put(part);
      text.remove_prefix(part.size());
      if (limit_ > 0 && size_ > limit_) trim();
    }
    return good;
  }

  /// Looks at the file, to which others may append. What one appends in the moment of the cut may be lost.
  void trim() {
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0) return;
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (limit_ == 0 || size_ <= limit_) return;
    // Another descriptor, as what is written through the first one goes to the end.
    const detail::Descriptor file = detail::open_at(AT_FDCWD, path_.c_str(), O_RDWR | O_NOFOLLOW);
    struct stat same{};
    if (file && ::fstat(file.get(), &same) == 0 && same.st_ino == status.st_ino && same.st_dev == status.st_dev)
      size_ = cut(file.get());
  }

 private:
  bool put(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(file_.get(), text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      size_ += static_cast<std::uint64_t>(n);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Keeps a quarter of the limit of the end, so that the next cut is a quarter away: what is moved is about as much as
  // what is written. Returns the size.
  std::uint64_t cut(int file) const {
    const auto parts = detail::LogParts::of(file, limit_);
    const std::uint64_t head = limit_ / 2;
    std::uint64_t from = after_line(file, parts.size - limit_ / 4);
    const std::uint64_t left_out = parts.left_out + from - head - parts.marker;
    std::uint64_t to = head;
    const std::string marker = detail::format("{}{} bytes of this log are left out here, log_limit is {}{}",
                                              detail::log_cut_begin, left_out, limit_, detail::log_cut_end);
    const auto put_at = [&](std::string_view text) {
      while (!text.empty()) {
        const ssize_t n = ::pwrite(file, text.data(), text.size(), static_cast<off_t>(to));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        to += static_cast<std::uint64_t>(n);
        text.remove_prefix(static_cast<std::size_t>(n));
      }
      return true;
    };
    bool good = put_at(marker);
    std::vector<char> buffer(std::size_t{64} << 10U);
    std::uint64_t size = parts.size;
    for (int look = 0; good && look < 8; ++look) {  // what came meanwhile
      while (good && from < size) {
        const ssize_t n =
            ::pread(file, buffer.data(), static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - from)),
                    static_cast<off_t>(from));
        if (n <= 0) break;
        good = put_at({buffer.data(), static_cast<std::size_t>(n)});
        from += static_cast<std::uint64_t>(n);
      }
      struct stat status{};
      if (::fstat(file, &status) != 0 || static_cast<std::uint64_t>(status.st_size) <= size) break;
      size = static_cast<std::uint64_t>(status.st_size);
    }
    return ::ftruncate(file, static_cast<off_t>(to)) == 0 ? to : size;
  }

  // Where the next line begins, if that is near.
  static std::uint64_t after_line(int file, std::uint64_t from) {
    std::array<char, 1024> buffer{};
    const ssize_t n = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(from));
    const auto end = std::string_view(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0).find('\n');
    return end == std::string_view::npos ? from : from + end + 1;
  }

  std::filesystem::path path_;
  std::uint64_t limit_;
  detail::Descriptor file_;
  std::uint64_t size_ = 0;
};

namespace detail {

/// What a log says from some place on, however it is cut meanwhile.
class BoundedLogReader {
 public:
  BoundedLogReader() = default;
  /// From the log's end, as it is now.
  BoundedLogReader(std::filesystem::path path, std::uint64_t limit) : path_(std::move(path)), limit_(limit) {
    at_ = LogParts::of(path_, limit_).length();
  }

  /// What has been written since the last call, at most 32 KiB.
  std::string read() {
    if (!file_) file_ = open_at(AT_FDCWD, path_.c_str(), O_RDONLY | O_NOFOLLOW);
    std::string text;
    for (int tries = 0; file_ && tries < 3; ++tries) {
      const auto parts = LogParts::of(file_.get(), limit_);
      text.clear();
      std::uint64_t at = std::min(at_, parts.length()), place = at, most = std::uint64_t{32} << 10U;
      if (parts.marker > 0 && at < parts.head) most = std::min(most, parts.head - at);
      if (parts.marker > 0 && at >= parts.head) {
        const std::uint64_t tail = parts.head + parts.left_out;
        if (at < tail) {  // left out before it was read
          text = format("{}{} bytes of this log are left out here{}", log_cut_begin, tail - at, log_cut_end);
          at = tail;
        }
        place = at - parts.left_out + parts.marker;
      }
      const std::size_t said = text.size();
      text.resize(said + most);
      const ssize_t n = ::pread(file_.get(), text.data() + said, most, static_cast<off_t>(place));
      text.resize(said + (n > 0 ? static_cast<std::size_t>(n) : 0));
      at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
      if (LogParts::of(file_.get(), limit_).left_out != parts.left_out) continue;  // it was cut meanwhile
      at_ = at;
      return text;
    }
    return {};
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::uint64_t limit_ = 0;
  Descriptor file_;
  std::uint64_t at_ = 0;  // in the log as it was printed
};

}  // namespace detail
}  // namespace hypertune
