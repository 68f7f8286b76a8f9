// Sockets: listening, connecting and accepting.
#include "sockets.hpp"

#include "net/private_file.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace hypertune::inline v0::detail {

namespace {

using Clock = std::chrono::steady_clock;

struct Addresses {
  addrinfo* list = nullptr;
  Addresses() = default;
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  ~Addresses() {
    if (list != nullptr) ::freeaddrinfo(list);
  }
};

/// Returns 0 or an error of getaddrinfo().
int resolve(const Tcp& where, Addresses& into) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  return ::getaddrinfo(where.address.c_str(), std::to_string(where.port).c_str(), &hints, &into.list);
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24U) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// The address of a unix socket. A path that is too long for it is shortened by way of the folder's descriptor.
struct UnixAddress {
  explicit UnixAddress(const std::filesystem::path& path) {
    std::string text = path.string();
    if (text.empty() || text.find('\0') != std::string::npos) fail(Errc::usage, "a unix socket needs a path");
    if (text.size() >= sizeof address.sun_path) {
      folder = open_at(AT_FDCWD, path.parent_path().c_str(), O_PATH | O_DIRECTORY);
      if (!folder) fail(Errc::io, "cannot open '{}': {}", path.parent_path().string(), error_text(errno));
      text = detail::format("/proc/self/fd/{}/{}", folder.get(), path.filename().string());
      if (text.size() >= sizeof address.sun_path)
        fail(Errc::usage, "'{}' is too long a name for a socket", path.string());
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  Descriptor folder;
};

Descriptor new_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Returns 0 or an errno; ETIMEDOUT at the deadline, ECANCELED if cancelled.
int finish_connect(int socket, const sockaddr* address, socklen_t size, Clock::time_point deadline, int cancel) {
  for (;;) {
    if (::connect(socket, address, size) == 0 || errno == EISCONN) return 0;
    if (errno == EINTR || errno == EINPROGRESS || errno == EALREADY) break;
    if (errno != EAGAIN) return errno;
    // A unix socket with a full queue: there is no event for free space, so retry.
    pollfd fd{.fd = cancel, .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, 5) > 0) return ECANCELED;
    if (Clock::now() >= deadline) return ETIMEDOUT;
  }
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd fds[2] = {{.fd = socket, .events = POLLOUT, .revents = 0}, {.fd = cancel, .events = POLLIN, .revents = 0}};
    const int n = ::poll(fds, 2, static_cast<int>(std::min<long long>(left, 3'600'000)));
    if (n < 0 && errno != EINTR) return errno;
    if (n <= 0) continue;
    if (fds[1].revents != 0) return ECANCELED;
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    return error;
  }
}

}  // namespace

Listener::Listener(const UnixSocket& where) : socket_(new_socket(AF_UNIX)), file_(where.path) {
  const UnixAddress address(where.path);
  if (!socket_) fail(Errc::io, "cannot make a socket: {}", error_text(errno));
  ::fchmod(socket_.get(), 0600);  // before it is visible; on Linux the file gets this mode
  for (int tries = 0; ::bind(socket_.get(), address.get(), sizeof address.address) != 0; ++tries) {
    if (errno != EADDRINUSE || tries > 0)
      fail(Errc::io, "cannot listen at '{}': {}", where.path.string(), error_text(errno));
    struct stat status{};
    if (::lstat(where.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
      fail(Errc::usage, "cannot listen at '{}': that is there already, and no socket", where.path.string());
    const Descriptor probe = new_socket(AF_UNIX);
    if (::connect(probe.get(), address.get(), sizeof address.address) == 0 || errno == EAGAIN)
      fail(Errc::busy, "somebody listens at '{}' already", where.path.string());
    ::unlink(where.path.c_str());  // left by a process that was killed
  }
  ::chmod(where.path.c_str(), 0600);
  struct stat status{};
  if (::listen(socket_.get(), 512) != 0 || ::lstat(where.path.c_str(), &status) != 0)
    fail(Errc::io, "cannot listen at '{}': {}", where.path.string(), error_text(errno));
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

Listener::Listener(const Tcp& where) {
  Addresses addresses;
  if (const int error = resolve(where, addresses); error != 0)
    fail(Errc::usage, "cannot listen at '{}': {}", where.address, ::gai_strerror(error));
  const addrinfo& chosen = *addresses.list;
  socket_ = new_socket(chosen.ai_family);
  const int on = 1;
  if (!socket_ || ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket_.get(), chosen.ai_addr, chosen.ai_addrlen) != 0 || ::listen(socket_.get(), 512) != 0)
    fail(errno == EADDRINUSE ? Errc::busy : Errc::io, "cannot listen at {} port {}: {}", where.address, where.port,
         error_text(errno));
  loopback_ = is_loopback(chosen.ai_addr);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    fail(Errc::io, "cannot listen at {}: {}", where.address, error_text(errno));
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

Listener::~Listener() {
  struct stat status{};
  if (!file_.empty() && ::lstat(file_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    ::unlink(file_.c_str());
}

Descriptor connect_to(const Endpoint& where, Clock::time_point deadline, int cancel) {
  const auto refuse = [&](int error) {
    if (error == ECANCELED) fail(Errc::io, "stopped while connecting to {}", where.to_string());
    fail(Errc::io, "cannot connect to {}: {}", where.to_string(), error_text(error));
  };
  if (const auto* local = std::get_if<UnixSocket>(&where.address)) {
    const UnixAddress address(local->path);
    Descriptor socket = new_socket(AF_UNIX);
    if (!socket) refuse(errno);
    if (const int error = finish_connect(socket.get(), address.get(), sizeof address.address, deadline, cancel);
        error != 0)
      refuse(error);
    return socket;
  }
  if (const auto* own = std::get_if<Connector>(&where.address)) {
    Descriptor socket(own->connect());
    if (!socket || ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) refuse(errno);
    return socket;
  }
  const auto* tcp = std::get_if<Tcp>(&where.address);
  if (tcp == nullptr) fail(Errc::usage, "{} is no server to connect to", where.to_string());
  Addresses addresses;
  if (const int error = resolve(*tcp, addresses); error != 0)
    fail(Errc::io, "cannot connect to {}: {}", where.to_string(), ::gai_strerror(error));
  int error = EHOSTUNREACH;
  for (const addrinfo* next = addresses.list; next != nullptr; next = next->ai_next) {
    Descriptor socket = new_socket(next->ai_family);
    if (!socket) {
      error = errno;
      continue;
    }
    no_delay(socket.get());
    error = finish_connect(socket.get(), next->ai_addr, next->ai_addrlen, deadline, cancel);
    if (error == 0) return socket;
    if (error == ETIMEDOUT || error == ECANCELED) break;
  }
  refuse(error);
  return {};
}

Descriptor accept_from(int listener) {
  int fd = -1;
  do fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd >= 0) no_delay(fd);  // fails for unix sockets, which is harmless
  return Descriptor(fd);
}

}  // namespace hypertune::inline v0::detail
