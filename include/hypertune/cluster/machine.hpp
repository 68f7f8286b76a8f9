// A machine as reported by a provider, and a request for one.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::cluster {

enum class MachineState : std::uint8_t { pending, running, stopping, stopped, terminated };

constexpr const char* to_string(MachineState state) {
  switch (state) {
    case MachineState::pending: return "pending";
    case MachineState::running: return "running";
    case MachineState::stopping: return "stopping";
    case MachineState::stopped: return "stopped";
    case MachineState::terminated: return "terminated";
  }
  return "unknown";
}

/// One machine of a cluster. Every machine is created with tags that name its cluster and its request, so that any
/// process that asks the provider can identify it.
struct Machine {
  std::string id;         ///< the provider's id
  std::string token;      ///< token of the request that made it; also a tag
  std::string node_type;  ///< a tag
  bool head = false;      ///< a tag
  bool spot = false;      ///< a tag
  MachineState state = MachineState::pending;
  std::string address;                 ///< host name or IP for ssh; empty until there is one
  int port = 0;                        ///< of its ssh server; 0: the default port
  std::vector<std::string> host_keys;  ///< "ssh-ed25519 AAAA…", if the provider reports them
  std::string waiting_reason = {};     ///< why it does not run yet, if reported; to be shown after its name
  /// It will probably (may_fail) or certainly (cannot_start) not start before somebody fixes a problem, for example a
  /// missing image.
  bool may_fail = false, cannot_start = false;
};

inline constexpr std::string_view tag_cluster = "hypertune-cluster";
inline constexpr std::string_view tag_token = "hypertune-token";
inline constexpr std::string_view tag_type = "hypertune-type";
inline constexpr std::string_view tag_role = "hypertune-role";      // head or worker
inline constexpr std::string_view tag_market = "hypertune-market";  // spot or on-demand

/// A request for one machine. A provider that is asked twice with the same token makes only one machine.
struct LaunchRequest {
  std::string token;
  std::string node_type;
  std::string node_config = "{}";  ///< JSON
  bool head = false;
  bool spot = false;
};

/// Why a provider did not do what it was asked for.
enum class ProviderFailure : std::uint8_t {
  capacity,  ///< no machine of this kind is available now (or a quota, or the price is too low): another kind may work
  invalid,   ///< the request cannot succeed unchanged (configuration, credentials)
  unsupported,  ///< the provider does not support this operation
  failed,       ///< any other error; may be retried later
};

class ProviderError : public Error {
 public:
  ProviderError(ProviderFailure kind, const std::string& message)
      : Error(kind == ProviderFailure::invalid       ? Errc::input
              : kind == ProviderFailure::capacity    ? Errc::resources
              : kind == ProviderFailure::unsupported ? Errc::usage
                                                     : Errc::io,
              message),
        kind_(kind) {}
  ProviderFailure kind() const noexcept { return kind_; }

 private:
  ProviderFailure kind_;
};

namespace detail {
/// The name of the machine in messages.
inline std::string machine_label(const Machine& machine) {
  return hypertune::detail::format("{} {}", machine.head ? "head" : "worker",
                                   machine.address.empty() || machine.address == machine.id
                                       ? machine.id
                                       : hypertune::detail::format("{} ({})", machine.address, machine.id));
}
}  // namespace detail

}  // namespace hypertune::inline v0::cluster
