// The laws that every Executor keeps: those of executor.hpp, for all that a trial may do.
//
//     TEST_CASE("my executor keeps the laws") { executor_conformance([] { return MyExecutor(); }); }
//
// The executor needs at least two slots of one cpu, or `concurrent = false`.
#pragma once

#include "executor_trials.hpp"
#include "scripted_tuner.hpp"
#include "temporary_directory.hpp"
#include "test.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace hypertune::inline v0::test {

/// Which ways to write a trial are tested with which ways to answer it. `all` is for an executor where one can meet the
/// other, as in one process. `each` has every one of them once: enough where the trials run in a process of their own.
enum class Combinations { all, each };

/// What kind of executor is tested.
struct ExecutorTraits {
  bool concurrent = true;  ///< trials run beside the thread that waits; false: within wait()
  int many = 1000;         ///< trials in the random test, for one form; the others have a tenth
  int shutdowns = 12;      ///< moments of shutdown(), for each form and way to answer
  Combinations combinations = Combinations::all;
  /// Damages what else there is of a checkpoint, where the executor keeps copies beside the experiment's folder.
  std::function<void(const CheckpointInfo&)> damage_copies = [](const CheckpointInfo&) {};
};

namespace conformance {

/// An executor that is not started; of how trials are written, those that run elsewhere need to know.
template <class Make>
auto made(const Make& make, Form form) {
  if constexpr (std::invocable<const Make&, Form>)
    return make(form);
  else
    return make();
}

struct Combination {
  Form form;
  ScriptedTuner::Answers answers;
};

/// The combinations that are asked for, one after the other.
inline Combination combination(Combinations which) {
  constexpr int count = 3;
  const int distance = which == Combinations::all ? 1 : count + 1;
  const int number = GENERATE_COPY(range(0, count * count, distance));
  return {static_cast<Form>(number / count), static_cast<ScriptedTuner::Answers>(number % count)};
}

inline std::size_t entries(const char* folder) {
  std::size_t n = 0;
  std::error_code ignored;
  for (auto it = std::filesystem::directory_iterator(folder, ignored); it != std::filesystem::directory_iterator();
       ++it)
    ++n;
  return n;
}
/// Threads and open files go when the kernel gets to it: a moment after their join or close.
inline bool soon(const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!condition())
    if (std::chrono::steady_clock::now() > end)
      return false;
    else
      std::this_thread::yield();
  return true;
}

inline void damage(LocalCheckpointStore& store, const CheckpointInfo& info) {
  const auto file = store.folder(info) / "state";
  REQUIRE(std::filesystem::exists(file));
  std::ofstream(file, std::ios::binary | std::ios::trunc) << "9 9";
}

/// Any of the answers, and a pause or a stop with what may follow, by chance that only depends on trial and step.
inline Answer random_answer(const ScriptedTrial& trial) {
  Rng rng = derived_rng(11, {static_cast<std::uint64_t>(trial.id), static_cast<std::uint64_t>(trial.steps),
                             static_cast<std::uint64_t>(trial.reports.size())});
  const double kind = uniform01(rng);
  Answer answer;
  answer.save = uniform01(rng) < 0.03;  // each one waits for the disk
  if (kind < 0.15) answer.kind = Answer::Kind::pause;
  if (kind > 0.9) answer.kind = Answer::Kind::stop;
  answer.again = kind > 0.95 && trial.reports.size() < 20;
  return answer;
}
inline Plan random_plan(int i) {
  Rng rng = derived_rng(12, {static_cast<std::uint64_t>(i)});
  Plan plan{.steps = static_cast<int>(uniform01(rng) * 8), .seed = i + 1};
  if (uniform01(rng) < 0.1) plan.throw_at = static_cast<int>(uniform01(rng) * 6) + Plan::when_made;
  if (uniform01(rng) < 0.5) plan.throwing_attempts = 1;
  return plan;
}

}  // namespace conformance

