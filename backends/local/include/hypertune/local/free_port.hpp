// free_port(): finds a free TCP port of this host.
#pragma once

#include <cstdint>
#include <string>

namespace hypertune::inline v0::local {

/// A free TCP port at `address` (IPv4 or IPv6), for another program to listen on. Some other program may take the port
/// before that, because a port cannot be reserved for another process. This is rare, because the kernel chooses such
/// ports in random order. Throws an Error of kind `usage` for an invalid address, and `io` if there is no port.
std::uint16_t free_port(const std::string& address);

}  // namespace hypertune::inline v0::local
