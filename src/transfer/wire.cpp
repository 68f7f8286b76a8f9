// Wire: a socket with deadlines and optional TLS.
#include "wire.hpp"

#include <hypertune/error.hpp>

#include <boost/asio/error.hpp>
#include <openssl/err.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace hypertune::inline v0::detail {

namespace {

namespace error_names = boost::asio::error;

Wire::ErrorCode from_errno(int error) { return {error, boost::system::system_category()}; }

/// Milliseconds until `when`, for poll(): at least 0, at most one hour, rounded up.
int milliseconds_until(Wire::Clock::time_point when) {
  const auto now = Wire::Clock::now();
  if (when <= now) return 0;
  if (when - now > std::chrono::hours(1)) return 3'600'000;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(when - now).count());
}

}  // namespace

void Wire::wait(short events, ErrorCode& error) {
  error = {};
  for (;;) {
    pollfd fds[2] = {{.fd = socket_.get(), .events = events, .revents = 0},
                     {.fd = cancel_, .events = POLLIN, .revents = 0}};  // -1 is ignored
    const int timeout = deadline_ == Clock::time_point::max() ? 3'600'000 : milliseconds_until(deadline_);
    const int n = ::poll(fds, 2, timeout);
    if (n < 0 && errno != EINTR) {
      error = from_errno(errno);
      return;
    }
    if (n > 0) {
      if (fds[1].revents != 0) error = error_names::operation_aborted;
      return;  // errors of the socket are reported by the next call
    }
    if (n == 0 && Clock::now() >= deadline_) {
      error = error_names::timed_out;
      return;
    }
  }
}

std::size_t Wire::advance(std::size_t bytes) {
  constexpr std::size_t min_progress = 4096;  // a peer that sends single bytes makes no progress
  since_progress_ += bytes;
  if (stall_ != Clock::duration{} && since_progress_ >= min_progress) {
    since_progress_ = 0;
    deadline_ = std::min(Clock::now() + stall_, hard_deadline_);
  }
  return bytes;
}

bool Wire::should_retry(int result, ErrorCode& error) {
  const int saved = errno;
  error = {};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: wait(POLLIN, error); return !error;
    case SSL_ERROR_WANT_WRITE: wait(POLLOUT, error); return !error;
    case SSL_ERROR_ZERO_RETURN: error = error_names::eof; break;
    case SSL_ERROR_SYSCALL: error = saved == 0 ? ErrorCode(error_names::eof) : from_errno(saved); break;
    default:
      if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        error = error_names::eof;
      else
        error = from_errno(EPROTO);
  }
  ERR_clear_error();
  return false;
}

void Wire::start_tls(SSL_CTX* context, bool server, const std::string& fingerprint, ErrorCode& error) {
  error = {};
  ssl_.reset(SSL_new(context));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.get()) != 1) openssl_failed("use TLS");
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int result = server ? SSL_accept(ssl_.get()) : SSL_connect(ssl_.get());
    if (result == 1) break;
    if (!should_retry(result, error)) return;
  }
  if (server) return;
  const OpensslOwner<X509, X509_free> certificate(SSL_get1_peer_certificate(ssl_.get()));
  // TLS has verified that the peer has the certificate's key; here it is checked that it is the expected certificate.
  if (!net::has_fingerprint(certificate.get(), fingerprint))
    fail(Errc::usage, "{}", net::pin_trouble("the server", "another experiment's"));
}

std::size_t Wire::receive(char* data, std::size_t size, ErrorCode& error) {
  for (;;) {
    error = {};
    if (ssl_) {
      ERR_clear_error();
      errno = 0;
      const int n = SSL_read(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(size, 1U << 30U)));
      if (n > 0) return advance(static_cast<std::size_t>(n));
      const auto begin = Clock::now();
      const bool again = should_retry(n, error);
      waited_ += Clock::now() - begin;
      if (!again) return 0;
      continue;
    }
    const ssize_t n = ::recv(socket_.get(), data, size, MSG_DONTWAIT);
    if (n > 0) return advance(static_cast<std::size_t>(n));
    if (n == 0) {
      error = error_names::eof;
      return 0;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      error = from_errno(errno);
      return 0;
    }
    const auto begin = Clock::now();
    wait(POLLIN, error);
    waited_ += Clock::now() - begin;
    if (error) return 0;
  }
}

std::size_t Wire::send(const char* data, std::size_t size, bool more, ErrorCode& error) {
  for (;;) {
    error = {};
    if (ssl_) {
      ERR_clear_error();
      errno = 0;
      const int n = SSL_write(ssl_.get(), data, static_cast<int>(std::min<std::size_t>(size, 1U << 30U)));
      if (n > 0) return advance(static_cast<std::size_t>(n));
      if (!should_retry(n, error)) return 0;
      continue;
    }
    const ssize_t n = ::send(socket_.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
    if (n > 0) return advance(static_cast<std::size_t>(n));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      error = from_errno(errno);
      return 0;
    }
    wait(POLLOUT, error);
    if (error) return 0;
  }
}

void Wire::send_all(const char* data, std::size_t size, bool more, ErrorCode& error) {
  error = {};
  while (size > 0) {
    const std::size_t n = send(data, size, more, error);
    if (error) return;
    data += n;
    size -= n;
  }
}

std::size_t Wire::send_file(int file, off_t& offset, std::size_t size, ErrorCode& error) {
  for (;;) {
    error = {};
    const ssize_t n = ::sendfile(socket_.get(), file, &offset, size);
    if (n >= 0) return advance(static_cast<std::size_t>(n));
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      error = from_errno(errno);
      return 0;
    }
    wait(POLLOUT, error);
    if (error) return 0;
  }
}

void Wire::wait_readable(ErrorCode& error) {
  error = {};
  if (ssl_ && SSL_pending(ssl_.get()) > 0) return;
  wait(POLLIN, error);
}

void Wire::wait_until(Clock::time_point when, ErrorCode& error) {
  error = {};
  for (;;) {
    const auto until = std::min(when, deadline_);
    const int timeout = milliseconds_until(until);
    if (timeout == 0) break;
    pollfd fd{.fd = cancel_, .events = POLLIN, .revents = 0};
    const int n = ::poll(&fd, 1, timeout);
    if (n > 0) {
      error = error_names::operation_aborted;
      return;
    }
    if (n < 0 && errno != EINTR) {
      error = from_errno(errno);
      return;
    }
  }
  if (deadline_ < when) error = error_names::timed_out;
}

Alarm::Alarm() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) fail(Errc::io, "cannot make an event descriptor: {}", from_errno(errno).message());
}

void Alarm::raise() {
  const std::uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {}
}

void Alarm::clear() {
  std::uint64_t count = 0;
  while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {}
}

bool Alarm::raised() const {
  pollfd fd{.fd = event_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&fd, 1, 0) > 0;
}

}  // namespace hypertune::inline v0::detail
