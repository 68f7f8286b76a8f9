// Runtime: one line in main() that lets the same binary be the worker on other machines.
#pragma once

#include <hypertune/ssh/agent.hpp>
#include <hypertune/ssh/remote.hpp>

#include <optional>
#include <string>
#include <vector>

namespace hypertune {

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
class Runtime {
 public:
  /// Takes what is for the agent out of the arguments, so that the program's own parser does not meet it.
  Runtime(int& argc, char** argv);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Whether this process serves trials on behalf of another one.
  bool is_agent() const { return agent_; }

  /// A setup whose agents are this program, called there as it was called here.
  RemoteSetup setup(RemoteSetup setup = {}) const;
  /// ht::remote() for this program, called there as it was called here. Without hosts: those of the environment.
  RemoteExecutor remote(RemoteSetup setup = {}) const;

 private:
  bool agent_ = false;
  std::vector<std::string> arguments_;
};

namespace ssh {

/// For programs that make their Program from a description (see ProgramMaker) in place of reaching a tune(): if they
/// were called as agents, serves and returns the exit code; nullopt otherwise.
std::optional<int> run_agent_if_asked(int argc, char** argv, const ProgramMaker& make_program);

}  // namespace ssh
}  // namespace hypertune

#ifndef HYPERTUNE_SSH_COMPILED
#include <hypertune/ssh/impl/runtime.hpp>
#endif
