// hypertune serve: the best checkpoint of an experiment behind HTTP.
#include "command_lines.hpp"
#include "commands.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/serve/serve.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

struct ServeArguments {
  std::string directory;
  std::vector<std::string> command;
  ServeOptions options;
  bool fixed_delay = false;
};

int serve_model(ServeArguments arguments) {
  auto& options = arguments.options;
  if (arguments.fixed_delay) options.batch.batching = Batching::fixed_delay;
  options.ready = [](const std::string& address) {
    fmt::print("{}\n", address);
    std::fflush(stdout);
  };
  serve_command(arguments.directory, std::move(arguments.command), options);
  return exit_done;
}

}  // namespace

void add_serve_command(CLI::App& app, std::function<int()>& chosen) {
  const auto arguments = std::make_shared<ServeArguments>();
  auto& options = arguments->options;
  auto* command = app.add_subcommand("serve", "the best checkpoint behind HTTP: serve DIR -- COMMAND ARGS…");
  command->add_option("DIR", arguments->directory, "the experiment's folder")->required();
  command->add_option("ARGS", arguments->command, "after --: the program that answers, with its arguments")->required();
  const auto option = [command](const char* name, auto& value, const char* what) {
    return command->add_option(name, value, what)->capture_default_str();
  };
  option("--port", options.port, "0: any free one");
  option("--listen", options.listen, "this machine's address; beyond loopback with TLS and a token");
  command->add_option("--identity", options.identity,
                      "beyond loopback: a file with a certificate and its key (PEM), in place of a new one");
  command->add_option("--token", options.token,
                      "beyond loopback: a file whose first line is the token, in place of a new one");
  command->add_option("--name", options.name, "the model's name, in place of the experiment's");
  command->add_flag("--follow", options.follow, "a better checkpoint takes over while the experiment goes on");
  command->add_option("--pin", options.pin, "serve this version, TRIAL-STEPS, and no other");
  command->add_option("--validation", options.validation,
                      "a file with an inference request that a version must answer before it takes over");
  option("--canary-share", options.canary_share, "of the requests that a new version answers at first");
  option("--canary-time", options.canary_time, "seconds for which it does");
  option("--min-replicas", options.replicas.min_replicas, "processes that answer, at least");
  option("--max-replicas", options.replicas.max_replicas, "processes that answer, at most");
  option("--target-ongoing-requests", options.replicas.target_ongoing_requests,
         "for each replica: more start another one");
  option("--upscale-delay", options.replicas.upscale_delay, "seconds for which more must be wanted");
  option("--downscale-delay", options.replicas.downscale_delay, "seconds for which fewer must be wanted");
  option("--cpus", options.replicas.cpus, "cores to which each replica is bound; 0: none");
  option("--gpus", options.replicas.gpus, "GPUs that each replica sees");
  option("--start-timeout", options.replicas.start_timeout, "seconds until a replica is ready");
  option("--hang-timeout", options.replicas.hang_timeout, "seconds for an answer, after which a replica is ended");
  option("--max-batch-size", options.batch.max_batch_size, "rows of a batch, if the model takes batches");
  option("--max-queued-requests", options.batch.max_queued_requests, "more are refused");
  option("--latency-objective", options.batch.latency_objective,
         "seconds from a request to its answer: a batch waits as long as this allows; 0: not at all");
  auto* fixed = command->add_flag("--fixed-delay", arguments->fixed_delay, "a batch waits for --max-delay instead");
  option("--max-delay", options.batch.max_delay, "seconds that the first request of a batch waits")->needs(fixed);
  option("--request-timeout", options.request_timeout, "seconds until a request that waits is refused");
  option("--drain-grace", options.drain_grace, "seconds for the requests under way when the server is to end");
  option("--max-body", options.max_body, "bytes of a request");
  option("--max-connections", options.max_connections, "at a time");
  command->callback([arguments, &chosen] { chosen = [arguments] { return serve_model(*arguments); }; });
}

}  // namespace hypertune::inline v0::command
