// Writes an experiment whose every value the reader knows: journal, logs and export. Usage: … DIRECTORY
#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/jsonl_logger.hpp>
#include <hypertune/record/optuna_export.hpp>
#include <hypertune/record/tensorboard_logger.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
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

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) ht::fail(ht::Errc::usage, "usage: {} DIRECTORY", argv[0]);
    write(argv[1]);
    write_tradeoff(std::filesystem::path(argv[1]) / "tradeoff");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