/// What one trial may do by itself or be told to do. `make` gives an executor that was not started.
template <class Make>
void executor_trial_laws(const Make& make, const ExecutorTraits& traits, Form form, ScriptedTuner::Answers answers) {
  using Kind = Answer::Kind;
  ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);

  SECTION("trials end by themselves, with and without reports") {
    for (int steps = 0; steps < 6; ++steps) tuner.add({.steps = steps, .seed = steps + 3});
    tuner.run();
    for (int steps = 0; steps < 6; ++steps) {
      CHECK(tuner[steps].finished == 1);
      CHECK(tuner[steps].reports.size() == static_cast<std::size_t>(steps));
      CHECK(tuner[steps].starts == std::vector{0});
    }
  }
  SECTION("what a trial throws is its failure's cause, wherever it throws; the others go on") {
    for (const int place : {Plan::when_decoded, Plan::when_made, 0, 2}) tuner.add({.steps = 4, .throw_at = place});
    tuner.add({.steps = 4, .throw_at = 1, .strange_error = 1});
    tuner.add({.steps = 4, .throw_at = 1, .strange_error = 2});
    tuner.add({.steps = 4});
    tuner.run();
    for (TrialId id = 0; id < 6; ++id) {
      INFO("trial " << id);
      REQUIRE(tuner[id].causes.size() == 1);
      CHECK(tuner[id].causes[0].source == FailureSource::user);
    }
    CHECK_THAT(tuner[0].causes[0].text, ContainsSubstring("boom when decoded"));
    CHECK_THAT(tuner[1].causes[0].text, ContainsSubstring("boom at -3"));
    CHECK_THAT(tuner[2].causes[0].text, ContainsSubstring("boom at 0"));
    CHECK_THAT(tuner[3].causes[0].text, ContainsSubstring("boom at 2"));
    CHECK(tuner[3].reports.size() == 2);
    CHECK(tuner[6].finished == 1);
  }
  SECTION("a failed trial is tried again, from its checkpoint where it has one") {
    tuner.attempts = 3;
    tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.id == 1 && t.steps == 2}; };
    tuner.add({.steps = 5, .throw_at = 3, .throwing_attempts = 2});
    tuner.add({.steps = 5, .throw_at = 3, .throwing_attempts = 1});
    tuner.add({.steps = 5, .throw_at = Plan::when_made, .throwing_attempts = 1});
    tuner.run();
    CHECK(tuner[0].finished == 1);
    CHECK(tuner[0].starts == std::vector{0, 0, 0});
    CHECK(tuner[1].finished == 1);
    CHECK(tuner[1].starts == std::vector{0, 2});
    CHECK(tuner[2].finished == 1);
  }
  SECTION("NaN and infinite values arrive as they are") {
    tuner.add({.steps = 3, .nan_at = 1});
    tuner.run();
    const auto& reports = tuner[0].reports;
    REQUIRE(reports.size() == 3);
    CHECK(std::isnan(*find_metric(reports[1].metrics, "value")));
    CHECK(*find_metric(reports[1].metrics, "inf") == -std::numeric_limits<double>::infinity());
    CHECK(*find_metric(reports[2].metrics, "value") == 1.0 / 3);
  }
  SECTION("a trial that numbers its steps is taken at its word") {
    tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.steps == 6}; };
    tuner.add({.steps = 8, .first_step = 5});
    tuner.run();
    REQUIRE(tuner[0].reports.size() == 3);
    CHECK(tuner[0].reports[0].step == 5);
    REQUIRE(tuner[0].sealed.size() == 1);
    CHECK(tuner[0].sealed[0].steps == 6);
  }
  SECTION("paused three times, and every step is done once") {
    tuner.decide = [](const ScriptedTrial& t) {
      return Answer{.kind = t.steps == 1 || t.steps == 2 || t.steps == 5 ? Kind::pause : Kind::proceed,
                    .save = t.id % 2 == 1};
    };
    for (int i = 0; i < 4; ++i) tuner.add({.steps = 6, .seed = 50 + i});
    tuner.run();
    for (TrialId id = 0; id < 4; ++id) {
      CHECK(tuner[id].finished == 1);
      CHECK(tuner[id].pauses == 3);
      CHECK(tuner[id].reports.size() == 6);  // none was done again: a run that was not kept had to save first
    }
  }
  SECTION("stopped while paused: it is gone, and the others go on") {
    tuner.resume_paused = false;
    tuner.decide = [](const ScriptedTrial& t) {
      return Answer{.kind = t.id == 0 && t.steps == 2 ? Kind::pause : Kind::proceed};
    };
    tuner.add({.steps = 4});
    tuner.run([&] { return tuner[0].pauses == 1 && tuner[0].phase == ScriptedTrial::Phase::paused; });
    tuner.stop(0);
    tuner.add({.steps = 4});
    tuner.run();
    CHECK(tuner[0].finished == 0);
    CHECK(tuner[1].finished == 1);
  }
  SECTION("saved on the way, stopped, and gone on with from there") {
    tuner.decide = [](const ScriptedTrial& t) {
      if (t.attempt > 0) return Answer{};
      return t.steps == 5 ? Answer{.kind = Kind::stop, .save = t.id == 1, .again = true} : Answer{.save = t.steps == 3};
    };
    tuner.add({.steps = 8, .seed = 4});
    tuner.add({.steps = 8, .seed = 5});
    tuner.run();
    CHECK(tuner[0].starts == std::vector{0, 3});
    CHECK(tuner[1].starts == std::vector{0, 5});
    for (TrialId id = 0; id < 2; ++id) {
      CHECK(tuner[id].finished == 1);
      CHECK(tuner[id].stopped == 1);
      for (const auto& info : tuner[id].sealed) CHECK(tuner.store().open(info).has("state"));
      CHECK(tuner.store().list(id) == tuner[id].sealed);
    }
  }
  SECTION("a damaged checkpoint is set aside, and the one before it, or the start, is used") {
    tuner.decide = [](const ScriptedTrial& t) {
      if (t.attempt > 0) return Answer{};
      return t.steps == 5 ? Answer{.kind = Kind::stop, .again = true} : Answer{.save = t.steps == 2 || t.steps == 4};
    };
    tuner.before_launch = [&](ScriptedTrial& t) {
      if (t.attempt != 0 || t.sealed.empty()) return;  // between the first attempt and the second
      for (const auto& info : t.sealed) {
        if (t.id == 0 && info != t.sealed.front()) continue;
        conformance::damage(tuner.store(), info);
        traits.damage_copies(info);
      }
    };
    tuner.add({.steps = 8, .seed = 6});
    tuner.add({.steps = 8, .seed = 7});
    tuner.run();
    CHECK(tuner[0].starts == std::vector{0, 2});
    CHECK(tuner[0].lost.size() == 1);
    CHECK(tuner[1].starts == std::vector{0, 0});
    CHECK(tuner[1].lost.size() == 2);
    CHECK(tuner.store().list(1).empty());
    CHECK(tuner[0].finished + tuner[1].finished == 2);
  }
  SECTION("an error while saving fails the attempt, and leaves no checkpoint") {
    tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.steps == 2}; };
    tuner.add({.steps = 4, .save_throws_at = 2});
    tuner.run();
    REQUIRE(tuner[0].causes.size() == 1);
    CHECK_THAT(tuner[0].causes[0].text, ContainsSubstring("boom while saving"));
    CHECK(tuner.store().list(0).empty());
  }
  SECTION("a checkpoint that was on its way comes before the failure") {
    tuner.attempts = 2;
    tuner.decide = [](const ScriptedTrial&) { return Answer{.save = true}; };
    for (int i = 0; i < 6; ++i) tuner.add({.steps = 4, .throw_at = 3, .throwing_attempts = 1, .seed = i + 1});
    tuner.run();
    for (TrialId id = 0; id < 6; ++id) CHECK(tuner[id].starts == std::vector{0, 3});
  }
  SECTION("a trial that cannot save goes on when it is asked to") {
    if (form != Form::coroutine) return;  // the classes of this suite can
    tuner.decide = [](const ScriptedTrial& t) {
      return Answer{.kind = t.id == 1 && t.steps == 2 ? Kind::stop : Kind::proceed, .save = true};
    };
    tuner.add({.steps = 4, .savable = false});
    tuner.add({.steps = 4, .savable = false});
    tuner.run();
    CHECK(tuner[0].finished == 1);
    CHECK(tuner[1].stopped == 1);
  }
  SECTION("commands for an attempt that is over are not obeyed") {
    tuner.decide = [](const ScriptedTrial& t) {
      return Answer{.kind = t.attempt == 0 && t.steps == 2 ? Kind::stop : Kind::proceed, .again = t.attempt == 0};
    };
    const auto id = tuner.add({.steps = 50});
    tuner.run([&] { return tuner[id].attempt == 1 && tuner[id].steps >= 1; });
    tuner.command(Stop{id, 0, true});
    tuner.command(Pause{id, 0, true});
    tuner.command(Continue{id, 0, false});
    tuner.command(Stop{99, 0, false});  // a trial that was never here
    tuner.run();
    CHECK(tuner[id].finished == 1);
    CHECK(tuner[id].stopped == 1);
    tuner.command(Stop{id, 1, false});
    tuner.command(Continue{id, 1, false});
  }
  tuner.shutdown();
  tuner.check();
}

