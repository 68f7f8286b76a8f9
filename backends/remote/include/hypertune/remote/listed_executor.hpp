// ListedExecutor: trials on the hosts of a list, which is polled during the run.
#pragma once

#include <hypertune/execute/executor_handle.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/host_source.hpp>
#include <hypertune/remote/notices.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

struct ListedOptions {
  std::string name = {};  ///< name of the executor
  HostSource hosts = {};
  HostOptions limits = {};  ///< defaults for what the list does not say about a host; its name is ignored
  RemoteOptions remote = {};
};

/// An Executor for the hosts of a list. Nothing is connected before hosts() or start() is called; all connections end
/// with the executor. Hosts that are added to the list during the run are used, removed ones are drained. Problems that
/// do not end the run, such as a temporarily unreadable list, are raised as Notices.
class ListedExecutor : public hypertune::detail::ExecutorHandle {
 public:
  /// Makes the dialer of a host, whose limits are filled in.
  using MakeDialer = std::function<AnyDialer(const HostOptions&)>;

  /// `notices`: shared with the dialers.
  ListedExecutor(ListedOptions options, MakeDialer dialer,
                 std::shared_ptr<Notices> notices = std::make_shared<Notices>());
  std::string name() const;
  static constexpr bool runs_gangs = true;
  std::vector<HostAccount> accounts() const;

 private:
  class State;
};

static_assert(Executor<ListedExecutor>);

}  // namespace hypertune::inline v0::remote
