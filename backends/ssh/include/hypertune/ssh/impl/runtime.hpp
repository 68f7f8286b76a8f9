// How a program learns that it is the agent.
#pragma once

#include <hypertune/detail/say.hpp>
#include <hypertune/ssh/runtime.hpp>
#include <hypertune/tune/stand_in.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune {
namespace ssh {

HYPERTUNE_SSH_INLINE std::optional<int> run_agent_if_asked(int argc, char** argv, const ProgramMaker& make_program) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--hypertune-agent") continue;
    try {
      AgentOptions options;
      options.processes = agent_limits(i + 1 < argc ? argv[i + 1] : "");
      return agent_main(make_program, std::move(options));
    } catch (const std::exception& error) {
      hypertune::detail::say(std::string("hypertune: ") + error.what());
      return 2;
    }
  }
  return std::nullopt;
}

}  // namespace ssh

HYPERTUNE_SSH_INLINE Runtime::Runtime(int& argc, char** argv) {
  std::string limits;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    if (i > 0 && std::string_view(argv[i]) == "--hypertune-agent") {
      agent_ = true;
      if (i + 1 < argc) limits = argv[++i];
      continue;
    }
    if (i > 0) arguments_.emplace_back(argv[i]);
    argv[kept++] = argv[i];
  }
  if (!agent_) return;
  argv[kept] = nullptr;  // there was one more
  argc = kept;
  detail::stand_in() = [limits](const std::string&, const std::shared_ptr<const Program>& program) {
    int code = 2;
    try {
      ssh::AgentOptions options;
      options.processes = ssh::agent_limits(limits);
      code = ssh::agent_main([&](const std::string&) { return program; }, std::move(options));
    } catch (const std::exception& error) { hypertune::detail::say(std::string("hypertune: ") + error.what()); }
    std::exit(code);
  };
}

HYPERTUNE_SSH_INLINE Runtime::~Runtime() {
  if (agent_) detail::stand_in() = nullptr;
}

HYPERTUNE_SSH_INLINE RemoteSetup Runtime::setup(RemoteSetup setup) const {
  if (setup.arguments.empty()) setup.arguments = arguments_;
  return setup;
}
HYPERTUNE_SSH_INLINE RemoteExecutor Runtime::remote(RemoteSetup given) const {
  return RemoteExecutor(setup(std::move(given)));
}

}  // namespace hypertune
