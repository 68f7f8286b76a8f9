// Part of hypertune::ssh: the agent, compiled once.
#include <hypertune/ssh/impl/agent.hpp>

namespace hypertune::ssh {

int agent_main(const ProgramMaker& make_program, AgentOptions options) {
  return detail::Agent(make_program, std::move(options)).run();
}

}  // namespace hypertune::ssh
