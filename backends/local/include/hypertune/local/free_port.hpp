// A port of this host that nobody listens on.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0::local {

/// At `address`, of IPv4 or IPv6, for a program that will listen there itself. Between the two another program may take
/// it: nothing can keep it for somebody else. The kernel hands such ports out in no order, so that this is rare.
std::uint16_t free_port(const std::string& address);

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/free_port.hpp>
#endif
