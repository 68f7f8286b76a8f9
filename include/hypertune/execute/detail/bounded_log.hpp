// BoundedLog: a trial's log. If it grows beyond a limit, only its beginning and its end are kept.
#pragma once

#include <hypertune/checkpoint/detail/posix_files.hpp>
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

namespace hypertune::inline v0 {

namespace detail {

inline constexpr std::string_view log_cut_begin = "\n[hypertune: ", log_cut_end = "]\n";
inline constexpr std::uint64_t max_log_cut = 160;
// Texts of the marker line while a cut is in progress.
inline constexpr std::string_view log_cut_moving = " bytes cut: goes on at ", log_cut_moved = " bytes cut: ends at ";

/// The layout of a log's file. A log is kept whole up to its limit. Beyond that, the file has the first half of the
/// limit, a marker line with the number of bytes left out, and the end of the log.
///
/// A cut copies the end of the log to the place behind the marker line. Until the copy is complete, the line says where
/// the original end is; then it says where the copy ends, until the rest is truncated. So the file can be read at any
/// time, even if a cut was interrupted.
struct LogParts {
  std::uint64_t size = 0;      ///< of the file, without bytes that are still to be truncated
  std::uint64_t head = 0;      ///< bytes before the marker line
  std::uint64_t marker = 0;    ///< bytes from there to where the log goes on; 0: nothing was left out
  std::uint64_t left_out = 0;  ///< bytes of the log that are not in the file
  std::uint64_t end = 0;       ///< where the copy ends, if the rest is still to be truncated; else 0

  /// The length of the log as it was printed.
  std::uint64_t length() const { return size - marker + left_out; }

  /// Whether both have the same parts of the log at the same places in the file.
  bool same_place(const LogParts& other) const {
    return head == other.head && marker == other.marker && left_out == other.left_out && end == other.end;
  }

  /// Reads the layout from the file. Empty if the file cannot be read.
  static LogParts of(int file, std::uint64_t limit) {
    LogParts parts;
    for (int tries = 0; tries < 8; ++tries) {  // until line and size are consistent
      const LineText before = line_at(file, limit);
      struct stat status{};
      if (::fstat(file, &status) != 0) return {};
      const LineText after = line_at(file, limit);
      parts = from(after.view(), static_cast<std::uint64_t>(status.st_size), limit);
      if (from(before.view(), parts.size, limit).same_place(parts)) break;
    }
    return parts;
  }
  static LogParts of(const std::filesystem::path& path, std::uint64_t limit) {
    const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW);
    return file ? of(file.get(), limit) : LogParts{};
  }

 private:
  struct LineText {
    std::array<char, max_log_cut> buffer{};
    std::size_t size = 0;
    std::string_view view() const { return {buffer.data(), size}; }
  };
  static LineText line_at(int file, std::uint64_t limit) {
    LineText text;
    if (limit == 0) return text;
    const ssize_t n = ::pread(file, text.buffer.data(), text.buffer.size(), static_cast<off_t>(limit / 2));
    text.size = n > 0 ? static_cast<std::size_t>(n) : 0;
    return text;
  }
  static bool take_number(std::string_view& text, std::uint64_t& number) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || rest == text.data()) return false;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    return true;
  }
  static LogParts from(std::string_view text, std::uint64_t size, std::uint64_t limit) {
    LogParts whole, parts;
    whole.size = whole.head = parts.size = size;
    const auto end = text.find(log_cut_end);
    if (limit == 0 || size <= limit / 2 || !text.starts_with(log_cut_begin) || end == std::string_view::npos)
      return whole;
    parts.head = limit / 2;
    parts.marker = end + log_cut_end.size();
    text = text.substr(log_cut_begin.size(), end - log_cut_begin.size());
    if (!take_number(text, parts.left_out)) return whole;
    const std::uint64_t behind = parts.head + parts.marker;
    std::uint64_t place = 0;
    if (text.starts_with(log_cut_moving)) {
      text.remove_prefix(log_cut_moving.size());
      if (!take_number(text, place) || place < behind || place > size) return whole;
      parts.marker = place - parts.head;
    } else if (text.starts_with(log_cut_moved)) {
      text.remove_prefix(log_cut_moved.size());
      if (!take_number(text, place) || place < behind) return whole;
      parts.end = place;
      parts.size = std::min(size, place);
    }
    return parts;
  }
};

}  // namespace detail

