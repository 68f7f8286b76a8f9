// PodKeeper: the first process of a worker's pod.
#pragma once

#include <hypertune/net/secret.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A program becomes the keeper of its pod if it is called with this argument and the limits of its agents
/// ("host slots=2", as after `--hypertune-agent`).
inline constexpr std::string_view keeper_argument = "--hypertune-pod";

/// The variables of a pod that a keeper reads.
inline constexpr std::string_view token_variable = "HYPERTUNE_POD_TOKEN";    ///< from a Secret; set if pods connect
inline constexpr std::string_view name_variable = "HYPERTUNE_POD_NAME";      ///< of the worker
inline constexpr std::string_view driver_variable = "HYPERTUNE_POD_DRIVER";  ///< the file with the driver's address
inline constexpr std::string_view orphan_variable = "HYPERTUNE_POD_ORPHAN";  ///< KeeperOptions::orphan_timeout
/// The folder in which agents register their process ids. Agents that are started by exec need it, too.
inline constexpr std::string_view agents_variable = "HYPERTUNE_AGENTS";

inline constexpr std::string_view default_agents_folder = "/tmp/.hypertune-pod/agents";
inline constexpr std::string_view default_driver_file = "/var/run/hypertune/driver";

struct KeeperOptions {
  /// Where agents that the driver starts by exec register their process ids (see process::ProcessMarks). A driver
  /// without an agent shows that it is alive by creating a file `alive` there; the keeper removes it.
  std::filesystem::path agents = default_agents_folder;
  double orphan_timeout = 600;  ///< seconds without a driver after which the pod ends

  // Used to connect to the driver:
  Secret token = {};        ///< empty: it does not connect, and keeps the pod for a driver that uses exec
  std::string worker = {};  ///< the name under which the driver knows this pod
  std::filesystem::path driver = default_driver_file;  ///< contains a DriverAddress; read again and again
  std::vector<std::string> agent = {};                 ///< the command line of an agent
  double ping = 5;                                     ///< seconds between keep-alive messages
  double silence = 20;       ///< seconds without a message from the driver until the connection is dropped
  double connect = 10;       ///< seconds for an attempt to connect
  double first_delay = 0.2;  ///< before the second attempt; each further one waits 1.6 times as long, with jitter
  double max_delay = 10;     ///< longest such delay
  double leave = 10;         ///< seconds that an agent whose connection is gone has to exit before it is killed

  /// Reads them from the environment. `command`: this program's command line, `limits`: what its agents may use. Error
  /// of kind `usage` for an invalid variable.
  static KeeperOptions from_environment(const std::string& limits, const std::vector<std::string>& command);
};

/// Keeps the pod alive until it is to end, and reaps orphans. On SIGTERM it passes the signal on to all agents, waits
/// until they have exited (on a second SIGTERM they are killed) and returns 0. It also returns 0, with a message on
/// standard error, if no driver has been there for too long. To be called on the main thread of a process without other
/// threads.
int keep_pod(KeeperOptions options);

/// The same without connecting to the driver, as a script for any POSIX sh: `sh -c SCRIPT hypertune-pod FOLDER
/// SECONDS`. Its arguments are the folder of the agents and orphan_timeout in whole seconds.
std::string_view hold_script();

}  // namespace hypertune::inline v0::k8s
