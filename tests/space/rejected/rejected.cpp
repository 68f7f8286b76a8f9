// Programs that must not compile, one per CASE, each for the reason that its test expects to read.
#include <hypertune/space/space.hpp>

#include <string>
#include <vector>

namespace ht = hypertune;

struct Config {
  double lr = 0;
  int layers = 0;
  bool augment = false;
  std::string optimizer;
};
struct Other {
  double lr = 0;
};
struct NoDefault {
  explicit NoDefault(double x) : lr(x) {}
  double lr;
};

int main() {
#if CASE == 0  // the control: all is well
  ht::space<Config>(ht::dim("lr", &Config::lr, ht::uniform(0, 1)));
#elif CASE == 1
  ht::dim("layers", &Config::layers, ht::uniform(0, 1));
#elif CASE == 2
  ht::dim("augment", &Config::augment, ht::integer(0, 1));
#elif CASE == 3
  ht::dim("optimizer", &Config::optimizer, ht::integer(0, 1));
#elif CASE == 4
  ht::dim("optimizer", &Config::optimizer, ht::choice<std::vector<int>>({{1}, {2}}));
#elif CASE == 5
  ht::space<Config>(ht::dim("lr", &Other::lr, ht::uniform(0, 1)));
#elif CASE == 6
  ht::space<NoDefault>(ht::dim("lr", &NoDefault::lr, ht::uniform(0, 1)));
#elif CASE == 7
  ht::dim("x", ht::derived([](int) { return 1.0; }));
#elif CASE == 8
  ht::dim("x", ht::derived([](const ht::Params&) { return std::string(); }));
#elif CASE == 9
  ht::dim("lr", &Config::lr, 0.1);
#elif CASE == 10
  ht::dim("lr", &Config::lr);
#endif
}
