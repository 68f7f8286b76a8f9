// A simulated group whose number of workers changes: when who trains, to the second.
#include "support/executor_trials.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/detail/growths.hpp>
#include <hypertune/execute/simulated.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

/// One trial of workers that need 10 s to begin; alone a worker takes 12 s for a step, together as often less.
class Bench {
 public:
  explicit Bench(int workers, SimulationOptions options = {}, int steps = 6)
      : executor_(machines(std::move(options), steps)) {
    executor_.start(
        {.program = planned_program(Form::coroutine), .directory = directory_.path(), .sink = [this](Event event) {
           inbox_.push_back(std::move(event));
           hear();
         }});
    for (int worker = 0; worker < workers; ++worker) add(worker);
    const Plan plan{.steps = steps};
    Launch go;
    go.trial = go.attempt = 0;
    go.point = plan.point();
    go.params = Params{{"seed", std::int64_t{plan.seed}}};
    go.allocation = now_;
    go.group = true;
    executor_.perform(std::move(go));
  }

  /// What is done after so many steps, before they are answered; and when so many seconds have passed.
  std::map<int, std::function<void(Bench&)>> after = {};
  std::map<Seconds, std::function<void(Bench&)>> at = {};
  std::function<void(Bench&, const MemberLost&)> when_lost = [](Bench& bench, const MemberLost&) { bench.stop(); };

  /// The trial goes on with the first `kept` ranks and these workers.
  void resize(int kept, const std::vector<int>& fresh) {
    std::vector<int> from;
    for (int rank = 0; rank < kept; ++rank) from.push_back(rank);
    resize(std::move(from), fresh);
  }
  void resize(std::vector<int> from, const std::vector<int>& fresh) {
    const Allocation before = std::exchange(now_, {.generation = now_.generation + 1});
    members_ = 0;
    for (const int rank : from) add(before[rank].host);
    for (const int worker : fresh) add(worker);
    from.resize(static_cast<std::size_t>(now_.workers()), -1);
    executor_.perform(Resize{0, 0, now_, std::move(from)});
  }
  /// With those that are left.
  void go_on_without(const std::vector<int>& lost) {
    std::vector<int> left;
    for (int rank = 0; rank < now_.workers(); ++rank)
      if (std::find(lost.begin(), lost.end(), rank) == lost.end()) left.push_back(rank);
    resize(left, {});
  }
  int workers() const { return now_.workers(); }
  void stop() { answer(Stop{0, 0, false}); }
  void pause() { answer(Pause{0, 0, false}); }
  void relaunch() {
    Launch go;
    go.trial = go.attempt = 0;
    go.allocation = now_;
    go.parked = go.group = true;
    executor_.perform(std::move(go));
  }

  /// What has happened, with its times.
  std::string run() {
    for (int turn = 0; turn < 200 && !over_; ++turn) {
      const bool due = !at.empty() && at.begin()->first <= executor_.now();
      if (due) at.extract(at.begin()).mapped()(*this);
      executor_.wait(at.empty() ? 1000 : at.begin()->first);
    }
    return story_;
  }

 private:
  static SimulationOptions machines(SimulationOptions options, int steps) {
    options.pool = 8;
    options.startup_seconds = 10;
    options.step_seconds = [steps](const Params&, int step) {
      return step < steps ? 12.0 : 0.0;
    };  // nothing after the last
    return options;
  }
  void add(int worker) {
    Slot slot;
    slot.host = worker;
    slot.host_name = fmt::format("worker-{}", worker);
    if (members_++ == 0)
      now_.lead = slot;
    else
      now_.others.push_back(slot);
  }
  void answer(Command command) {
    executor_.perform(std::move(command));
    answered_ = true;
  }
  // Like the Tuner: what a command brings about is heard when what it answers has been dealt with.
  void hear() {
    if (std::exchange(hearing_, true)) return;
    for (; !inbox_.empty(); inbox_.pop_front()) {
      const Event event = inbox_.front();
      std::visit([this](const auto& e) { on(e); }, event);
    }
    hearing_ = false;
  }
  template <class... Args>
  void tell(fmt::format_string<Args...> text, Args&&... args) {
    story_ += fmt::format("{} ", executor_.now()) + fmt::format(text, std::forward<Args>(args)...) + "; ";
  }
  void on(const Reported& e) {
    answered_ = false;
    tell("step {}", ++steps_);
    if (const auto found = after.find(steps_); found != after.end()) found->second(*this);
    if (!answered_) executor_.perform(Continue{0, e.attempt, false});
  }
  void on(const Resized& e) { tell("generation {}", e.generation); }
  void on(const MemberLost& e) {
    std::string ranks;
    for (const int rank : e.ranks) ranks += fmt::format(" {}", rank);
    tell("lost{} of {}", ranks, e.generation);
    when_lost(*this, e);
  }
  void on(const Paused&) { tell("paused"), relaunch(); }
  void on(const Finished&) { tell("finished"), over_ = true; }
  void on(const Stopped&) { tell("stopped"), over_ = true; }
  void on(const Failed&) { tell("failed"), over_ = true; }
  template <class E>
  void on(const E&) {}

