// RemoteExecutor: the public interface.
#include "executor_state.hpp"

#include <hypertune/detail/run_clock.hpp>

namespace hypertune::inline v0::remote {

RemoteExecutor::RemoteExecutor(HostPool pool, RemoteOptions options)
    : ExecutorHandle(std::make_shared<State>(std::move(pool), std::move(options))) {}
std::vector<HostAccount> RemoteExecutor::accounts() const { return state<State>().accounts(); }

}  // namespace hypertune::inline v0::remote
