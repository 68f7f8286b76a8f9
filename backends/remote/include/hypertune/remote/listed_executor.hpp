// ListedExecutor: trials on the hosts of a list, which is asked again while they run.
#pragma once

#include <hypertune/execute/executor.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/host_source.hpp>
#include <hypertune/remote/notices.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

struct ListedOptions {
  std::string name = {};  ///< of the executor
  HostSource hosts = {};
  HostSpec limits = {};  ///< for what a host of the list does not say itself; its name does not matter
  RemoteOptions remote = {};
};

/// An Executor for the hosts of a list. Nothing is connected before hosts() or start() is called; all connections end
/// with it. Hosts that join the list while it runs are taken up, those that leave are drained. What ends nothing (a
/// list that cannot be read for now) is raised as a Notice.
class ListedExecutor {
 public:
  /// How a host is reached; the limits are filled in.
  using MakeDialer = std::function<AnyDialer(const HostSpec&)>;

  /// `notices`: shared with the dialers.
  ListedExecutor(ListedOptions options, MakeDialer dialer,
                 std::shared_ptr<Notices> notices = std::make_shared<Notices>());
  ListedExecutor(ListedExecutor&&) noexcept;
  ListedExecutor& operator=(ListedExecutor&&) noexcept;
  ~ListedExecutor();

  std::vector<Host> hosts() const;
  Seconds now() const;
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const;
  static constexpr bool runs_gangs = true;
  std::vector<HostAccount> accounts() const;

 private:
  class State;
  std::shared_ptr<State> self_;
};

static_assert(Executor<ListedExecutor>);

}  // namespace hypertune::inline v0::remote
