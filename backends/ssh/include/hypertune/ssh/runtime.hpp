// Runtime: one line in main() that lets the same binary be the worker on other machines.
#pragma once

#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/executor.hpp>

#include <utility>

namespace hypertune::inline v0 {

/// The first thing in main(), before there are threads:
///
///     int main(int argc, char** argv) {
///       ht::Runtime runtime(argc, argv);
///       …
///       ht::tune(space, train, {…, .executor = runtime.remote({.hosts = {"host1", "host2"}})});
///     }
///
/// On a host the same program is started with `--hypertune-agent`. It then goes through main() as here, with the same
/// arguments, until it comes to tune(), resume() or a Tuner; that one serves trials in place of running an experiment,
/// and never returns. So main() must not do what should happen once only before that, and a program with several
/// experiments must be able to reach each without the results of those before it: an agent passes by none.
class Runtime : public remote::AgentRuntime {
 public:
  using AgentRuntime::AgentRuntime;
  using AgentRuntime::setup;
  SshSetup setup(SshSetup setup = {}) const { return AgentRuntime::setup<SshSetup>(std::move(setup)); }

  /// Trials as processes on these hosts, each by this program, called there as it was called here. Without hosts: those
  /// of the environment.
  SshExecutor remote(SshSetup setup = {}) const { return SshExecutor(this->setup(std::move(setup))); }
};

}  // namespace hypertune::inline v0
