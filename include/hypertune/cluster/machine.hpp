// A machine as a provider knows it, and what is asked for when one is wanted.
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

/// One machine of a cluster. The tags that every machine is created with say which cluster and which request it is for,
/// so that it can be found again by whoever asks the provider.
struct Machine {
  std::string id;         ///< the provider's
  std::string token;      ///< of the request that made it; also a tag
  std::string node_type;  ///< a tag
  bool head = false;      ///< a tag
  bool spot = false;      ///< a tag
  MachineState state = MachineState::pending;
  std::string address;                 ///< host name or IP for ssh; empty until there is one
  int port = 0;                        ///< of its ssh server; 0: the usual one
  std::vector<std::string> host_keys;  ///< "ssh-ed25519 AAAA…", when the provider tells them
  std::string waits = {};              ///< why it does not run yet, when the provider tells that: follows its name
  /// It does not come up unless somebody mends something (an image that cannot be had): as likely as not, or surely.
  bool doubtful = false, hopeless = false;
};

inline constexpr std::string_view tag_cluster = "hypertune-cluster";
inline constexpr std::string_view tag_token = "hypertune-token";
inline constexpr std::string_view tag_type = "hypertune-type";
inline constexpr std::string_view tag_role = "hypertune-role";      // head or worker
inline constexpr std::string_view tag_market = "hypertune-market";  // spot or on-demand

/// A wish for one machine. The token names the wish: a provider that is asked twice with the same token makes one.
struct LaunchRequest {
  std::string token;
  std::string node_type;
  std::string node_config = "{}";  ///< JSON
  bool head = false;
  bool spot = false;
};

/// Why a provider did not do what it was asked to.
enum class ProviderFailure : std::uint8_t {
  capacity,     ///< none to be had of this kind now (also a quota, a price too low): another kind may do
  invalid,      ///< the request cannot succeed as it stands (configuration, credentials)
  unsupported,  ///< the provider has no such verb
  failed,       ///< anything else: worth another try later
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
/// How people are told of it.
inline std::string machine_label(const Machine& machine) {
  return hypertune::detail::format("{} {}", machine.head ? "head" : "worker",
                                   machine.address.empty() || machine.address == machine.id
                                       ? machine.id
                                       : hypertune::detail::format("{} ({})", machine.address, machine.id));
}
}  // namespace detail

}  // namespace hypertune::inline v0::cluster
