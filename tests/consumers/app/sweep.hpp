// What a project that uses hypertune has: a configuration in a header that several of its files include.
#pragma once

#include <hypertune/hypertune.hpp>
#if __has_include(<hypertune/local/processes.hpp>)  // where the project takes backends/local as well
#include <hypertune/local/command.hpp>
#include <hypertune/local/processes.hpp>
#define APP_HAS_PROCESSES
#endif

struct Config {
  double x = 0;
  int layers = 1;
};

hypertune::Space<Config> make_space();
hypertune::Training train(Config config, hypertune::Context& context);
