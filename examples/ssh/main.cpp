// Trials on other machines: the program of the quickstart, with checkpoints, on the hosts given as arguments.
//
//     ssh_hosts [--ssh-config FILE] host1 host2 …
//
// or with the environment: HYPERTUNE_HOSTS=host1,host2 (or @FILE) and HYPERTUNE_SSH_CONFIG. Each host needs an account
// that your ssh can log into without a prompt (a key or an agent), and the shared libraries that this program is linked
// with. Nothing else is installed. Without hosts the trials run on this machine.
#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/ssh/runtime.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;

struct Config {
  double step_size;
  double momentum;
};

struct Walker {
  double x = -1, y = 1, vx = 0, vy = 0;
};

ht::Training descend(Config config, ht::Context& context) {
  Walker w;
  context.checkpoints(
      [&](ht::CheckpointWriter& out) {
        std::ofstream file(out.file("walker"), std::ios::binary);
        file.write(reinterpret_cast<const char*>(&w), sizeof w);
      },
      [&](const ht::Checkpoint& in) {
        std::ifstream file(in.file("walker"), std::ios::binary);
        file.read(reinterpret_cast<char*>(&w), sizeof w);
      });
  for (int step = context.next_step(); step < 100; ++step) {
    const double slope_x = -2 * (1 - w.x) - 40 * w.x * (w.y - w.x * w.x), slope_y = 20 * (w.y - w.x * w.x);
    w.x += w.vx = config.momentum * w.vx - config.step_size * slope_x;
    w.y += w.vy = config.momentum * w.vy - config.step_size * slope_y;
    co_yield ht::report("height", std::pow(1 - w.x, 2) + 10 * std::pow(w.y - w.x * w.x, 2));
  }
}

int main(int argc, char** argv) {
  ht::Runtime runtime(argc, argv);  // on a host, this same program is the agent that runs the trials
  ht::ssh::SshSetup setup;
  std::vector<std::string> hosts;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--ssh-config" && i + 1 < argc)
      setup.ssh.config = argv[++i];
    else
      hosts.emplace_back(argv[i]);
  }
  const bool local = hosts.empty() && !ht::remote::HostSource::environment();
  if (!hosts.empty()) setup.hosts = std::move(hosts);

  const auto space = ht::space<Config>(ht::dim("step_size", &Config::step_size, ht::log_uniform(1e-4, 1.0)),
                                       ht::dim("momentum", &Config::momentum, ht::uniform(0.0, 0.99)));
  ht::Options options;
  options.name = "ssh_hosts";
  options.metric = "height";
  options.samples = 60;
  options.schedule = ht::Asha{.grace_period = 1, .max_steps = 100, .reduction_factor = 3};
  options.checkpoint.every = 20;
  if (local)
    options.executor = ht::processes();
  else
    options.executor = runtime.remote(std::move(setup));  // the only line that differs
  try {
    fmt::print("{}\n", ht::tune(space, descend, options).best());
  } catch (const ht::Error& error) {
    std::fprintf(stderr, "ssh_hosts: %s\n", error.what());
    return 1;
  }
}
