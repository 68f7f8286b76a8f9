// Trials on machines that are launched while trials wait and terminated when there is no more work.
//
//     cluster_machines CLUSTER.yaml
//
// The YAML files in this folder are example clusters. No machine needs to be running before, and none is left running
// afterwards, however the program ends. The exception is kill -9: the machines then stay up until the next run or
// `hypertune down`. `hypertune results runs/cluster_machines` shows what the run has cost.
#include <hypertune/cluster/executor.hpp>
#include <hypertune/hypertune.hpp>
#include <hypertune/ssh/runtime.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

namespace ht = hypertune;

struct Config {
  double rate;
  int layers;
};

ht::Training train(Config config, ht::Context&) {
  for (int epoch = 1; epoch <= 5; ++epoch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // stands for an epoch's work
    co_yield ht::report("error", std::abs(std::log10(config.rate) + 3) + std::abs(config.layers - 4) + 1.0 / epoch);
  }
}

int main(int argc, char** argv) {
  ht::Runtime runtime(argc, argv);  // on a machine, this same program is the agent that runs the trials
  if (argc != 2) {
    std::fprintf(stderr, "usage: cluster_machines CLUSTER.yaml\n");
    return 2;
  }
  const auto space = ht::space<Config>(ht::dim("rate", &Config::rate, ht::log_uniform(1e-5, 1e-1)),
                                       ht::dim("layers", &Config::layers, ht::integer(1, 8)));
  ht::Options options;
  options.name = "cluster_machines";
  options.metric = "error";
  options.samples = 24;
  options.output = "runs/cluster_machines";
  options.resume = true;  // continue a run that was killed
  options.executor = ht::on_cluster(argv[1], runtime.setup());
  try {
    fmt::print("{}\n", ht::tune(space, train, options).best());
  } catch (const ht::Error& error) {
    std::fprintf(stderr, "cluster_machines: %s\n", error.what());
    return 1;
  }
}
