// By which address this host is reached by the other ranks.
#pragma once

#include <hypertune/trial/group.hpp>

#include <string>

namespace hypertune::inline v0::detail {

/// As text. Error of kind `usage` where `place` names no network, or one that this host is not in.
std::string address_of(const GroupPlace& place);

}  // namespace hypertune::inline v0::detail
