// AgentRuntime: how a program learns that it is the agent of another one.
#pragma once

#include <hypertune/local/process_options.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/host_list.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// What Runtime::remote() makes: `Setup` and `Executor` of the backend for lists of hosts. Its header, runtime.hpp,
/// specialises it: a program that calls remote() includes that.
template <class Backend = void>
struct Listed;

/// What is common to the Runtimes of all backends whose agents are this very program, called there with
/// `--hypertune-agent`: see hypertune::Runtime.
class AgentRuntime {
 public:
  /// Takes what is for the agent out of the arguments, so that the program's own parser does not meet it.
  AgentRuntime(int& argc, char** argv);
  AgentRuntime(const AgentRuntime&) = delete;
  AgentRuntime& operator=(const AgentRuntime&) = delete;
  ~AgentRuntime();

  /// Whether this process serves trials on behalf of another one.
  bool is_agent() const { return agent_; }
  /// The arguments of this program, without its name: agents are called with the same.
  const std::vector<std::string>& arguments() const { return arguments_; }

  /// A setup of any backend whose agents are this program, called there as it was called here. In braces, or without
  /// one, it is that of Listed.
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

/// For programs that make their Program from a description (see ProgramMaker) in place of reaching a tune(): if they
/// were called as agents, serves and returns the exit code; nullopt otherwise.
std::optional<int> run_agent_if_asked(int argc, char** argv, const ProgramMaker& make_program);

/// What an agent may use of its host, as the text after `--hypertune-agent` and back.
std::string agent_limits_text(const HostSpec& host);
local::ProcessOptions agent_limits(const std::string& text);

}  // namespace hypertune::inline v0::remote

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

  /// Trials as processes on these hosts, each by this program, called there as it was called here. Without hosts: those
  /// of the environment.
  template <class Backend = void>
  typename remote::Listed<Backend>::Executor remote(typename remote::Listed<Backend>::Setup setup = {}) const {
    return typename remote::Listed<Backend>::Executor(this->setup(std::move(setup)));
  }
};

}  // namespace hypertune::inline v0
