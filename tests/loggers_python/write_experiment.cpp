// Writes an experiment whose every value the reader knows: journal, logs and export. With `judged`: many small ones in
// which it is not obvious what is best, with what Results says. Usage: … DIRECTORY [judged]
#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/detail/callbacks.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/jsonl_logger.hpp>
#include <hypertune/record/optuna_export.hpp>
#include <hypertune/record/tensorboard_logger.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;

namespace {

void write(const std::filesystem::path& directory) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  ht::Callbacks callbacks({ht::CsvLogger(), ht::JsonlLogger(), ht::TensorBoardLogger()},
                          [](const std::string& notice) { ht::fail(ht::Errc::io, "{}", notice); });
  callbacks.open(directory);
  std::vector<ht::Record> records;
  {
    auto journal = ht::Journal::open(directory);
    ht::Seconds time = 1'700'000'000;
    const auto add = [&](ht::record::Any what) {
      time += 0.25;
      records.push_back({journal.append(time, what), time, what});
    };
    add(ht::record::ExperimentStarted{
        "digits",
        {ht::maximize("accuracy")},
        "lr: {log_uniform: [0.0001, 0.1]}\nhidden: {log_int: [16, 512]}\n"
        "drop: {uniform: [0, 1], quantum: 0.25}\noptimizer: {choice: [sgd, \"a, \\\"b\\\"\"]}\n"
        "amp: {boolean: [false, true]}\nmomentum: {uniform: [0.5, 0.99], when: {optimizer: sgd}}\n"
        "noise: {normal: [0, 1]}\n",
        "random",
        "asha",
        "threads",
        6,
        1,
        false});
    for (ht::TrialId t = 0; t < 6; ++t) {
      ht::Params params{{"lr", 0.001 * static_cast<double>(t + 1)},
                        {"hidden", std::int64_t{16} << t},
                        {"drop", 0.25 * static_cast<double>(t % 4)},
                        {"optimizer", std::string(t % 2 == 0 ? "sgd" : "a, \"b\"")},
                        {"amp", t >= 3}};
      if (t % 2 == 0) params.set("momentum", 0.9);
      params.set("noise", static_cast<double>(t) - 2.5);
      add(ht::record::TrialCreated{t, {}, params, false});
    }
    for (ht::TrialId t = 0; t < 5; ++t) add(ht::record::TrialStarted{t, 0, 0, "here", {0}, {}});
    for (int step = 0; step < 4; ++step)
      for (ht::TrialId t = 0; t < 4; ++t) {
        ht::Metrics metrics{{"accuracy", t == 2 && step == 1   ? nan
                                         : t == 2 && step == 2 ? infinity
                                                               : 0.1 * step + 0.01 * static_cast<double>(t)}};
        if (step >= 2) metrics.emplace_back("loss, late", 1.0 / step);
        add(ht::record::TrialReported{t, 0, step, metrics});
      }
    add(ht::record::TrialEnded{0, ht::TrialState::completed, std::nullopt});
    add(ht::record::TrialEnded{1, ht::TrialState::stopped, ht::Cause{ht::FailureSource::user, "scheduler"}});
    add(ht::record::TrialEnded{2, ht::TrialState::completed, std::nullopt});
    add(ht::record::AttemptFailed{3, 0, ht::Cause{ht::FailureSource::user, "segfault \"in\" conv"}, false});
    add(ht::record::TrialEnded{3, ht::TrialState::failed, ht::Cause{ht::FailureSource::user, "segfault \"in\" conv"}});
    journal.flush();
  }
  callbacks.batch(records);
  ht::export_optuna(directory, directory / "optuna.db");
}

