// Trials and algorithms that must not compile, one per CASE, each for the reason that its test expects to read.
#include <hypertune/hypertune.hpp>

#include <string>

namespace ht = hypertune;

struct Config {
  double x = 0;
};

struct NoConstructor {
  double step() { return 0; }
};
struct NoStep {
  explicit NoStep(const Config&) {}
};
struct NoRestore {
  explicit NoRestore(const Config&) {}
  double step() { return 0; }
  void save(ht::CheckpointWriter&) const {}
};
struct NoSearcher {
  int suggest(int) { return 0; }
};
struct NoScheduler {
  bool on_report(const ht::Progress&) { return true; }
};

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0, 1)));
  [[maybe_unused]] const auto train = [](const Config& config) { return config.x; };
#if CASE == 0  // the control: all is well
  ht::tune(space, train, {.samples = 1, .search = ht::Random{}, .schedule = ht::Fifo{}});
#elif CASE == 1
  ht::tune(space, [](const Config&) { return std::string(); }, {.samples = 1});
#elif CASE == 2
  ht::tune(space, [](int, int) { return 1.0; }, {.samples = 1});
#elif CASE == 3
  ht::tune<NoConstructor>(space, {.samples = 1});
#elif CASE == 4
  ht::tune<NoStep>(space, {.samples = 1});
#elif CASE == 5
  ht::tune<NoRestore>(space, {.samples = 1});
#elif CASE == 6
  ht::tune(space, train, {.samples = 1, .search = NoSearcher{}});
#elif CASE == 7
  ht::tune(space, train, {.samples = 1, .schedule = NoScheduler{}});
#endif
}
