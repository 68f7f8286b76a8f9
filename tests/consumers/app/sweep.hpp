// What a project that uses hypertune has: a configuration in a header that several of its files include.
#pragma once

#include <hypertune/hypertune.hpp>

struct Config {
  double x = 0;
  int layers = 1;
};

hypertune::Space<Config> make_space();
hypertune::Training train(Config config, hypertune::Context& context);
