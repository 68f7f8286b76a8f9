// AgentRuntime: detects that this program was started as an agent.
#pragma once

#include <hypertune/local/process_options.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/host_list.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// Types for Runtime::remote(): `Setup` and `Executor` of the backend for host lists. The backend's header runtime.hpp
/// specialises it; programs that call remote() must include that header.
template <class Backend = void>
struct Listed;

/// The common base of the Runtimes of all backends whose agents are this same program, called with `--hypertune-agent`;
/// see hypertune::Runtime.
class AgentRuntime {
 public:
  /// Removes the agent's arguments from `argv`, so that the program's own parser does not see them.
  AgentRuntime(int& argc, char** argv);
  AgentRuntime(const AgentRuntime&) = delete;
  AgentRuntime& operator=(const AgentRuntime&) = delete;
  ~AgentRuntime();

  /// Whether this process serves trials for another one.
  bool is_agent() const { return agent_; }
  /// The arguments of this program, without its name. Agents are called with the same arguments.
  const std::vector<std::string>& arguments() const { return arguments_; }

  /// Completes a setup of any backend whose agents are this program: they get the same arguments as here. In braces, or
  /// without an argument, the setup is that of Listed.
  template <class Backend = void, class Setup = typename Listed<Backend>::Setup>
    requires requires(Setup& setup, const std::vector<std::string>& all) { setup.arguments = all; }
  Setup setup(Setup setup = {}) const {
    if (setup.arguments.empty()) setup.arguments = arguments_;
    return setup;
  }

 private:
  bool agent_ = false, signals_before_ = false;
  std::vector<std::string> arguments_;
};

/// For programs that make their Program from a description (see ProgramMaker) and do not call tune(): if called as an
/// agent, serves trials and returns the exit code; otherwise nullopt.
std::optional<int> run_agent_if_asked(int argc, char** argv, const ProgramMaker& make_program);

/// Converts the resources that an agent may use to the text after `--hypertune-agent`, and back.
std::string agent_limits_text(const HostOptions& host);
local::ProcessOptions agent_limits(const std::string& text);

}  // namespace hypertune::inline v0::remote

namespace hypertune::inline v0 {

/// Must be created first in main(), before there are threads:
///
///     int main(int argc, char** argv) {
///       ht::Runtime runtime(argc, argv);
///       …
///       ht::tune(space, train, {…, .executor = runtime.remote({.hosts = {"host1", "host2"}})});
///     }
///
/// On a host the same program is started with `--hypertune-agent` and the same arguments. It runs main() up to the
/// first tune(), resume() or Tuner, which then serves trials instead of running an experiment, and never returns.
/// Therefore main() must not do anything before that which should happen only once. A program with several experiments
/// must be able to reach each one without the results of the earlier ones, because an agent never gets past a tune().
class Runtime : public remote::AgentRuntime {
 public:
  using AgentRuntime::AgentRuntime;

  /// An executor for trials as processes on these hosts. Each runs this program with the same arguments as here.
  /// Without hosts: those of the environment.
  template <class Backend = void>
  typename remote::Listed<Backend>::Executor remote(typename remote::Listed<Backend>::Setup setup = {}) const {
    return typename remote::Listed<Backend>::Executor(this->setup(std::move(setup)));
  }
};

}  // namespace hypertune::inline v0
