// Reads the values of several keys at a Rendezvous.
#pragma once

#include <hypertune/train/detail/polling.hpp>
#include <hypertune/trial/group.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The values by key; none for a key that is not set within the limit. All keys are requested first: an answer takes
/// time, so that a value that was set long ago would be missed if waiting for an earlier key used up the limit.
inline std::vector<std::optional<std::string>> rendezvous_values(Rendezvous& rendezvous,
                                                                 const std::vector<std::string>& keys,
                                                                 SteadyTime limit) {
  for (const std::string& key : keys) static_cast<void>(rendezvous.wait(key, 0));
  std::vector<std::optional<std::string>> values;
  for (const std::string& key : keys) values.push_back(rendezvous.wait(key, seconds_until(limit)));
  return values;
}

}  // namespace hypertune::inline v0::detail
