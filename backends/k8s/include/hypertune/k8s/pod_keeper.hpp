// PodKeeper: the first process of a worker's pod.
#pragma once

#include <hypertune/checkpoint/transfer/secret.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A program is the keeper of its pod where it is called with this and what an agent may use of the pod
/// ("host slots=2", as after `--hypertune-agent`).
inline constexpr std::string_view keeper_argument = "--hypertune-pod";

/// The variables of a pod that a keeper reads.
inline constexpr std::string_view token_variable = "HYPERTUNE_POD_TOKEN";    ///< from a Secret; set: it calls home
inline constexpr std::string_view name_variable = "HYPERTUNE_POD_NAME";      ///< of the worker
inline constexpr std::string_view driver_variable = "HYPERTUNE_POD_DRIVER";  ///< the file that says where the driver is
inline constexpr std::string_view orphan_variable = "HYPERTUNE_POD_ORPHAN";  ///< KeeperOptions::orphan_timeout
/// The folder in which agents leave their numbers. Agents that are started by exec need it, too.
inline constexpr std::string_view agents_variable = "HYPERTUNE_AGENTS";

inline constexpr std::string_view default_agents_folder = "/tmp/.hypertune-pod/agents";
inline constexpr std::string_view default_driver_file = "/var/run/hypertune/driver";

struct KeeperOptions {
  /// Where agents that the driver starts by exec leave their numbers (see process::ProcessMarks). A file `alive` that
  /// is made there says that a driver is there, without an agent; it is taken away.
  std::filesystem::path agents = default_agents_folder;
  double orphan_timeout = 600;  ///< seconds without a driver, then it ends

  // To call home:
  Secret token = {};        ///< empty: it does not, and holds the pod for a driver that comes by exec
  std::string worker = {};  ///< the name under which the driver knows this pod
  std::filesystem::path driver = default_driver_file;  ///< has a DriverAddress; looked at again and again
  std::vector<std::string> agent = {};                 ///< the command of an agent
  double ping = 5;                                     ///< seconds between signs of life
  double silence = 20;       ///< seconds without one of the driver's until the connection is given up
  double connect = 10;       ///< seconds for an attempt to connect
  double first_delay = 0.2;  ///< before the second attempt; each further one waits 1.6 times as long, with jitter
  double max_delay = 10;     ///< at most
  double leave = 10;         ///< seconds for an agent to end whose connection is gone, then it is killed

  /// From the environment. `command`: of this program, `limits` what its agents may use. Error of kind `usage` for a
  /// variable that makes no sense.
  static KeeperOptions from_environment(const std::string& limits, const std::vector<std::string>& command);
};

/// Keeps the pod until it is to end: reaps orphans; passes SIGTERM on to all agents, waits for their end and returns 0
/// (on a second one they are killed); returns 0 when no driver has been there for too long, which it says on standard
/// error. For the main thread of a process that has no other.
int keep_pod(KeeperOptions options);

/// The same without calling home, as a script for any POSIX sh: `sh -c SCRIPT hypertune-pod FOLDER SECONDS`. It takes
/// the folder of the agents and orphan_timeout, whole seconds, as its arguments.
std::string_view hold_script();

}  // namespace hypertune::inline v0::k8s
