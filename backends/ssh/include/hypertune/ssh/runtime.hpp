// Runtime for programs whose trials run on hosts over ssh: the types of runtime.remote().
#pragma once

#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/executor.hpp>

namespace hypertune::inline v0::remote {

template <>
struct Listed<void> {
  using Setup = ssh::SshSetup;
  using Executor = ssh::SshExecutor;
};

}  // namespace hypertune::inline v0::remote
