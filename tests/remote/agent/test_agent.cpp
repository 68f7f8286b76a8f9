// An agent that runs the tests' programs: test_agent DIRECTORY WORKERS [CACHE]. Or one that does harm:
// test_agent hostile DEED
#include "hostile_agent.hpp"
#include "test_programs.hpp"
#include "weighty_program.hpp"

#include <hypertune/remote/agent.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (std::string(argv[1]) == "hostile") return hypertune::test::HostileAgent::main(argv[2]);
  std::puts("Welcome to this host!");  // as login scripts do
  std::fflush(stdout);
  hypertune::remote::AgentOptions options;
  options.directory = argv[1];
  options.processes.pool = std::atoi(argv[2]);
  options.processes.pin = false;
  if (argc > 3 && argv[3][0] != '-')  // over ssh, "--hypertune-agent …" follows
    options.cache = std::strtoull(argv[3], nullptr, 10);
  return hypertune::remote::agent_main(
      [](const std::string& name) {
        return name.starts_with("weighty ") ? hypertune::test::weighty_program(name)
                                            : hypertune::test::program_named(name);
      },
      options);
}
