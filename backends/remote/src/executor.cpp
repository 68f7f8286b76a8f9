// RemoteExecutor: the public interface.
#include "executor_state.hpp"

#include <hypertune/detail/run_clock.hpp>

namespace hypertune::inline v0::remote {

RemoteExecutor::RemoteExecutor(HostPool pool, RemoteOptions options)
    : state_(std::make_shared<State>(std::move(pool), std::move(options))) {}
RemoteExecutor::RemoteExecutor(RemoteExecutor&&) noexcept = default;
RemoteExecutor& RemoteExecutor::operator=(RemoteExecutor&&) noexcept = default;
RemoteExecutor::~RemoteExecutor() = default;
std::vector<Host> RemoteExecutor::hosts() const { return state_->hosts(); }
Seconds RemoteExecutor::now() const { return run_clock(); }
void RemoteExecutor::start(ExecutorStart start) { state_->start(std::move(start)); }
void RemoteExecutor::perform(Command command) { state_->perform(std::move(command)); }
void RemoteExecutor::wait(Seconds deadline) { state_->wait(deadline); }
void RemoteExecutor::notify() { state_->notify(); }
void RemoteExecutor::shutdown() { state_->shutdown(); }
std::vector<HostAccount> RemoteExecutor::accounts() const { return state_->accounts(); }

}  // namespace hypertune::inline v0::remote
