// The program in the tests' image: keeps its pod, and runs the tests' programs as an agent.
#include "remote/agent/test_programs.hpp"

#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/remote/runtime.hpp>

#include <unistd.h>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "mute") {  // neither an agent nor the keeper of a pod
    std::fputs("it waits for a licence\n", stderr);
    for (;;) ::pause();
  }
  const auto code = hypertune::remote::run_agent_if_asked(argc, argv, hypertune::test::program_named);
  return code.value_or(2);
}
