// CommandDialer: starts an agent as a command with pipes to its standard streams.
#include <hypertune/error.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/dialer.hpp>

#include <csignal>
#include <memory>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote {

std::string AnyDialer::last_line_of(const std::string& said) { return detail::last_line(said); }

AgentStream CommandDialer::dial(const std::stop_token&) const {
  using process::Stream;
  const Command command = command_();
  if (command.empty()) fail(Errc::usage, "there is no command that reaches it");
  try {
    process::SpawnOptions options{
        .in = Stream::pipe, .out = Stream::pipe, .err = Stream::pipe, .death_signal = SIGKILL};
    options.environment.insert(environment_.begin(), environment_.end());
    const auto child = std::make_shared<process::Subprocess>(command, options);
    return {.to = std::move(child->in),
            .from = std::move(child->out),
            .err = std::move(child->err),
            .carrier = StreamCarrier([child](double grace) { child->end(grace); })};
  } catch (const process::NotStarted& error) { throw DialError(FailureClass::unknown, error.what(), error.code()); }
}

FailureClass CommandDialer::classify(const std::string& said) const {
  return said.find("error while loading shared libraries") != std::string::npos ? FailureClass::permanent
                                                                                : FailureClass::unknown;
}

}  // namespace hypertune::inline v0::remote
