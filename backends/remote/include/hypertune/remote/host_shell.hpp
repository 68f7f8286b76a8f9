// HostShell: runs scripts on a host, over any transport.
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
  /// Called by the calling thread for pieces of the standard input; empty: the end. Not set: no input.
  std::function<std::string_view()> input = {};
  bool hold_input = false;  ///< keep its input open until it ends; an earlier end tells it that the caller is gone
  /// Called on the calling thread with pieces of the output; false: stop. Not set: collected in the result.
  std::function<bool(std::string_view)> take_out = {}, take_err = {};
  Seconds deadline = 60;
  Seconds stall = 1e9;                              ///< seconds without any progress until it is aborted
  std::size_t max_output = std::size_t{64} << 20U;  ///< maximum bytes of each stream; more is an Error
  std::stop_token stop = {};                        ///< aborts it with an Error
};

/// A host that can run POSIX shell scripts: over ssh, by exec in a pod, or locally.
struct HostShell {
  /// Runs a script with its $1, $2, … until it ends (see script_arguments()). The script's failure is in the result.
  /// Errors of the transport are thrown, and so are exceptions of the options' callables.
  using Run = std::function<RunResult(std::string_view script, const std::vector<std::string>& arguments,
                                      const ShellOptions& options)>;

  std::string title;     ///< begins messages about the host: "host 'a'", "pod 'b'"
  HostFacts facts = {};  ///< see ask_facts(); home folder and architecture are required
  /// The script may see the end of its input before the caller has ended it, as with the exec of container runtimes.
  /// Then the result of reading the input must be checked and the script repeated, and the end of the input does not
  /// mean that the caller is gone.
  bool input_may_be_cut = false;
  Run run;

  /// As run(), but a nonzero exit code throws a HostError. `doing` describes the action, as in "make the folder 'x'".
  RunResult must(std::string_view doing, std::string_view script, const std::vector<std::string>& arguments = {},
                 const ShellOptions& options = {}) const;
  /// The absolute path of a path on the host: "~/x" and "x" are below the home folder. Error of kind `usage` for
  /// "~other".
  std::string absolute(const std::string& path) const;
};

/// The command that runs a script, in the C locale so that messages can be classified, and with a umask that makes new
/// files private. A script that starts a program of the user first calls `as_login`, which undoes both.
std::vector<std::string> script_arguments(std::string_view script, const std::vector<std::string>& arguments);

/// Runs facts_script on the host. Throws HostError if no script runs there.
HostFacts ask_facts(const HostShell& shell, Seconds deadline = 30);

namespace detail {

/// The absolute path on the host called `title`, for a user whose home folder is `home`.
std::string absolute_path(const std::string& path, const std::string& home, const std::string& title);

}  // namespace detail
}  // namespace hypertune::inline v0::remote
