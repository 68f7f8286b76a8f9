// The agent: the program that runs on a host and serves a driver.
#pragma once

#include <hypertune/local/process_options.hpp>
#include <hypertune/trial/program.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hypertune::inline v0::remote {

struct AgentOptions {
  /// Folder for the files that trials write; empty: hypertune/agent in $XDG_CACHE_HOME or ~/.cache.
  std::filesystem::path directory = {};
  local::ProcessOptions processes = {};            ///< the resources that trials may use; by default all of the host's
  std::uint64_t cache = std::uint64_t{20} << 30U;  ///< bytes of checkpoints to keep that the driver has as well
  /// This machine's address for other hosts, if the driver names no network for it; empty: HYPERTUNE_HOST_ADDRESS,
  /// which the program that starts the agent may set, or else loopback.
  std::string address = {};
  int in = 0, out = 1;  ///< descriptors of the stream to the driver
};

/// Makes the Program from the driver's description (the text of a sweep.yaml; empty if the program defines its own).
/// The message of an exception is shown to the driver's user.
using ProgramMaker = std::function<std::shared_ptr<const Program>(const std::string& description)>;

/// Serves the driver at the other end of the stream: each trial that it sends becomes a process here, with the cores
/// and devices that the driver chose. The agent ends, with all processes that it started, when the stream closes, when
/// the driver falls silent, or when the agent is killed. SIGTERM is a termination notice: the trials save and move to
/// another host. So is SIGURG, which other programs ignore, so it can be sent to all processes on the host; they
/// end HYPERTUNE_NOTICE seconds (default 60) later. The program's output goes to standard error. Returns the exit code
/// for the process. Must be called on the main thread, before the program starts other threads.
int agent_main(const ProgramMaker& make_program, AgentOptions options = {});

}  // namespace hypertune::inline v0::remote
