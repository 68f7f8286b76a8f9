// The program in the tests' image: keeps its pod, and runs the tests' programs as an agent.
#include "remote/agent/test_programs.hpp"

#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/runtime.hpp>

int main(int argc, char** argv) {
  const auto code = hypertune::remote::run_agent_if_asked(argc, argv, hypertune::test::program_named);
  return code.value_or(2);
}
