// Trials and algorithms that must not compile, each for the reason that its test expects to read: the one with
// the number CASE, or all where that is -1.
#include <hypertune/hypertune.hpp>

#include <functional>
#include <string>
#include <vector>

#define IS(number) (CASE == number || (CASE == -1 && number != 0))

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
  void observe(const ht::Observation&) {}
};
struct NoScheduler {
  bool on_report(const ht::Progress&) { return true; }
};

struct NoObserver {
  void prepare(const ht::SearchSpace&, const ht::SearchContext&) {}
  ht::Suggestion suggest(const ht::Ask&) { return ht::Suggestion::exhausted(); }
};
struct WrongHook {
  void on_trial_reported(const ht::record::TrialReported&) {}
};
struct OneWrongHook {
  void on_trial_end(const ht::record::TrialEnded&) {}
  void on_checkpoint(const ht::record::TrialCheckpointed&) {}
};
struct NoHook {};
struct UncallableHook {
  void on_trial_report(int) {}
};
struct NoShutdown {
  std::vector<ht::Host> hosts() const { return {}; }
  ht::Seconds now() const { return 0; }
  void start(ht::ExecutorStart) {}
  void perform(ht::Command) {}
  void wait(ht::Seconds) {}
  void notify() {}
};

int main() {
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0, 1)));
  [[maybe_unused]] const auto train = [](const Config& config) { return config.x; };
#if IS(0)  // the control: all is well
  ht::tune(space, train, {.samples = 1, .search = ht::Random{}, .schedule = ht::Fifo{}});
#endif
#if IS(1)
  ht::tune(space, [](const Config&) { return std::string(); }, {.samples = 1});
#endif
#if IS(2)
  ht::tune(space, [](int, int) { return 1.0; }, {.samples = 1});
#endif
#if IS(3)
  ht::tune<NoConstructor>(space, {.samples = 1});
#endif
#if IS(4)
  ht::tune<NoStep>(space, {.samples = 1});
#endif
#if IS(5)
  ht::tune<NoRestore>(space, {.samples = 1});
#endif
#if IS(6)
  ht::tune(space, train, {.samples = 1, .search = NoSearcher{}});
#endif
#if IS(7)
  ht::tune(space, train, {.samples = 1, .schedule = NoScheduler{}});
#endif
#if IS(8)
  ht::tune(space, train, {.metric = "x", .sampels = 1});
#endif
#if IS(9)
  ht::tune(space, train, {.samples = 1, .callbacks = {WrongHook{}}});
#endif
#if IS(10)
  ht::tune(space, train, {.samples = 1, .callbacks = {OneWrongHook{}}});
#endif
#if IS(11)
  ht::tune(space, train, {.samples = 1, .callbacks = {NoHook{}}});
#endif
#if IS(12)
  UncallableHook hook;
  ht::tune(space, train, {.samples = 1, .callbacks = {std::ref(hook)}});
#endif
#if IS(13)
  ht::tune(space, train, {.samples = 1, .executor = NoShutdown{}});
#endif
#if IS(14)
  ht::tune(space, train, {.samples = 1, .executor = "local"});
#endif
#if IS(15)
  ht::tune(space, train, {.samples = 1, .search = "tpe"});
#endif
#if IS(16)
  ht::tune(space, train, {.samples = 1, .schedule = "asha"});
#endif
#if IS(17)
  ht::tune(space, train, {.samples = 1, .stop = 10});
#endif
#if IS(18)
  ht::tune(space, train);
#endif
#if IS(19)
  ht::tune(train, space, {.samples = 1});
#endif
#if IS(20)
  ht::tune(space.search_space(), train, {.samples = 1});
#endif
#if IS(21)
  ht::tune(space, [](Config config) -> ht::Training { co_yield config.x; }, {.samples = 1});
#endif
#if IS(22)
  ht::tune(space, train, {.samples = 1, .search = NoObserver{}});
#endif
#if IS(23)
  ht::tune(space, train, ht::Options{.metric = "x", .sampels = 1});
#endif
}
