// AgentRuntime: detecting that this program was started as an agent.
#include <hypertune/detail/say.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/remote/program_role.hpp>
#include <hypertune/remote/runtime.hpp>
#include <hypertune/tune/detail/runtime_hooks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

std::string agent_limits_text(const HostOptions& host) {
  std::string text = "host";
  if (host.slots > 0) text += fmt::format(" slots={}", host.slots);
  if (host.cpus > 0) text += fmt::format(" cpus={}", host.cpus);
  if (host.gpus >= 0) text += fmt::format(" gpus={}", host.gpus);
  if (host.memory > 0) text += fmt::format(" memory={}", host.memory);
  for (const auto& [name, amount] : host.custom) text += fmt::format(" custom.{}={}", name, amount);
  return text;
}

local::ProcessOptions agent_limits(const std::string& text) {
  const auto hosts = parse_host_lines(text, "--hypertune-agent");
  if (hosts.size() != 1) fail(Errc::usage, "--hypertune-agent takes what may be used of the host, not '{}'", text);
  const auto& host = hosts.front();
  local::ProcessOptions options;
  options.pool = host.slots;
  options.cpus = host.cpus;
  options.gpus = host.gpus;
  options.memory = host.memory;
  options.custom = host.custom;
  // If Slurm does not bind a step to its cores, the machine is shared with others, which may use any core.
  const bool bound = host.cpus <= 0 || host.cpus >= static_cast<double>(local::usable_cores().size());
  if (std::getenv("SLURM_STEP_ID") != nullptr && !bound) options.pin = false;
  return options;
}

std::optional<int> run_agent_if_asked(int argc, char** argv, const ProgramMaker& make_program) {
  if (const auto code = play_program_role(argc, argv)) return code;
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

AgentRuntime::AgentRuntime(int& argc, char** argv) {
  if (const auto code = play_program_role(argc, argv)) std::exit(*code);
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
  signals_before_ = hypertune::detail::signals_by_default().exchange(true);
  if (!agent_) return;
  argv[kept] = nullptr;  // there was at least one more argument
  argc = kept;
  hypertune::detail::agent_hook() = [limits](const std::string&, const std::shared_ptr<const Program>& program) {
    int code = 2;
    try {
      AgentOptions options;
      options.processes = agent_limits(limits);
      code = agent_main([&](const std::string&) { return program; }, std::move(options));
    } catch (const std::exception& error) { hypertune::detail::say(std::string("hypertune: ") + error.what()); }
    std::exit(code);
  };
}

AgentRuntime::~AgentRuntime() {
  hypertune::detail::signals_by_default() = signals_before_;
  if (agent_) hypertune::detail::agent_hook() = nullptr;
}

}  // namespace hypertune::inline v0::remote
