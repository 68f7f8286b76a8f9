// Part of hypertune::ssh: the agent, compiled once.
#include "agent_state.hpp"

namespace hypertune::remote {

int agent_main(const ProgramMaker& make_program, AgentOptions options) {
  return detail::Agent(make_program, std::move(options)).run();
}

}  // namespace hypertune::remote
