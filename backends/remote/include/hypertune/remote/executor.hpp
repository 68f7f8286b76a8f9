// RemoteExecutor: trials on other machines.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/option.hpp>
#include <hypertune/remote/host_pool.hpp>
#include <hypertune/remote/host_state_machine.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

struct RemoteOptions {
  HostTimeouts timeouts = {};
  /// Maximum seconds to wait at the start for further hosts after the first one is reached. The others get as long as
  /// the first one took (at least a second), so that a hanging host does not delay the run. Later hosts join when they
  /// are reached.
  double gather = 20;
  /// Seconds to wait for new hosts when all hosts are refused (see HostTimeouts). Then wait() throws an Error of kind
  /// `resources` with the reason for each host; the experiment can be resumed after the problem is fixed.
  double all_refused = 0;
  std::string program = {};  ///< description from which the agents make their Program; see ProgramMaker
  /// How a host learns that it will be taken away, besides SIGTERM to its agent: a shell command that then succeeds, or
  /// an http:// URL that then returns 200 (clouds provide one on 169.254.169.254).
  std::string notice_command = {}, notice_url = {};
  Seconds notice_interval = 5;  ///< polling interval, in seconds
  /// Seconds after a notice in which a trial may finish its step to save.
  Seconds notice_grace = 10;
  CheckpointTransfer transfer = {};  ///< how checkpoints are transferred
  int dials = 32;                    ///< maximum number of hosts dialled at once; each takes a thread
  /// The hosts are interchangeable workers, which the owner of the pool requests and ends. A problem that keeps several
  /// of them from starting is reported once, and workers that are no longer needed are not reported.
  bool interchangeable = false;
  /// false: a host runs only one attempt, or one worker of it, regardless of its room. It is removed from the pool for
  /// good (HostPool::take_retired()) before the end of the attempt is reported. A paused trial does not stay in memory
  /// on the host: it is saved and continues elsewhere.
  bool reuse = true;
  /// Called when the kernel has killed a process of a trial because its host's memory (that of the control group of its
  /// agent) was used up. Returns what is done for the host to have more, for messages: then the attempt counts as
  /// preempted, and ends when `gets_memory` is false for the host, or after a minute. Empty: nothing is done. Both must
  /// not block, and are called on a thread of the executor.
  std::function<std::string(const std::string& host)> memory_used_up = {};
  std::function<bool(const std::string& host)> gets_memory = {};

  /// Error of kind `usage` for invalid values.
  void validate() const {
    timeouts.validate();
    check_options(transfer);
    const auto amount = [](double value, const char* name) {
      if (!(value >= 0 && value < 1e9)) fail(Errc::usage, "'{}' is {} seconds, but must be 0 or more", name, value);
    };
    amount(gather, "gather");
    amount(all_refused, "all_refused");
    amount(notice_grace, "notice_grace");
    if (dials < 1 || dials > 4096) fail(Errc::usage, "'dials' is {}, but must be from 1 to 4096", dials);
    if (!(notice_interval > 0 && notice_interval < 1e9))
      fail(Errc::usage, "'notice_interval' is {} seconds, but must be more than 0", notice_interval);
  }
};

/// Statistics of one host.
struct HostAccount {
  std::string name;
  HostState state = HostState::connecting;
  std::string reason;          ///< why the host is not used; empty if it is
  double seconds = 0;          ///< time for which the host was connected
  int incarnations = 0;        ///< number of connections
  int losses = 0;              ///< number of lost connections
  double cpu = 0;              ///< cores in use, as last reported
  std::uint64_t memory = 0;    ///< bytes in use, as last reported
  std::vector<double> gpus;    ///< use of each device, as last reported; 1 is full use
  std::uint64_t sent = 0;      ///< bytes of checkpoints sent to the driver
  std::uint64_t received = 0;  ///< bytes of checkpoints received from the driver
  std::uint64_t direct = 0;    ///< bytes of checkpoints received from other hosts
  std::uint64_t shared = 0;    ///< bytes of checkpoints written to the shared folder, which were not transferred
  std::uint64_t reused = 0;    ///< bytes of these that were not transferred, since earlier checkpoints contain them
};

/// Runs each trial as a process on one of the hosts of a pool, through an agent there; see agent_main(). Hosts may join
/// and leave during the run. A silent host is lost: its trials fail with an infrastructure failure, which does not
/// count against them, and continue elsewhere from the last checkpoint that the driver has. Data that still arrives
/// over a lost connection is ignored. Failing hosts are retried after growing delays. A checkpoint is reported only
/// when a copy is in the experiment's own folder. A host with a permanent problem (its login is refused, the program
/// cannot run there) is set aside while others work; if all hosts have one, the run ends with an error. One thread does
/// all the work; it is started by the first hosts() or start().
/// hosts() connects and waits until hosts are reached, see RemoteOptions::gather; an error of kind `resources` has the
/// reason for each host if none can be reached.
class RemoteExecutor : public hypertune::detail::ExecutorHandle {
 public:
  explicit RemoteExecutor(HostPool pool, RemoteOptions options = {});
  std::string name() const { return "remote"; }
  static constexpr bool runs_gangs = true;

  /// May be called from any thread.
  std::vector<HostAccount> accounts() const;

 private:
  class State;
};

static_assert(Executor<RemoteExecutor>);

}  // namespace hypertune::inline v0::remote

namespace hypertune::inline v0 {
using remote::RemoteExecutor;
using remote::RemoteOptions;
}  // namespace hypertune::inline v0
