// Executors whose machines come with the experiment: what they hear of it, and when.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
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
    std::optional<bool> unfinished;
    std::optional<ht::Errc> fails;  // of hosts()
  };
  explicit Machines(std::shared_ptr<Heard> heard) : heard_(std::move(heard)), threads_(ht::threads(2)) {}

  std::vector<ht::Host> hosts() const {
    heard_->calls.emplace_back("hosts");
    if (heard_->fails) throw ht::Error(*heard_->fails, "as the test wants it");
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
  void teardown(bool unfinished) {
    heard_->calls.emplace_back("teardown");
    heard_->unfinished = unfinished;
  }

 private:
  std::shared_ptr<Heard> heard_;
  ht::ThreadExecutor threads_;
};

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));
double square(const Config& c) { return c.x * c.x; }
std::atomic<int> steps{0};
ht::Training endless(Config config) {
  for (;;) {
    ++steps;
    steps.notify_all();
    co_yield ht::report("loss", config.x);
  }
}

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
  CHECK(heard->unfinished == false);
}

TEST_CASE("machines are told whether another run may go on with the experiment") {
  TemporaryDirectory directory;
  const auto heard = std::make_shared<Machines::Heard>();
  SECTION("not after one that a stop rule has ended") {
    auto ended = options(directory, heard);
    ended.stop = ht::total_steps(1);
    ht::tune(space, square, ended);
    CHECK(heard->unfinished == false);
  }
  SECTION("after an interruption, also where all trials had begun and none waits") {
    auto interrupted = options(directory, heard);
    interrupted.samples = 2;
    std::stop_source stop;
    interrupted.metric = "loss";
    auto tuner = ht::make_tuner(space, endless, interrupted);
    steps = 0;
    std::thread stopper([&] {
      for (int seen = steps; seen < 4; seen = steps) steps.wait(seen);
      stop.request_stop();
    });
    tuner.run(stop.get_token());
    stopper.join();
    CHECK(heard->trial_ended == 0);
    CHECK(heard->unfinished == true);
  }
  SECTION("after an error that may pass, and not after one of what the user wrote") {
    heard->fails = ht::Errc::io;
    CHECK_THROWS_AS(ht::tune(space, square, options(directory, heard)), ht::Error);
    CHECK(heard->unfinished == true);
    heard->fails = ht::Errc::usage;
    CHECK_THROWS_AS(ht::tune(space, square, options(directory, heard)), ht::Error);
    CHECK(heard->unfinished == false);
  }
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