/// A log that is appended to. Beyond `limit` bytes (0: no limit) its middle is left out, and a line there says how
/// much. The file is never replaced, so that programs that follow it can go on. Not thread-safe.
class BoundedLog {
 public:
  /// Throws an Error of kind `io` if the file cannot be opened.
  BoundedLog(std::filesystem::path path, std::uint64_t limit)
      : path_(std::move(path)),
        limit_(limit),
        file_(detail::open_at(AT_FDCWD, path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {
    if (!file_) detail::fail_io(errno, "open", path_);
    finish_cut();
    trim();
  }

  const std::filesystem::path& path() const { return path_; }

  /// False if writing failed.
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

  /// Cuts the file if it is too long. Other processes may append to it; what they append during a cut may be lost.
  void trim() {
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0) return;
    size_ = static_cast<std::uint64_t>(status.st_size);
    if (limit_ == 0 || size_ <= limit_) return;
    if (const auto file = for_cutting()) size_ = cut(file.get());
  }

 private:
  // Opens another descriptor, because the first one can only append.
  detail::Descriptor for_cutting() const {
    struct stat status{}, same{};
    detail::Descriptor file = detail::open_at(AT_FDCWD, path_.c_str(), O_RDWR | O_NOFOLLOW);
    if (file && ::fstat(file_.get(), &status) == 0 && ::fstat(file.get(), &same) == 0 && same.st_ino == status.st_ino &&
        same.st_dev == status.st_dev)
      return file;
    return {};
  }

  // Finishes a cut whose process was killed before it truncated the file: otherwise new output would be behind the end
  // that the marker line states.
  void finish_cut() const {
    if (limit_ == 0 || detail::LogParts::of(path_, limit_).end == 0) return;
    const auto file = for_cutting();
    const auto parts = file ? detail::LogParts::of(file.get(), limit_) : detail::LogParts{};
    if (parts.end > 0) cut_off(file.get(), parts.left_out, parts.end);
  }

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

  static bool put_at(int file, std::uint64_t at, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::pwrite(file, text.data(), text.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      at += static_cast<std::uint64_t>(n);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  std::string line(std::uint64_t left_out) const {
    return detail::format("{}{} bytes of this log are left out here, log_limit is {}{}", detail::log_cut_begin,
                          left_out, limit_, detail::log_cut_end);
  }
  // The marker line of a cut in progress, as long as the final one.
  std::string line(std::uint64_t left_out, std::string_view what, std::uint64_t place) const {
    const std::size_t length = line(left_out).size() - detail::log_cut_end.size();
    std::string text = detail::format("{}{}{}{}", detail::log_cut_begin, left_out, what, place);
    text.resize(length, ' ');
    return text.append(detail::log_cut_end);
  }

  // Truncates the file and writes the final marker line. Returns the size.
  std::uint64_t cut_off(int file, std::uint64_t left_out, std::uint64_t end) const {
    if (::ftruncate(file, static_cast<off_t>(end)) != 0) return size_;
    put_at(file, limit_ / 2, line(left_out));
    return end;
  }

  // Keeps a quarter of the limit of the end, so that the next cut comes after another quarter: about as many bytes are
  // moved as are written. The end and its copy do not overlap. Returns the size.
  std::uint64_t cut(int file) const {
    const auto parts = detail::LogParts::of(file, limit_);
    const std::uint64_t head = limit_ / 2;
    const std::uint64_t begin =
        after_line(file, std::max(parts.size - limit_ / 4 + detail::max_log_cut, head + parts.marker));
    const std::uint64_t left_out = parts.left_out + begin - head - parts.marker;
    bool good = put_at(file, head, line(left_out, detail::log_cut_moving, begin));
    std::uint64_t from = begin, to = head + line(left_out).size(), size = parts.size;
    std::vector<char> buffer(std::size_t{64} << 10U);
    for (int look = 0; good && look < 8; ++look) {  // repeated for output that was added meanwhile
      while (good && from < size) {
        const ssize_t n =
            ::pread(file, buffer.data(), static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - from)),
                    static_cast<off_t>(from));
        good = n > 0 && put_at(file, to, {buffer.data(), static_cast<std::size_t>(n)});
        if (!good) break;
        from += static_cast<std::uint64_t>(n);
        to += static_cast<std::uint64_t>(n);
      }
      struct stat status{};
      if (::fstat(file, &status) != 0 || static_cast<std::uint64_t>(status.st_size) <= size) break;
      size = static_cast<std::uint64_t>(status.st_size);
    }
    if (!good) return size;  // the line still points to the original end
    if (!put_at(file, head, line(left_out, detail::log_cut_moved, to))) return size;
    return cut_off(file, left_out, to);
  }

  // Where the next line begins, if it does within 1 KiB; otherwise `from`.
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

/// Reads a log from some position on, even if it is cut meanwhile.
class BoundedLogReader {
 public:
  BoundedLogReader() = default;
  /// Starts at the present end of the log.
  BoundedLogReader(std::filesystem::path path, std::uint64_t limit) : path_(std::move(path)), limit_(limit) {
    at_ = LogParts::of(path_, limit_).length();
  }

  /// What was written since the last call, at most 32 KiB.
  std::string read() {
    if (!file_) file_ = open_at(AT_FDCWD, path_.c_str(), O_RDONLY | O_NOFOLLOW);
    std::string text;
    for (int tries = 0; file_ && tries < 8; ++tries) {
      const auto parts = LogParts::of(file_.get(), limit_);
      text.clear();
      std::uint64_t at = std::min(at_, parts.length()), place = at, most = std::uint64_t{32} << 10U;
      if (parts.marker > 0 && at < parts.head) most = std::min(most, parts.head - at);
      if (parts.marker > 0 && at >= parts.head) {
        const std::uint64_t tail = parts.head + parts.left_out;
        if (at < tail) {  // left out before it was read
          text = detail::format("{}{} bytes of this log are left out here{}", log_cut_begin, tail - at, log_cut_end);
          at = tail;
        }
        place = at - parts.left_out + parts.marker;
      }
      most = std::min(most, parts.size - std::min(parts.size, place));  // bytes behind it may be truncated
      const std::size_t said = text.size();
      text.resize(said + most);
      const ssize_t n = ::pread(file_.get(), text.data() + said, most, static_cast<off_t>(place));
      text.resize(said + (n > 0 ? static_cast<std::size_t>(n) : 0));
      at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
      if (!LogParts::of(file_.get(), limit_).same_place(parts)) continue;  // the log was cut meanwhile
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
  std::uint64_t at_ = 0;  // position in the log as it was printed
};

}  // namespace detail
}  // namespace hypertune::inline v0
