#include "local_trials.hpp"

#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/processes.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::command {

std::shared_ptr<const Program> program_of(const Sweep& sweep) {
  local::CommandOptions options;
  options.command = sweep.trial->command;
  options.metrics = sweep.trial->metrics;
  options.environment = sweep.trial->environment;
  options.grace = sweep.trial->grace;
  for (const auto& rule : sweep.trial->log_rules)
    options.log_rules.push_back({.match = rule.match, .exclude_host = rule.exclude_host, .no_retry = rule.no_retry});
  return std::make_shared<local::CommandProgram>(sweep.space, std::move(options));
}

AnyExecutor executor_of(const Sweep& sweep) {
  const auto& text = sweep.executor;
  if (text.workers == "threads")
    return threads(
        ThreadOptions{.cpus = text.cpus, .gpus = std::max(0.0, text.gpus), .custom = text.custom, .max_parked = 64});
  return processes({.cpus = text.cpus,
                    .gpus = text.gpus,
                    .memory = text.memory,
                    .custom = text.custom,
                    .grace = sweep.trial->grace});
}

}  // namespace hypertune::command