/// Many trials and random decisions; ends at random moments; waiting.
template <class Make>
void executor_crowd_laws(const Make& make, const ExecutorTraits& traits, Form form, ScriptedTuner::Answers answers) {
  SECTION("many trials under random decisions keep every law") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);
    tuner.decide = conformance::random_answer;
    tuner.attempts = 2;
    tuner.stray_stops = 0.01;
    const bool first = form == Form::coroutine && answers == ScriptedTuner::Answers::within;
    for (int i = 0; i < (first ? traits.many : traits.many / 10); ++i) tuner.add(conformance::random_plan(i));
    tuner.run();
    tuner.shutdown();
    tuner.check();
    CHECK(Alive::count() == 0);
  }
  SECTION("after its shutdown it runs another experiment") {
    const AnyExecutor executor(conformance::made(make, form));
    for (int run = 0; run < 2; ++run) {
      INFO("run " << run);
      ScriptedTuner tuner(executor, planned_program(form), answers);
      for (int i = 0; i < 4; ++i) tuner.add({.steps = 3, .seed = i + 1});
      tuner.run();
      for (int i = 0; i < 4; ++i) CHECK(tuner[i].finished == 1);
      tuner.shutdown();
      tuner.check();
    }
  }
  SECTION("a shutdown at any moment leaves nothing behind, and no event comes after it") {
    {
      ScriptedTuner warm(conformance::made(make, form), planned_program(form));
    }  // what is made once in a process is no leak
    const auto threads = conformance::entries("/proc/self/task");
    const auto files = conformance::entries("/proc/self/fd");
    for (int moment = 0; moment < traits.shutdowns; ++moment) {
      INFO("moment " << moment);
      {
        ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers,
                            static_cast<std::uint64_t>(moment));
        tuner.decide = conformance::random_answer;
        for (int i = 0; i < 40; ++i) tuner.add(conformance::random_plan(moment * 40 + i));
        if (traits.concurrent) tuner.add({.steps = 3, .linger_at = 1});
        const auto enough = static_cast<std::uint64_t>(moment * moment);
        tuner.run([&] { return tuner.events() >= enough; });
        if (moment % 2 == 0) tuner.shutdown();  // else the destructor does
        tuner.check();
      }
      CHECK(Alive::count() == 0);
      CHECK(conformance::soon([&] { return conformance::entries("/proc/self/task") <= threads; }));
      CHECK(conformance::soon([&] { return conformance::entries("/proc/self/fd") <= files; }));
    }
  }
}

