// A pair of connected sockets.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::detail {

/// Close-on-exec. Error of kind `io` if no more can be made.
inline std::pair<Descriptor, Descriptor> make_socket_pair() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail(Errc::io, "cannot make a socket: {}; are too many files open (ulimit -n)?",
         std::generic_category().message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace hypertune::inline v0::detail
