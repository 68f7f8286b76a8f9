// What Runtime does for programs whose trials go to machines by ssh.
#pragma once

#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/executor.hpp>

#include <utility>

namespace hypertune::inline v0 {

inline ssh::SshSetup Runtime::setup(ssh::SshSetup setup) const {
  return AgentRuntime::setup<ssh::SshSetup>(std::move(setup));
}
inline ssh::SshSetup Runtime::setup() const { return setup(ssh::SshSetup{}); }
inline ssh::SshExecutor Runtime::remote(ssh::SshSetup setup) const {
  return ssh::SshExecutor(this->setup(std::move(setup)));
}
inline ssh::SshExecutor Runtime::remote() const { return remote(ssh::SshSetup{}); }

}  // namespace hypertune::inline v0
