// GroupNetwork: which hosts may hold workers of the same trial.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/network_text.hpp>
#include <hypertune/execute/allocation.hpp>
#include <hypertune/execute/detail/host_text.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// Workers on several hosts reach each other through the network that the user names for this. A host without an
/// address in this network is *outside*: it runs only trials that fit on it whole. A host whose addresses are unknown
/// is not outside. If no network is named, no host is outside, or every host is if GroupOptions::required is set.
class GroupNetwork {
 public:
  GroupNetwork() = default;
  explicit GroupNetwork(const GroupOptions& group)
      : text_(group.network), network_(detail::parse_network(text_)), all_outside_(group.required && text_.empty()) {}

  void describe(const std::string& host, const std::vector<std::string>& addresses) {
    hosts_.erase(host);
    names_.erase(host);
    if (all_outside_) names_.insert(host);
    if (!network_ || addresses.empty()) return;
    if (std::any_of(addresses.begin(), addresses.end(), [&](const auto& each) { return network_->holds(each); }))
      return;
    names_.insert(host);
    hosts_[host] = some_of(addresses);
  }
  bool is_named() const { return !text_.empty(); }
  bool is_outside(const std::string& host) const { return names_.contains(host); }
  /// The names of the hosts outside.
  const std::set<std::string>& outside() const { return names_; }
  /// Whether the workers of `allocation` reach each other, as far as is known.
  bool joins(const Allocation& allocation) const {
    if (names_.empty()) return true;
    for (const Slot& slot : allocation.others)
      if (slot.host_name != allocation.lead.host_name) return !any_outside(allocation);
    return true;
  }
  /// "host 'a', host 'b' have no address in group.network '10.1.0.0/16' (host 'a': 10.2.0.4)". Precondition: there are
  /// hosts outside.
  std::string why() const {
    if (all_outside_) return "no network is named by which hosts reach each other";
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    return detail::format("{} {} no address in group.network '{}' ({}: {})", detail::hosts_text(names),
                          names.size() == 1 ? "has" : "have", text_, detail::host_text(names.front()),
                          hosts_.begin()->second);
  }

 private:
  bool any_outside(const Allocation& allocation) const {
    for (int rank = 0; rank < allocation.workers(); ++rank)
      if (is_outside(allocation[rank].host_name)) return true;
    return false;
  }
  // Leaves out loopback addresses, which do not identify a host.
  static std::string some_of(const std::vector<std::string>& addresses) {
    constexpr std::size_t most = 4;
    std::string text;
    std::size_t named = 0;
    for (const auto& each : addresses) {
      if (each.starts_with("127.") || each == "::1") continue;
      if (named++ == most) return text + ", …";
      text += (text.empty() ? "" : ", ") + each;
    }
    return text.empty() ? "none but its own loopback" : text;
  }

  std::string text_;
  std::optional<detail::Network> network_;
  bool all_outside_ = false;
  std::set<std::string> names_;               // hosts outside
  std::map<std::string, std::string> hosts_;  // some of their addresses
};

}  // namespace hypertune::inline v0
