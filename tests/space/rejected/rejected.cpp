// Programs that must not compile, each for the reason that its test expects to read: the one with
// the number CASE, or all where that is -1.
#include <hypertune/space/space.hpp>

#include <string>
#include <vector>

#define IS(number) (CASE == number || (CASE == -1 && number != 0))

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
#if IS(0)  // the control: all is well
  ht::space<Config>(ht::dim("lr", &Config::lr, ht::uniform(0, 1)));
#endif
#if IS(1)
  ht::dim("layers", &Config::layers, ht::uniform(0, 1));
#endif
#if IS(2)
  ht::dim("augment", &Config::augment, ht::integer(0, 1));
#endif
#if IS(3)
  ht::dim("optimizer", &Config::optimizer, ht::integer(0, 1));
#endif
#if IS(4)
  ht::dim("optimizer", &Config::optimizer, ht::choice<std::vector<int>>({{1}, {2}}));
#endif
#if IS(5)
  ht::space<Config>(ht::dim("lr", &Other::lr, ht::uniform(0, 1)));
#endif
#if IS(6)
  ht::space<NoDefault>(ht::dim("lr", &NoDefault::lr, ht::uniform(0, 1)));
#endif
#if IS(7)
  ht::dim("x", ht::derived([](int) { return 1.0; }));
#endif
#if IS(8)
  ht::dim("x", ht::derived([](const ht::Params&) { return std::string(); }));
#endif
#if IS(9)
  ht::dim("lr", &Config::lr, 0.1);
#endif
#if IS(10)
  ht::dim("lr", &Config::lr);
#endif
}