// Two objectives; trial 2 was ended by a stop condition, 3 by the scheduler.
void write_tradeoff(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  {
    auto journal = ht::Journal::open(directory);
    ht::Seconds time = 1'700'000'000;
    const auto add = [&](const ht::record::Any& what) { journal.append(time += 0.25, what); };
    add(ht::record::ExperimentStarted{"tradeoff",
                                      {ht::maximize("accuracy"), ht::minimize("latency")},
                                      "width: {log_int: [16, 512]}\nkind: {choice: [a, b]}\n",
                                      "random",
                                      "asha",
                                      "threads",
                                      5,
                                      1,
                                      false});
    const std::pair<double, double> values[] = {{0.9, 20}, {0.8, 5}, {0.95, 30}, {0.1, 50}, {0.2, 60}};
    for (ht::TrialId t = 0; t < 5; ++t) {
      add(ht::record::TrialCreated{
          t, {}, ht::Params{{"width", std::int64_t{16} << t}, {"kind", std::string(t % 2 == 0 ? "a" : "b")}}, false});
      add(ht::record::TrialStarted{t, 0, 0, "here", {0}, {}});
      add(ht::record::TrialReported{t, 0, 0,
                                    ht::Metrics{{"accuracy", values[t].first}, {"latency", values[t].second}}});
    }
    add(ht::record::TrialEnded{0, ht::TrialState::completed, std::nullopt});
    add(ht::record::TrialEnded{1, ht::TrialState::completed, std::nullopt});
    add(ht::record::TrialEnded{2, ht::TrialState::stopped,
                               ht::Cause{ht::FailureSource::user, "accuracy reached 0.95"}});
    add(ht::record::TrialEnded{3, ht::TrialState::stopped, ht::Cause{ht::FailureSource::user, "scheduler"}});
    add(ht::record::TrialEnded{4, ht::TrialState::failed, ht::Cause{ht::FailureSource::user, "boom"}});
    journal.flush();
  }
  ht::export_optuna(directory, directory / "optuna.db");
}