  TemporaryDirectory directory_{TemporaryDirectory::memory()};
  Allocation now_;
  int members_ = 0, steps_ = 0;
  bool answered_ = false, hearing_ = false, over_ = false;
  std::string story_;
  std::deque<Event> inbox_;
  SimulatedExecutor executor_;
};

std::string times(const std::vector<Seconds>& seconds) {
  std::string text;
  for (const Seconds s : seconds) text += fmt::format("{:g} ", s);
  return text;
}

}  // namespace

TEST_CASE("a simulated group trains on while workers that are to join it begin, so a growth costs no time") {
  Bench bench(2, {}, 5);
  bench.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
  // From 16 s on the others begin, and stand ready at 26 s; two take 6 s for a step and four 3 s.
  CHECK(bench.run() == "16 step 1; 22 step 2; 28 step 3; 28 generation 1; 31 step 4; 34 step 5; 34 finished; ");
}

TEST_CASE("a simulated worker that is alone trains on while others begin") {
  Bench bench(1, {}, 3);
  bench.after[1] = [](Bench& b) { b.resize(1, {1, 2}); };
  CHECK(bench.run() == "22 step 1; 34 step 2; 34 generation 1; 38 step 3; 38 finished; ");
}

TEST_CASE("a simulated group that is resized within a step ends the step with the workers that it has") {
  Bench bench(2, {}, 5);
  bench.at[18] = [](Bench& b) { b.resize(2, {2}); };  // ready as the third step ends
  CHECK(bench.run() == "16 step 1; 22 step 2; 28 step 3; 28 generation 1; 32 step 4; 36 step 5; 36 finished; ");
}

TEST_CASE("a simulated group that is to have fewer workers waits for nobody") {
  Bench bench(4, {}, 3);
  bench.after[1] = [](Bench& b) { b.resize(2, {}); };
  CHECK(bench.run() == "13 step 1; 13 generation 1; 19 step 2; 25 step 3; 25 finished; ");
}

TEST_CASE("a loss while workers begin halts a simulated group where the lost one trains, else that goes on") {
  const auto lose = [](int worker) {
    Bench bench(2, {.outages = {{.worker = worker, .at = 20}}}, 4);
    bench.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
    bench.when_lost = [](Bench& b, const MemberLost& lost) { b.go_on_without(lost.ranks); };
    return bench.run();
  };
  // One that trained: the step is done again, when all of those that are left have begun.
  CHECK(lose(1) == "16 step 1; 20 lost 1 of 1; 30 generation 2; 34 step 2; 38 step 3; 42 step 4; 42 finished; ");
  // One that began: the other one that does stands ready at 26 s, as before.
  CHECK(lose(3) == "16 step 1; 20 lost 3 of 1; 22 step 2; 28 step 3; 28 generation 2; 32 step 4; 32 finished; ");
  CHECK(lose(7) == "16 step 1; 22 step 2; 28 step 3; 28 generation 1; 31 step 4; 31 finished; ");
}

