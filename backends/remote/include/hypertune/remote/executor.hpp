// RemoteExecutor: trials on other machines.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/option.hpp>
#include <hypertune/remote/host_machine.hpp>
#include <hypertune/remote/host_pool.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

struct RemoteOptions {
  HostTimeouts timeouts = {};
  /// Seconds at the start for hosts to be reached, once one is, at most: others get as long as that one took (but a
  /// second), so that one that hangs holds up nobody. Those that are not there by then join later.
  double gather = 20;
  /// Seconds to wait for other hosts when every one is refused (see HostTimeouts); then wait() throws an Error of kind
  /// `resources` with the reason of each, and the experiment can be resumed when that is mended.
  double all_refused = 0;
  std::string program = {};  ///< what the agents make their Program of: see ProgramMaker
  /// How a host learns that it will be taken away, beside SIGTERM to its agent: a shell command that succeeds then, or
  /// an http:// address that answers 200 then (as clouds have on 169.254.169.254).
  std::string notice_command = {}, notice_url = {};
  Seconds notice_interval = 5;  ///< polling interval, in seconds
  /// Seconds after a notice for which a trial may go on to the end of its step, to save there.
  Seconds notice_grace = 10;
  CheckpointTransfer transfer = {};  ///< how checkpoints travel
  int dials = 32;                    ///< hosts that are dialled at once: a thread each
  /// Hosts are workers, each like any other, which whoever keeps the pool asks for and ends: what keeps several of them
  /// from coming is said once, and nothing of those that are not needed any more.
  bool alike = false;
  /// false: a host runs one attempt, or one worker of it, and no more than one at once whatever it has room for. It is
  /// taken out of the pool for good (HostPool::take_retired()) before the end of that attempt is told. A trial that
  /// pauses does not stay in memory there: it is saved, and goes on elsewhere.
  bool reuse = true;

  /// Error of kind `usage` for what makes no sense.
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

/// What one host has done so far.
struct HostAccount {
  std::string name;
  HostState state = HostState::connecting;
  std::string reason;          ///< why it is not used, if so
  double seconds = 0;          ///< for which it was there
  int incarnations = 0;        ///< connections
  int losses = 0;              ///< of those, how many were lost
  double cpu = 0;              ///< cores in use when it last said so
  std::uint64_t memory = 0;    ///< bytes in use, likewise
  std::vector<double> gpus;    ///< use of each device, likewise: 1 is all of it
  std::uint64_t sent = 0;      ///< bytes of checkpoints that it sent to the driver
  std::uint64_t received = 0;  ///< that it got from the driver
  std::uint64_t direct = 0;    ///< that it got from other hosts
  std::uint64_t shared = 0;    ///< that it wrote to the shared folder: these did not move
  std::uint64_t reused = 0;    ///< bytes of these that did not have to move, as they were there in earlier ones
};

/// Runs each trial as a process on one of the hosts of a pool, by an agent there: see agent_main(). Hosts join and
/// leave while it runs. One that is silent is lost: its trials fail by the infrastructure's doing, which does not count
/// against them, and go on elsewhere from their last checkpoint that the driver has; nothing that a lost connection
/// still brings is looked at. Hosts that fail are tried again after growing delays. A checkpoint is reported only when
/// a copy lies in the experiment's own folder. A host whose trouble will not pass by itself (its login is refused, the
/// program cannot run there) is set aside while others work; where that is so of all, the run ends with an error. All
/// carried by one thread, begun by the first hosts() or start().
class RemoteExecutor {
 public:
  explicit RemoteExecutor(HostPool pool, RemoteOptions options = {});
  RemoteExecutor(RemoteExecutor&&) noexcept;
  RemoteExecutor& operator=(RemoteExecutor&&) noexcept;
  ~RemoteExecutor();

  /// Connects, and waits until hosts are reached: see RemoteOptions::gather. Error of kind `resources` that says why of
  /// each, if none can be.
  std::vector<Host> hosts() const;
  Seconds now() const;
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const { return "remote"; }
  static constexpr bool runs_gangs = true;

  /// Any thread.
  std::vector<HostAccount> accounts() const;

 private:
  class State;
  std::shared_ptr<State> self_;
};

static_assert(Executor<RemoteExecutor>);

}  // namespace hypertune::inline v0::remote

namespace hypertune::inline v0 {
using remote::RemoteExecutor;
using remote::RemoteOptions;
}  // namespace hypertune::inline v0