// What a trace has: two hosts, a trial of two workers that is resized, one that is paused and goes on elsewhere, one
// that takes over another's state, a driver that was killed, notes.
void write_places(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  auto journal = ht::Journal::open(directory);
  const auto at = [&](ht::Seconds time, const ht::record::Any& what) { journal.append(1'700'000'000 + time, what); };
  ht::record::ExperimentStarted started{
      "places", {ht::minimize("loss")}, "lr: {uniform: [0, 1]}\n", "random", "pbt", "ssh", 3, 1, false};
  at(0, started);
  at(0, ht::record::HostGained{"a"});
  at(0.5, ht::record::HostGained{"b \"two\""});
  for (ht::TrialId t = 0; t < 3; ++t)
    at(1, ht::record::TrialCreated{t, {}, ht::Params{{"lr", 0.25 * double(t)}}, false});
  at(2, ht::record::TrialStarted{0, 0, 0, "a", {0}, {}});
  at(2, ht::record::TrialStarted{1, 0, 0, "a", {1}, {0}, {{"b \"two\"", {0}, {}}}});
  at(3, ht::record::TrialReported{0, 0, 0, {{"loss", 1.0}}});
  at(3.5, ht::record::TrialCheckpointed{0, {0, 1, "c0", 100, "d"}});
  at(4, ht::record::TrialPaused{0});
  at(4, ht::record::TrialReported{1, 0, 0, {{"loss", 0.5}, {"size", 3}}});
  at(4.5, ht::record::TrialResized{1, 0, 1, {{"a", {1}, {0}}}, "host b is gone", {"b \"two\""}});
  at(4.5, ht::record::HostLost{"b \"two\"", "no route"});
  at(5, ht::record::TrialStarted{2, 0, 0, "a", {0}, {}});
  at(6, ht::record::AttemptFailed{2, 0, ht::Cause{ht::FailureSource::user, "out of \"memory\""}, true});
  at(6, ht::record::HostGained{"c"});
  at(7, ht::record::TrialStarted{0, 1, 1, "c", {0}, {}});
  at(8, ht::record::TrialReported{1, 0, 1, {{"loss", 0.25}}});
  at(8.5, ht::record::AttributesSet{-1, ht::Attributes{{"who", std::string("me")}}});
  at(8.5, ht::record::AttributesSet{1, ht::Attributes{{"good", true}, {"score", 2.5}}});
  // killed here
  started.resumed = true;
  at(100, started);
  at(101, ht::record::TrialExploited{2, 0, {0, 1, "c0", 100, "d"}, {}, ht::Params{{"lr", 0.75}}});
  at(102, ht::record::TrialStarted{2, 1, 1, "a", {0}, {}});
  at(103, ht::record::TrialReported{2, 1, 1, {{"loss", std::numeric_limits<double>::quiet_NaN()}}});
  at(104,
     ht::record::TrialEnded{2, ht::TrialState::stopped, ht::Cause{ht::FailureSource::user, "stopped by the user"}});
  at(105, ht::record::ExperimentEnded{true, "interrupted"});
  journal.flush();
}

// Values that a JSON number, or a number in a table, cannot hold are among these: the reader knows the list.
const std::vector<ht::Value>& choices() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  static const std::vector<ht::Value> list{std::int64_t{1},
                                           2.5,
                                           nan,
                                           infinity,
                                           -infinity,
                                           std::string("NaN"),
                                           std::string("x"),
                                           true,
                                           std::int64_t{9'007'199'254'740'993},
                                           3.0};
  return list;
}

// A random experiment: one objective or two, up to two constraints whose metrics not all reports have, infinite values
// and NaN, trials that end in every way.
void write_judged(const std::filesystem::path& directory, unsigned seed) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  const auto value = [&] {
    const int kind = below(12);
    return kind == 0 ? nan : kind == 1 ? infinity : kind == 2 ? -infinity : 0.5 * below(9);
  };
  ht::record::ExperimentStarted started{"judged", {}, "", "random", "asha", "threads", 0, seed, false};
  for (int i = 0; i <= below(2); ++i)
    started.objectives.push_back({i == 0 ? "a" : "b", below(2) == 0 ? ht::Mode::minimize : ht::Mode::maximize});
  const int constraints = below(3);
  for (int i = 0; i < constraints; ++i)
    started.constraints.push_back({i == 0 ? "c" : "d", below(2) == 0 ? ht::Mode::minimize : ht::Mode::maximize, 2});
  if (below(2) == 0) started.space = "choice: {choice: [1, 2.5, nan, inf, x]}\n";
  const int knows = below(4);  // how often a constraint is known
  std::filesystem::create_directories(directory);
  {
    auto journal = ht::Journal::open(directory);
    ht::Seconds time = 1'700'000'000;
    const auto add = [&](const ht::record::Any& what) { journal.append(time += 0.25, what); };
    add(started);
    const int trials = seed % 10 == 0 ? 90 : 1 + below(9);
    for (ht::TrialId t = 0; t < trials; ++t) {
      const auto& choice = choices()[static_cast<std::size_t>(t) % choices().size()];
      add(ht::record::TrialCreated{t, {}, ht::Params{{"choice", choice}, {"late", t == 80 ? nan : 0.25 * double(t)}}});
      add(ht::record::TrialStarted{t, 0, 0, "here", {0}, {}});
      const int reports = below(5);
      for (int step = 0; step < reports; ++step) {
        ht::Metrics metrics;
        for (const auto& objective : started.objectives)
          if (below(8) > 0) metrics.emplace_back(objective.metric, value());
        for (const auto& bound : started.constraints)
          if (below(4) < knows) metrics.emplace_back(bound.metric, value());
        add(ht::record::TrialReported{t, 0, step, metrics});
      }
      const auto ended = [&](ht::TrialState state, const char* cause) {
        add(ht::record::TrialEnded{t, state, ht::Cause{ht::FailureSource::user, cause}});
      };
      switch (below(5)) {
        case 0: ended(ht::TrialState::stopped, "stopped by asha at rung 1"); break;
        case 1: ended(ht::TrialState::stopped, "a reached 1"); break;
        case 2: ended(ht::TrialState::failed, "boom"); break;
        default: add(ht::record::TrialEnded{t, ht::TrialState::completed, std::nullopt});
      }
    }
    journal.flush();
  }
  ht::export_optuna(directory, directory / "optuna.db");
  const auto results = ht::Results::read(directory);
  const auto best = started.objectives.size() == 1 ? results.find_best() : std::nullopt;
  const auto front = started.objectives.size() == 1 ? std::vector<ht::TrialId>() : ht::pareto_front(results);
  const bool feasible = std::ranges::any_of(front, [&](ht::TrialId trial) {
    return std::ranges::all_of(results.excesses(trial), [](double excess) { return excess <= 0; });
  });
  std::ofstream(directory / "expected.json") << fmt::format(
      R"({{"objectives": {}, "constraints": {}, "trials": {}, "best": {}, "known": {}, "met": {}, "front": [{}]}})",
      started.objectives.size(), started.constraints.size(), results.size(),
      best ? fmt::to_string(best->trial) : "null", best && best->feasible,
      best ? best->feasible.value_or(false) : feasible, fmt::join(front, ", "));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3) {
      for (unsigned seed = 0; seed < 150; ++seed)
        write_judged(std::filesystem::path(argv[1]) / fmt::to_string(seed), seed);
      return 0;
    }
    if (argc != 2) ht::fail(ht::Errc::usage, "usage: {} DIRECTORY [judged]", argv[0]);
    write(argv[1]);
    write_tradeoff(std::filesystem::path(argv[1]) / "tradeoff");
    write_places(std::filesystem::path(argv[1]) / "places");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
