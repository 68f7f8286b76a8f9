// Executors whose machines come with the experiment: what they hear of it, and when.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;

namespace {

/// Threads that note what machines would be asked for.
class Machines {
 public:
  struct Heard {
    std::vector<std::string> calls;
    std::optional<std::int64_t> trials;
    int trial_ended = 0;
  };
  explicit Machines(std::shared_ptr<Heard> heard) : heard_(std::move(heard)), threads_(ht::threads(2)) {}

  std::vector<ht::Host> hosts() const {
    heard_->calls.emplace_back("hosts");
    return threads_.hosts();
  }
  ht::Seconds now() const { return threads_.now(); }
  void start(ht::ExecutorStart start) {
    heard_->calls.emplace_back("start");
    threads_.start(std::move(start));
  }
  void perform(ht::Command command) { threads_.perform(std::move(command)); }
  void wait(ht::Seconds deadline) { threads_.wait(deadline); }
  void notify() { threads_.notify(); }
  void shutdown() { threads_.shutdown(); }
  std::string name() const { return "machines"; }

  void prepare(const ht::Workload& workload) {
    heard_->calls.emplace_back("prepare");
    heard_->trials = workload.trials;
  }
  void trial_ended(ht::TrialId) { ++heard_->trial_ended; }
  void teardown() { heard_->calls.emplace_back("teardown"); }

 private:
  std::shared_ptr<Heard> heard_;
  ht::ThreadExecutor threads_;
};

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));
double square(const Config& c) { return c.x * c.x; }

ht::Options options(const TemporaryDirectory& directory, std::shared_ptr<Machines::Heard> heard) {
  return {.samples = 7,
          .search = ht::Random{},
          .executor = Machines(std::move(heard)),
          .output = directory.path() / "run",
          .display = ht::Display::quiet};
}

}  // namespace

TEST_CASE("machines are expected before they are asked for, and let go when all is over") {
  TemporaryDirectory directory;
  const auto heard = std::make_shared<Machines::Heard>();
  ht::tune(space, square, options(directory, heard));
  CHECK(heard->calls == std::vector<std::string>{"prepare", "hosts", "start", "teardown"});
  CHECK(heard->trials == 7);
  CHECK(heard->trial_ended == 7);
}

TEST_CASE("options that cannot be are refused before a machine is expected") {
  TemporaryDirectory directory;
  const auto heard = std::make_shared<Machines::Heard>();
  auto wrong = options(directory, heard);
  wrong.concurrency = -1;
  CHECK_THROWS_WITH(ht::tune(space, square, wrong), ContainsSubstring(".concurrency is -1"));
  wrong = options(directory, heard);
  wrong.samples = 0;
  CHECK_THROWS_WITH(ht::tune(space, square, wrong), ContainsSubstring("how many trials?"));
  wrong = options(directory, heard);
  wrong.checkpoint.keep = -1;
  CHECK_THROWS_AS(ht::tune(space, square, wrong), ht::Error);
  CHECK(heard->calls.empty());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "run"));
}
