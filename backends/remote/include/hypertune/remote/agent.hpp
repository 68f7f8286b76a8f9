// The agent: what runs on a host for its driver.
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
  /// Where it keeps what the experiments' trials write; empty: hypertune/agent in $XDG_CACHE_HOME or ~/.cache.
  std::filesystem::path directory = {};
  local::ProcessOptions processes = {};            ///< what of the host trials may use; by default all of it
  std::uint64_t cache = std::uint64_t{20} << 30U;  ///< bytes of checkpoints to keep that the driver has, too
  /// This machine's address as other hosts reach it, where nothing else says which; empty: HYPERTUNE_HOST_ADDRESS,
  /// which whatever starts agents may set, else loopback.
  std::string address = {};
  int in = 0, out = 1;  ///< descriptors of the stream to the driver
};

/// Makes the Program from what the driver says about it (the text of a sweep.yaml; empty for a program of its own).
/// What it throws is what the driver's user reads.
using ProgramMaker = std::function<std::shared_ptr<const Program>(const std::string& description)>;

/// Serves the driver at the other end of the stream: each trial that it sends becomes a process of its own here, with
/// the cores and devices that the driver chose. Ends, and all that it started with it, when the stream closes, when the
/// driver falls silent, or when the agent itself is killed. SIGTERM is a termination notice: the trials save, and leave
/// for another host. So is SIGURG, which does nothing to other programs: it can be sent to all processes here, and then
/// leaves HYPERTUNE_NOTICE seconds (60) until their end. What the program prints goes to standard error. Returns the
/// exit code for the process. Call it on the main thread, before the program has others.
int agent_main(const ProgramMaker& make_program, AgentOptions options = {});

}  // namespace hypertune::inline v0::remote