TEST_CASE("the loss of all workers that were to join a simulated group costs it no time") {
  Bench bench(2, {.outages = {{.worker = 2, .at = 20}, {.worker = 3, .at = 20.5}}}, 4);
  bench.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
  SECTION("it goes on as it was") {
    bench.when_lost = [](Bench& b, const MemberLost& lost) { b.go_on_without(lost.ranks); };
    CHECK(
        bench.run() ==
        "16 step 1; 20 lost 2 of 1; 20.5 lost 2 of 2; 22 step 2; 22 generation 3; 28 step 3; 34 step 4; 34 finished; ");
  }
  SECTION("others take their place, and are waited for in turn") {
    bench.when_lost = [](Bench& b, const MemberLost& lost) {
      if (lost.generation == 1) return b.resize({0, 1, 3}, {4});
      b.resize({0, 1, 3}, {});
    };
    CHECK(
        bench.run() ==
        "16 step 1; 20 lost 2 of 1; 20.5 lost 2 of 2; 22 step 2; 28 step 3; 34 step 4; 34 generation 3; 34 finished; ");
  }
  SECTION("it ends") { CHECK(bench.run() == "16 step 1; 20 lost 2 of 1; 20 stopped; "); }
}

TEST_CASE("workers that begin cannot go on with a simulated trial that nobody else is left of") {
  Bench bench(1, {.outages = {{.worker = 0, .at = 25}}});
  bench.after[1] = [](Bench& b) { b.resize(1, {1, 2}); };
  CHECK(bench.run() == "22 step 1; 25 failed; ");
}

TEST_CASE("a failure within a step while workers begin is that of a simulated worker which trains") {
  Bench bench(2, {.failure_probability = 1});
  bench.at[10] = [](Bench& b) { b.resize(2, {2, 3, 4}); };
  const std::string story = bench.run();
  INFO(story);
  CHECK((story.find("lost 0 of 1; ") != std::string::npos || story.find("lost 1 of 1; ") != std::string::npos));
}

TEST_CASE("a simulated group may be resized again before those that are to join it stand ready") {
  SECTION("with more workers: the generation between never comes about") {
    Bench bench(2, {}, 6);
    bench.after[1] = [](Bench& b) { b.resize(2, {2}); };
    bench.after[2] = [](Bench& b) { b.resize(3, {3}); };  // ready at 32 s
    CHECK(bench.run() ==
          "16 step 1; 22 step 2; 28 step 3; 34 step 4; 34 generation 2; 37 step 5; 40 step 6; 40 finished; ");
  }
  SECTION("with more workers as they stand ready: it trains until the next one does, and is not told of") {
    Bench bench(2, {}, 7);
    bench.after[1] = [](Bench& b) { b.resize(2, {2}); };
    bench.after[3] = [](Bench& b) { b.resize(3, {3}); };
    CHECK(
        bench.run() ==
        "16 step 1; 22 step 2; 28 step 3; 32 step 4; 36 step 5; 40 step 6; 40 generation 2; 43 step 7; 43 finished; ");
  }
  SECTION("with some of them: no one else is waited for") {
    Bench bench(2, {}, 4);
    bench.after[1] = [](Bench& b) { b.resize(2, {2}); };
    bench.at[20] = [](Bench& b) { b.resize(3, {3}); };
    bench.after[3] = [](Bench& b) { b.resize(3, {}); };
    CHECK(bench.run() == "16 step 1; 22 step 2; 28 step 3; 28 generation 3; 32 step 4; 32 finished; ");
  }
  SECTION("with none of them") {
    Bench bench(2, {}, 3);
    bench.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
    bench.after[2] = [](Bench& b) { b.resize(2, {}); };
    CHECK(bench.run() == "16 step 1; 22 step 2; 22 generation 2; 28 step 3; 28 finished; ");
  }
  SECTION("one that is to leave and is lost before halts the others until the generation without it begins") {
    Bench bench(2, {.outages = {{.worker = 1, .at = 20}}}, 3);
    bench.after[1] = [](Bench& b) { b.resize(std::vector{0}, {2}); };
    CHECK(bench.run() == "16 step 1; 30 generation 1; 36 step 2; 42 step 3; 42 finished; ");
  }
}

