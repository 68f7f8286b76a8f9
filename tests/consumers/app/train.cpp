#include "sweep.hpp"

namespace ht = hypertune;

ht::Space<Config> make_space() {
  return ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)),
                           ht::dim("layers", &Config::layers, ht::integer(1, 4)));
}

ht::Training train(Config config, ht::Context& context) {
  double loss = config.x * config.x + 0.01 * config.layers;
  for (int step = context.next_step(); step < 9; ++step) {
    loss *= 0.9;
    co_yield ht::report("loss", loss, "layers", config.layers);
  }
}