/// What is made of a class that can be reset, wherever it is made.
template <class Make>
void executor_object_laws(const Make& make, ScriptedTuner::Answers answers) {
  SECTION("an object that can be reset serves trial after trial, and each is destroyed when the executor ends") {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "objects";
    ::setenv("HYPERTUNE_TEST_OBJECTS", file.c_str(), 1);
    struct Unset {
      ~Unset() { ::unsetenv("HYPERTUNE_TEST_OBJECTS"); }
    } const unset;
    {
      ScriptedTuner tuner(conformance::made(make, Form::reusable), planned_program(Form::reusable), answers);
      tuner.decide = [](const ScriptedTrial& t) {
        return Answer{.kind = t.id % 3 == 1 && t.steps == 2 ? Answer::Kind::stop : Answer::Kind::proceed};
      };
      for (int i = 0; i < 24; ++i) tuner.add({.steps = 3, .seed = i + 1});
      tuner.run();
      tuner.shutdown();
      tuner.check();
    }
    std::ifstream in(file);
    const std::string seen{std::istreambuf_iterator<char>(in), {}};
    const auto count = [&](char what) { return std::count(seen.begin(), seen.end(), what); };
    INFO("made (+), reset (r), destroyed (-): " << seen);
    CHECK(count('+') + count('r') == 24);
    CHECK(count('r') >= 12);
    CHECK(count('-') == count('+'));
  }
}

