// Experiments of the tests that disturb hosts, and what has to be true of their results however disturbed they were.
#pragma once

#include "agent/test_programs.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/detail/journal_reader.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>

namespace hypertune::inline v0::test {

inline Options experiment(const std::filesystem::path& output, AnyExecutor executor) {
  Options o;
  o.metric = "accuracy";
  o.mode = Mode::maximize;
  o.executor = std::move(executor);
  o.ordered = true;
  o.concurrency = 4;  // each host has room for all of them
  o.checkpoint = {.every = 5, .keep = 2};
  o.output = output;
  o.display = Display::quiet;
  o.handle_signals = false;
  o.seed = 5;
  return o;
}
inline Options asha(const std::filesystem::path& output, AnyExecutor executor) {
  auto o = experiment(output, std::move(executor));
  o.samples = 40;
  o.schedule = Asha{.grace_period = 3, .max_steps = 81, .reduction_factor = 3};
  return o;
}
inline Options pbt(const std::filesystem::path& output, AnyExecutor executor) {
  auto o = experiment(output, std::move(executor));
  o.samples = 4;
  o.schedule = Pbt{.perturbation_interval = 4, .max_steps = 24, .quantile_fraction = 0.5};
  return o;
}

inline Results run(Options options) { return tune(Learner::search_space(), learner_program(), std::move(options)); }

/// Everything about the trials that does not depend on where and when they ran.
inline std::string fingerprint(const Results& results) {
  std::string text;
  for (const auto& trial : results.trials()) {
    text += fmt::format("{} {} {}", trial.trial, static_cast<int>(trial.state), trial.steps);
    for (const auto& [name, value] : trial.metrics) text += fmt::format(" {}={}", name, value);
    text += fmt::format(" x={}\n", trial.params.get<double>("x"));
  }
  return text;
}

/// What happened to the trials beside their steps, for who looks for the reason of a difference.
inline std::string story_of(const std::filesystem::path& directory) {
  std::string text;
  read_journal(directory, [&](const Record& record) {
    if (const auto* e = std::get_if<record::TrialExploited>(&record.what))
      text += fmt::format("{} takes over {} after {} steps\n", e->trial, e->checkpoint.trial, e->checkpoint.steps);
    if (const auto* e = std::get_if<record::TrialStarted>(&record.what))
      text += fmt::format("{}.{} starts on {} at {}\n", e->trial, e->attempt, e->host, e->next_step);
    if (const auto* e = std::get_if<record::AttemptFailed>(&record.what))
      text += fmt::format("{}.{} fails: {}\n", e->trial, e->attempt, e->cause.text);
    if (const auto* e = std::get_if<record::TrialEnded>(&record.what))
      text += fmt::format("{} ends{}\n", e->trial, e->cause ? ": " + e->cause->text : "");
    if (const auto* e = std::get_if<record::TrialPaused>(&record.what)) text += fmt::format("{} is paused\n", e->trial);
    if (const auto* e = std::get_if<record::HostLost>(&record.what))
      text += fmt::format("{} is lost: {}\n", e->host, e->why);
    if (const auto* e = std::get_if<record::HostGained>(&record.what)) text += fmt::format("{} is there\n", e->host);
  });
  return text;
}

inline std::string story(const Results& results) { return story_of(results.directory()); }

/// Steps that are recorded; 0 also where nothing is yet.
inline int reports(const std::filesystem::path& directory) {
  int count = 0;
  try {
    read_journal(directory, [&](const Record& record) {
      count += std::holds_alternative<record::TrialReported>(record.what) ? 1 : 0;
    });
  } catch (const Error&) {}
  return count;
}

/// No step was recorded twice; one that took over another one's state goes on from there.
inline void check_reports(const Results& results) {
  std::map<TrialId, int> expected;
  read_journal(results.directory(), [&](const Record& record) {
    if (const auto* mutated = std::get_if<record::TrialExploited>(&record.what))
      expected[mutated->trial] = mutated->checkpoint.steps;
    if (const auto* reported = std::get_if<record::TrialReported>(&record.what)) {
      CHECK(reported->step == expected[reported->trial]);
      expected[reported->trial] = reported->step + 1;
    }
  });
}

}  // namespace hypertune::inline v0::test
