// Descriptor: a file descriptor that is closed with its owner.
#pragma once

#include <hypertune/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::detail {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// open(2), repeated if interrupted; on failure, an empty Descriptor with errno.
inline Descriptor open_at(int directory, const char* name, int flags, mode_t mode = 0) {
  int fd = -1;
  do fd = ::openat(directory, name, flags | O_CLOEXEC, mode);
  while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

/// read(2), repeated if interrupted: bytes read, 0 at the end, -1 with errno.
inline ssize_t read_some(int fd, char* data, std::size_t size) {
  ssize_t n = 0;
  do n = ::read(fd, data, size);
  while (n < 0 && errno == EINTR);
  return n;
}

/// Fills `text` with the next bytes of a file; at the end of the file it is shortened. Returns 0, or the errno of a
/// failure.
inline int read_into(int fd, std::string& text) {
  std::size_t have = 0;
  ssize_t n = 1;
  while (have < text.size() && (n = read_some(fd, text.data() + have, text.size() - have)) > 0)
    have += static_cast<std::size_t>(n);
  text.resize(have);
  return n < 0 ? errno : 0;
}

/// Writes all of `text`. Returns 0, or the errno of a failure.
inline int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

/// The read end and the write end of a new pipe.
inline std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Errc::io, "cannot make a pipe: {}; are too many files open (ulimit -n)?",
         std::generic_category().message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace hypertune::inline v0::detail
