// Workers: definitions.
#pragma once

#include <hypertune/detail/network_text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/allocation.hpp>

namespace hypertune::inline v0 {

void Workers::require_sound() const {
  if (min < 1) fail(Errc::usage, ".workers: a trial needs at least one worker, not {}", min);
  if (max < min) fail(Errc::usage, ".workers: at most {}, but at least {}: max must be min or more", max, min);
}

void GroupOptions::require_sound() const {
  if (!network.empty() && !detail::parse_network(network))
    fail(Errc::usage, ".group.network '{}' is no network: write one as 10.1.0.0/16", network);
}

bool Allocation::uses_host(const std::string& name) const {
  if (lead.host_name == name) return true;
  for (const Slot& slot : others)
    if (slot.host_name == name) return true;
  return false;
}

}  // namespace hypertune::inline v0
