// The values of many keys at a Rendezvous, and which of them are missing.
#pragma once

#include <hypertune/train/polling.hpp>
#include <hypertune/trial/group.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// By key; none where it is not there within the limit. All are asked for at first: the answer to a question takes its
/// time, so that a value that was set long ago would be missed if the first one used up the limit.
inline std::vector<std::optional<std::string>> rendezvous_values(Rendezvous& rendezvous,
                                                                 const std::vector<std::string>& keys,
                                                                 SteadyTime limit) {
  for (const std::string& key : keys) static_cast<void>(rendezvous.wait(key, 0));
  std::vector<std::optional<std::string>> values;
  for (const std::string& key : keys) values.push_back(rendezvous.wait(key, seconds_until(limit)));
  return values;
}

}  // namespace hypertune::inline v0::detail
