// RemoteExecutor: the public interface.
#include "executor_state.hpp"

#include <hypertune/detail/run_clock.hpp>

namespace hypertune::inline v0::remote {

RemoteExecutor::RemoteExecutor(HostPool pool, RemoteOptions options)
    : self_(std::make_shared<State>(std::move(pool), std::move(options))) {}
RemoteExecutor::RemoteExecutor(RemoteExecutor&&) noexcept = default;
RemoteExecutor& RemoteExecutor::operator=(RemoteExecutor&&) noexcept = default;
RemoteExecutor::~RemoteExecutor() = default;
std::vector<Host> RemoteExecutor::hosts() const { return self_->hosts(); }
Seconds RemoteExecutor::now() const { return run_clock(); }
void RemoteExecutor::start(ExecutorStart start) { self_->start(std::move(start)); }
void RemoteExecutor::perform(Command command) { self_->perform(std::move(command)); }
void RemoteExecutor::wait(Seconds deadline) { self_->wait(deadline); }
void RemoteExecutor::notify() { self_->notify(); }
void RemoteExecutor::shutdown() { self_->shutdown(); }
std::vector<HostAccount> RemoteExecutor::accounts() const { return self_->accounts(); }

}  // namespace hypertune::inline v0::remote
