// Part of hypertune::ssh: the executor, compiled once.
#include <hypertune/ssh/impl/executor_routes.hpp>

namespace hypertune::ssh {

SshExecutor::SshExecutor(HostPool pool, RemoteOptions options)
    : self_(std::make_shared<State>(std::move(pool), std::move(options))) {}
SshExecutor::SshExecutor(SshExecutor&&) noexcept = default;
SshExecutor& SshExecutor::operator=(SshExecutor&&) noexcept = default;
SshExecutor::~SshExecutor() = default;
std::vector<Host> SshExecutor::hosts() const { return self_->hosts(); }
Seconds SshExecutor::now() const { return run_clock(); }
void SshExecutor::start(ExecutorStart start) { self_->start(std::move(start)); }
void SshExecutor::perform(Command command) { self_->perform(std::move(command)); }
void SshExecutor::wait(Seconds deadline) { self_->wait(deadline); }
void SshExecutor::notify() { self_->notify(); }
void SshExecutor::shutdown() { self_->shutdown(); }
std::vector<HostAccount> SshExecutor::accounts() const { return self_->accounts(); }

}  // namespace hypertune::ssh
