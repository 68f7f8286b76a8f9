// The program of the tests' pods: a keeper, its agents, and processes that play agents.
#include "remote/agent/test_programs.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/process/process_marks.hpp>
#include <hypertune/remote/runtime.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

// What main() does before its Runtime, and after it, is seen in a file.
void note(const char* what) {
  const char* file = std::getenv("TEST_NOTES");
  std::FILE* out = file == nullptr ? nullptr : std::fopen(file, "a");
  if (out == nullptr) return;
  std::fprintf(out, "%s%s\n", what, std::getenv("HYPERTUNE_POD_TOKEN") == nullptr ? "" : " with the token");
  std::fclose(out);
}

int learn(int argc, char** argv) {
  const Runtime runtime(argc, argv);
  note("main");
  Options options;
  options.metric = "accuracy";
  options.mode = Mode::maximize;
  tune(test::Learner::search_space(), test::learner_program(), options);
  return 1;  // an agent does not come back
}

// keep PING SILENCE LEAVE COMMAND…: a keeper with short limits, whose agents are this command.
int keep(int argc, char** argv) {
  auto options = k8s::KeeperOptions::from_environment("host", {});
  options.ping = std::atof(argv[2]);
  options.silence = std::atof(argv[3]);
  options.leave = std::atof(argv[4]);
  options.max_delay = 0.5;
  options.agent.assign(argv + 5, argv + argc);
  return k8s::keep_pod(std::move(options));
}

// Leaves a mark and hears no SIGTERM, or ends of it with 0.
int play_agent(bool stubborn) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const process::ProcessMark mark(std::getenv("HYPERTUNE_AGENTS"));
  std::puts(mark.left() ? "up" : "no mark");
  std::fflush(stdout);
  for (int number = 0; sigwait(&signals, &number) == 0 && stubborn;) {}
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "learn") return learn(argc, argv);
  if (mode == "keep" && argc > 5) return keep(argc, argv);
  if (mode == "agent" || mode == "stubborn") return play_agent(mode == "stubborn");
  if (mode == "asked") return remote::run_agent_if_asked(argc, argv, {}).value_or(7);
  return 2;
}
