// The options of the ssh client: what must hold for them.
#pragma once

#include <hypertune/hosts/ssh_options.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::ssh {

using hypertune::SshOptions;

/// Error of kind `usage`, e.g. for an option that would weaken the check of host keys.
void validate(const SshOptions& options);

/// Settings `Key=value` of this client that must not come from the user's configuration: they would run it in the
/// background (ForkAfterAuthentication), take its input away (StdinNull), or start something else than the given command
/// (RemoteCommand; `session`: also SessionType, without which `-N` and `-s` decide). Clients before OpenSSH 8.7 know
/// RemoteCommand alone.
std::vector<std::string> own_settings(const std::string& program, bool session);

}  // namespace hypertune::inline v0::ssh