TEST_CASE("a simulated trial may end or pause while workers begin") {
  Bench bench(2, {}, 2);
  bench.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
  SECTION("by itself") { CHECK(bench.run() == "16 step 1; 22 step 2; 22 finished; "); }
  SECTION("stopped within a step") {
    bench.at[19] = [](Bench& b) { b.stop(); };
    CHECK(bench.run() == "16 step 1; 19 stopped; ");
  }
  SECTION("stopped between two steps") {
    bench.after[2] = [](Bench& b) { b.stop(); };
    CHECK(bench.run() == "16 step 1; 22 step 2; 22 stopped; ");
  }
  SECTION("paused: all of them begin again") {
    Bench longer(2, {}, 3);
    longer.after[1] = [](Bench& b) { b.resize(2, {2, 3}); };
    longer.after[2] = [](Bench& b) { b.pause(); };
    CHECK(longer.run() == "16 step 1; 22 step 2; 22 paused; 35 step 3; 35 finished; ");
  }
}

TEST_CASE("a simulated trial that is resized again and again repeats itself to the bit") {
  const auto story = [] {
    std::vector<Outage> outages;
    for (int i = 0; i < 6; ++i) outages.push_back({.worker = 7 - i, .at = 31.0 + 131 * i});
    Bench bench(2, {.speed_spread = 0.4, .straggle_probability = 0.2, .outages = outages, .seed = 3}, 30);
    for (int step = 1; step < 20; step += 3)
      bench.after[step] = [](Bench& b) { b.resize(std::min(2, b.workers()), {4, 6, 7}); };
    bench.after[5] = [](Bench& b) { b.resize(std::min(3, b.workers()), {}); };
    bench.when_lost = [](Bench& b, const MemberLost& lost) { b.go_on_without(lost.ranks); };
    return bench.run();
  };
  const std::string first = story();
  INFO(first);
  CHECK(first == story());
  CHECK(first.find("lost") != std::string::npos);
  CHECK(first.find("finished") != std::string::npos);
}

TEST_CASE("growths tell which generation trains by how long workers take to begin") {
  Growths growths;
  growths.resize({.generation = 0, .workers = 2, .last = 10}, {.generation = 1, .workers = 4, .asked = 12});
  CHECK(growths.training(5).generation == 0);
  CHECK(times(growths.ready(5)) == "0 0 17 17 ");
  growths.resize({.generation = 1, .workers = 4, .last = 18}, {.generation = 2, .workers = 6, .asked = 20});
  CHECK(growths.training(5).generation == 1);  // ready at 17, in time for the report at 18
  CHECK(growths.training(7).generation == 0);
  CHECK(times(growths.ready(5)) == "0 0 17 17 25 25 ");

  SECTION("fewer: those that are left were asked for when they were") {
    growths.resize({.generation = 2, .workers = 6, .last = 21}, {.generation = 3, .workers = 5, .asked = 21});
    CHECK(times(growths.ready(5)) == "0 0 17 17 25 ");
    CHECK(growths.training(5).generation == 1);
    growths.resize({.generation = 3, .workers = 5, .last = 22}, {.generation = 4, .workers = 3, .asked = 22});
    CHECK(times(growths.ready(5)) == "0 0 17 ");
    CHECK(growths.training(5).generation == 0);
  }
  SECTION("as few as at first: all of them train") {
    growths.resize({.generation = 2, .workers = 6, .last = 21}, {.generation = 3, .workers = 2, .asked = 21});
    CHECK(growths.empty());
  }

  SECTION("those that were to join are lost: who trains goes on, until those that are left stand ready") {
    growths.lose({.generation = 2, .workers = 6, .last = 21}, {2, 5}, {.generation = 3, .workers = 4, .asked = 22}, 7);
    CHECK(growths.training(7).generation == 0);
    CHECK(times(growths.ready(7)) == "0 0 19 27 ");
    CHECK(!growths.complete(26.5, 7));
    CHECK(growths.complete(27, 7));
  }
  SECTION("all that were to join are lost: who trains is another generation from the next report on") {
    growths.lose({.generation = 2, .workers = 6, .last = 21}, {4, 5}, {.generation = 3, .workers = 4, .asked = 22}, 5);
    CHECK(growths.training(5).generation == 1);
    CHECK(times(growths.ready(5)) == "0 0 0 0 ");
    CHECK(!growths.complete(21, 5));
    CHECK(growths.complete(22, 5));
  }
  SECTION("one that trains is lost: all begin anew") {
    growths.lose({.generation = 2, .workers = 6, .last = 21}, {3}, {.generation = 3, .workers = 5, .asked = 22}, 5);
    CHECK(growths.empty());
  }
}
