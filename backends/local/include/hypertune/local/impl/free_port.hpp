// free_port(): lets the kernel choose a port.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/free_port.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace hypertune::inline v0::local {

std::uint16_t free_port(const std::string& address) {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } at;
  std::memset(&at, 0, sizeof at);
  socklen_t size = sizeof at.v4;
  if (::inet_pton(AF_INET, address.c_str(), &at.v4.sin_addr) == 1) {
    at.any.sa_family = AF_INET;
  } else if (::inet_pton(AF_INET6, address.c_str(), &at.v6.sin6_addr) == 1) {
    at.any.sa_family = AF_INET6;
    size = sizeof at.v6;
  } else {
    fail(Errc::usage, "'{}' is no address", address);
  }
  const hypertune::detail::Descriptor socket(::socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.get(), &at.any, size) != 0 || ::getsockname(socket.get(), &at.any, &size) != 0)
    fail(Errc::io, "no port can be had at {}: {}", address, std::generic_category().message(errno));
  return ntohs(at.any.sa_family == AF_INET ? at.v4.sin_port : at.v6.sin6_port);
}

}  // namespace hypertune::inline v0::local
