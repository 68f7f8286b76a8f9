// Texts for messages about hosts and why they are not available.
#pragma once

#include <hypertune/detail/format.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Whether the name is self-explanatory: "worker-3".
inline bool is_worker_name(std::string_view name) {
  constexpr std::string_view head = "worker-";
  return name.starts_with(head) && name.size() > head.size() &&
         name.find_first_not_of("0123456789", head.size()) == std::string_view::npos;
}

/// "host 'a'", "worker-3".
inline std::string host_text(std::string_view name) {
  return is_worker_name(name) ? std::string(name) : detail::format("host '{}'", name);
}

/// Up to this many hosts are named one by one.
inline constexpr std::size_t few_hosts = 3;

/// "host 'a', worker-3"; for more than three: "host 'a', host 'b', host 'c' and 4 more".
inline std::string hosts_text(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), few_hosts); ++i) text += (i > 0 ? ", " : "") + host_text(names[i]);
  if (names.size() > few_hosts) text += detail::format(" and {} more", names.size() - few_hosts);
  return text;
}

/// Names of hosts, each with its problem.
using HostTroubles = std::vector<std::pair<std::string, std::string>>;

/// Each problem once, with the hosts that have it: "host 'a': no route; host 'b', host 'c': refused", "all 32 workers:
/// …". At most `most` problems.
inline std::string host_troubles_text(const HostTroubles& hosts,
                                      std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> groups;
  for (const auto& [name, why] : hosts) {
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == why; });
    if (known == groups.end())
      groups.push_back({why, {name}});
    else
      known->second.push_back(name);
  }
  std::string text;
  for (const auto& [why, names] : groups) {
    if (most-- == 0) break;
    if (!text.empty()) text += "; ";
    if (names.size() > few_hosts && names.size() == hosts.size()) {
      const bool workers = std::all_of(names.begin(), names.end(), is_worker_name);
      text += detail::format("all {} {}", names.size(), workers ? "workers" : "hosts");
    } else {
      text += hosts_text(names);
    }
    text += detail::format(": {}", why);
  }
  return text;
}

}  // namespace hypertune::inline v0::detail