/// What holds of trials of several workers, for an executor that runs them. `make` gives one of at least eight workers
/// that are never lost; `lossy` one that loses some of them, or whole hosts, now and then (nullptr: none are ever
/// lost).
template <class Make, class Lossy>
void executor_gang_conformance(const Make& make, const Lossy& lossy, int many = 300,
                               Combinations combinations = Combinations::all) {
  using Kind = Answer::Kind;
  const auto [form, answers] = conformance::combination(combinations);
  INFO("form " << static_cast<int>(form) << ", answers " << static_cast<int>(answers));
  const auto pausing = [](const ScriptedTrial& t) {
    Answer answer = conformance::random_answer(t);
    answer.workers = static_cast<int>(t.steps + t.id) % 7;
    return answer;
  };

  SECTION("workers are one attempt: each step is reported once, and there is one end") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);
    tuner.workers = {.min = 3};
    tuner.decide = [](const ScriptedTrial& t) {
      return Answer{.kind = t.id % 3 == 1 && t.steps == 2   ? Kind::pause
                            : t.id % 3 == 2 && t.steps == 3 ? Kind::stop
                                                            : Kind::proceed,
                    .save = t.steps == 2};
    };
    for (int i = 0; i < 9; ++i) tuner.add({.steps = 5, .seed = i + 1});
    tuner.add({.steps = 4, .throw_at = 2});
    tuner.run();
    for (TrialId id = 0; id < 9; ++id) {
      CHECK(tuner[id].finished + tuner[id].stopped == 1);
      CHECK(tuner[id].reports.size() == (id % 3 == 2 ? 3U : 5U));
      CHECK(tuner[id].pauses == (id % 3 == 1));
    }
    CHECK(tuner[9].causes.size() == 1);
    tuner.shutdown();
    tuner.check();
  }
  SECTION("a change of workers repeats no report and loses none") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);
    tuner.workers = {.min = 1, .max = 6};
    tuner.decide = [](const ScriptedTrial& t) { return Answer{.workers = t.steps % 2 == 0 ? 6 : 2}; };
    // Where steps take no time but workers begin in real time, few resizes fit into a trial.
    const int steps = tuner.executor().simulated() ? 8 : 200;
    for (int i = 0; i < 3; ++i) tuner.add({.steps = steps, .seed = i + 1});
    tuner.run();
    int resizes = 0;
    for (TrialId id = 0; id < 3; ++id) {
      CHECK(tuner[id].finished == 1);
      CHECK(tuner[id].reports.size() == static_cast<std::size_t>(steps));
      CHECK(tuner[id].starts == std::vector{0});
      resizes += tuner[id].resizes;
    }
    CHECK(resizes >= (tuner.executor().simulated() ? 6 : 2));
    tuner.shutdown();
    tuner.check();
  }
  SECTION("many trials of several workers under random decisions keep every law") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);
    tuner.workers = {.min = 2, .max = 6};
    tuner.decide = pausing;
    tuner.attempts = 2;
    tuner.stray_stops = 0.01;
    for (int i = 0; i < many; ++i) tuner.add(conformance::random_plan(i));
    tuner.run();
    tuner.shutdown();
    tuner.check();
    CHECK(Alive::count() == 0);
  }
  if constexpr (!std::is_null_pointer_v<Lossy>)
    SECTION("workers are lost: the others go on with the step that was under way, or the attempt ends once") {
      ScriptedTuner tuner(conformance::made(lossy, form), planned_program(form), answers);
      tuner.workers = {.min = 2, .max = 5};
      tuner.unreliable = true;
      tuner.attempts = 1000;
      tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.steps % 3 == 0, .workers = 5}; };
      constexpr int enough = 8;  // for one of them to live through a loss in one attempt, also on a busy machine
      for (int i = 0; i < std::max(many / 10, enough); ++i) tuner.add({.steps = 12, .seed = i + 1});
      tuner.run();
      int losses = 0, first = 0;
      for (std::size_t i = 0; i < tuner.size(); ++i) {
        const auto& trial = tuner[static_cast<TrialId>(i)];
        CHECK(trial.finished == 1);
        losses += trial.losses;
        first += trial.starts.size() == 1 && trial.losses > 0;
        if (trial.starts.size() == 1) CHECK(trial.reports.size() == 12);
      }
      CHECK(losses > 0);
      CHECK(first > 0);  // some of them have lived through it in one attempt
      tuner.shutdown();
      tuner.check();
    }
  SECTION("commands that name a generation, or an attempt, which is over are not obeyed") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form), answers);
    tuner.workers = {.min = 2};
    const auto id = tuner.add({.steps = 4});
    tuner.run();
    tuner.command(Resize{id, 0, Allocation{.generation = 1}, {0}});
    tuner.command(Resize{77, 0, Allocation{.generation = 1}, {0}});
    tuner.shutdown();
    tuner.check();
  }
}

