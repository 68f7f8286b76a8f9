#include "study.hpp"

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/import.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/space/detail/grammar.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <utility>

namespace hypertune::inline v0 {

namespace detail::import {

namespace {

ForeignStudy read(const std::filesystem::path& source, const ImportOptions& options) {
  if (std::filesystem::is_directory(source)) return read_ray(source, options);
  std::ifstream in(source, std::ios::binary);
  if (!in) fail(Errc::input, "there is no file or folder '{}'", source.string());
  std::string start(16, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (start.starts_with("SQLite format 3")) {
    try {
      return read_optuna_sqlite(source, options);
    } catch (const Error& error) {  // whose message is about a Journal
      if (error.code() != Errc::corrupt) throw;
    }
    fail(Errc::input, "'{}' is damaged: it begins as an SQLite database, but cannot be read as one", source.string());
  }
  if (start.starts_with('{')) return read_optuna_journal(source, options);
  fail(Errc::input,
       "'{}' is neither a storage of Optuna (SQLite, or a file of its JournalStorage) nor a folder of Ray Tune",
       source.string());
}

/// Sets when each trial began and ended: if unknown, near the times that are known.
void settle_times(ForeignStudy& study) {
  Seconds known = 0;
  for (const auto& trial : study.trials)
    if (trial.started && (known == 0 || *trial.started < known)) known = *trial.started;
  for (auto& trial : study.trials) {
    if (!trial.started) trial.started = trial.ended.value_or(known);
    trial.ended = std::max(trial.ended.value_or(*trial.started), *trial.started);
    const auto count = static_cast<double>(trial.reports.size());
    Seconds last = *trial.started;
    for (std::size_t i = 0; i < trial.reports.size(); ++i) {
      auto& time = trial.reports[i].time;
      if (!time) time = *trial.started + (*trial.ended - *trial.started) * static_cast<double>(i + 1) / count;
      last = time.emplace(std::max(*time, last));
    }
    trial.ended = std::max(*trial.ended, last);
  }
  if (!study.numbered)
    hypertune::detail::stable_sort(
        study.trials.begin(), study.trials.end(),
        [](const ForeignTrial& a, const ForeignTrial& b) { return *a.started < *b.started; });
  // One that began later than the next ones had waited since its creation.
  Seconds next = std::numeric_limits<Seconds>::infinity();
  for (auto trial = study.trials.rbegin(); trial != study.trials.rend(); ++trial)
    trial->created = next = std::min(next, *trial->started);
}

std::string space_text(const ForeignStudy& study) {
  std::string text;
  for (const auto& [name, domain] : study.space) text += hypertune::detail::scalar_text(name) + ": " + domain + "\n";
  return text;
}

// A line break in a name would break tables.
std::string plain_name(std::string name) {
  for (char& c : name)
    if (hypertune::detail::is_control(c)) c = '_';
  return name;
}

Attributes plain_names(const Attributes& attributes) {
  Attributes plain;
  for (const auto& [name, value] : attributes) plain.set(plain_name(name), value);
  return plain;
}

void make_names_plain(ForeignStudy& study) {
  for (auto& objective : study.objectives) objective.metric = plain_name(std::move(objective.metric));
  for (auto& bound : study.constraints) bound.metric = plain_name(std::move(bound.metric));
  study.attributes = plain_names(study.attributes);
  for (auto& trial : study.trials) {
    trial.attributes = plain_names(trial.attributes);
    for (auto& report : trial.reports)
      for (auto& metric : report.metrics) metric.first = plain_name(std::move(metric.first));
  }
}

struct Event {
  Seconds time;
  record::Any what;
};

void add_trial(std::vector<Event>& events, TrialId id, ForeignTrial& trial, const char* name_attribute) {
  const Seconds start = *trial.started, end = *trial.ended;
  events.push_back({trial.created, record::TrialCreated{id, {}, std::move(trial.params), false}});
  trial.attributes.set(name_attribute, std::move(trial.name));
  events.push_back({trial.created, record::AttributesSet{id, std::move(trial.attributes)}});
  Attempt attempt = 0;
  for (auto& cause : trial.retried) {  // whose reports the later attempts have replaced
    events.push_back({start, record::TrialStarted{id, attempt, 0, "", {}, {}}});
    events.push_back(
        {start, record::AttemptFailed{id, attempt, Cause{FailureSource::user, std::move(cause), false}, true}});
    ++attempt;
  }
  events.push_back({start, record::TrialStarted{id, attempt, 0, "", {}, {}}});
  for (auto& report : trial.reports)
    events.push_back({*report.time, record::TrialReported{id, attempt, report.step, std::move(report.metrics)}});
  std::optional<Cause> cause;
  if (*trial.state != TrialState::completed) cause = Cause{FailureSource::user, trial.cause, false};
  if (*trial.state == TrialState::failed) events.push_back({end, record::AttemptFailed{id, attempt, *cause, false}});
  events.push_back({end, record::TrialEnded{id, *trial.state, std::move(cause)}});
}

}  // namespace

}  // namespace detail::import

Imported import_experiment(const std::filesystem::path& source, const std::filesystem::path& directory,
                           const ImportOptions& options) {
  namespace in = detail::import;
  if (has_journal(directory))
    fail(Errc::usage, "there is an experiment in '{}' already: name another folder", directory.string());
  in::ForeignStudy study = in::read(source, options);
  Imported out;
  out.what = study.what;
  out.trials = study.trials.size();
  std::erase_if(study.trials, [](const auto& trial) { return !trial.state; });
  out.left_out = out.trials - study.trials.size();
  out.trials = study.trials.size();
  out.damaged = study.damaged;
  out.damage = study.damage;
  out.earlier = study.earlier;
  if (study.trials.empty()) fail(Errc::input, "'{}' has no trial that has ended", source.string());
  in::make_names_plain(study);
  in::settle_times(study);
  const Seconds begin = study.trials.front().created;
  std::vector<in::Event> events;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    in::add_trial(events, static_cast<TrialId>(i), study.trials[i], study.name_attribute);
  hypertune::detail::stable_sort(events.begin(), events.end(),
                                 [](const in::Event& a, const in::Event& b) { return a.time < b.time; });
  const Seconds end = events.back().time;
  Journal journal = Journal::open(directory);
  journal.append(begin,
                 record::ExperimentStarted{study.name, study.objectives, in::space_text(study), study.searcher, "", "",
                                           static_cast<std::int64_t>(out.trials), 0, false, study.constraints});
  study.attributes.set("imported_from", source.string());
  journal.append(begin, record::AttributesSet{-1, std::move(study.attributes)});
  for (auto& event : events) journal.append(event.time, std::move(event.what));
  journal.append(end, record::ExperimentEnded{false, "imported"});
  journal.flush();
  return out;
}

}  // namespace hypertune::inline v0
