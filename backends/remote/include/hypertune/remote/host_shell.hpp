// HostShell: how scripts are run on a host, whatever carries them there.
#pragma once

#include <hypertune/remote/host_facts.hpp>
#include <hypertune/remote/run_result.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {

/// Meant for designated initialisers.
struct ShellOptions {
  /// Pieces of its standard input, asked for by the thread that calls; empty: no more. Not set: it is empty.
  std::function<std::string_view()> input = {};
  bool hold_input = false;  ///< its standard input does not end before it does: its end tells that nobody waits
  /// Pieces of what it prints, on the thread that calls; false: enough. Not set: collected in the result.
  std::function<bool(std::string_view)> take_out = {}, take_err = {};
  Seconds deadline = 60;
  Seconds stall = 1e9;                              ///< without any byte moving for so long it is given up
  std::size_t max_output = std::size_t{64} << 20U;  ///< bytes of each stream; more is an Error
  std::stop_token stop = {};                        ///< leaves it, which is an Error
};

/// A host that can be told to run scripts of a POSIX shell: over ssh, by the exec of a pod, here.
struct HostShell {
  /// Runs a script with its $1, $2, … to its end (see script_arguments()). Its own failure is in the result; what
  /// carries it throws, and so do the callables of the options.
  using Run = std::function<RunResult(std::string_view script, const std::vector<std::string>& arguments,
                                      const ShellOptions& options)>;

  std::string title;     ///< of the host, as messages begin with it: "host 'a'", "pod 'b'"
  HostFacts facts = {};  ///< see ask_facts(); the home folder and the architecture are needed
  /// A script may see the end of its input before that has ended here, as happens with the exec of container runtimes:
  /// what it makes of its input must be checked, and tried again; that the end came means nothing.
  bool input_may_be_cut = false;
  Run run;

  /// As run(), and an exit code other than 0 is a HostError: `doing` is like "make the folder 'x'".
  RunResult must(std::string_view doing, std::string_view script, const std::vector<std::string>& arguments = {},
                 const ShellOptions& options = {}) const;
  /// The absolute form of a path there: "~/x" and "x" are below the home folder. Error of kind `usage` for "~other".
  std::string absolute(const std::string& path) const;
};

/// The command that runs a script: its messages can be told apart whatever language the account speaks, and what it
/// makes is for the account alone. A script that starts a program of the user's calls `as_login` first, which takes
/// both back.
std::vector<std::string> script_arguments(std::string_view script, const std::vector<std::string>& arguments);

/// Asks the host. HostError where no script runs there.
HostFacts ask_facts(const HostShell& shell, Seconds deadline = 30);

namespace detail {

/// The absolute form of a path on the host that `title` names, of an account whose home folder is `home`.
std::string absolute_path(const std::string& path, const std::string& home, const std::string& title);

}  // namespace detail
}  // namespace hypertune::inline v0::remote