template <class Make>
void executor_conformance(const Make& make, ExecutorTraits traits = {}) {
  const auto [form, answers] = conformance::combination(traits.combinations);
  INFO("form " << static_cast<int>(form) << ", answers " << static_cast<int>(answers));
  executor_trial_laws(make, traits, form, answers);
  executor_crowd_laws(make, traits, form, answers);
  if (form == Form::reusable) executor_object_laws(make, answers);

  if (form != Form::coroutine || answers != ScriptedTuner::Answers::within) return;
  SECTION("hosts have names and room, time does not run backwards, and a started executor has moved well") {
    AnyExecutor executor = conformance::made(make, form);
    const auto hosts = executor.hosts();
    REQUIRE_FALSE(hosts.empty());
    for (const auto& host : hosts) CHECK_FALSE(host.name.empty());
    const Seconds earlier = executor.now();
    CHECK(earlier <= executor.now());
    AnyExecutor moved = std::move(executor);
    ScriptedTuner tuner(std::move(moved), planned_program(form));
    tuner.add({});
    tuner.run();
  }
  SECTION("wait() returns at a notify(), also at one that came before it") {
    ScriptedTuner tuner(conformance::made(make, form), planned_program(form));
    auto& executor = tuner.executor();
    executor.notify();
    const auto begin = std::chrono::steady_clock::now();
    executor.wait(executor.now() + 1000);
    std::thread other([&] { executor.notify(); });
    if (traits.concurrent) executor.wait(executor.now() + 1000);
    other.join();
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  }
  if (traits.concurrent) {
    SECTION("a step under way is asked to stop, and the trial ends") {
      ScriptedTuner tuner(conformance::made(make, form), planned_program(form));
      tuner.add({.steps = 4, .linger_at = 0});
      tuner.add({.steps = 4, .linger_at = 2});
      tuner.run([&] { return tuner[0].starts.size() == 1 && tuner[1].reports.size() == 2; });
      tuner.stop(0);
      tuner.stop(1, true);
      tuner.run();
      CHECK(tuner[0].stopped + tuner[0].finished == 1);
      CHECK(tuner[1].stopped + tuner[1].finished == 1);
    }
  }
}

}  // namespace hypertune::inline v0::test
