#include "ipc_file.hpp"

#include <hypertune/error.hpp>
#include <hypertune/record/arrow_export.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <unordered_map>
#include <variant>

namespace hypertune::inline v0 {

namespace {

namespace ar = detail::arrow;
using ar::Column;
using ar::Type;

// Rows of a batch, chosen so that a batch has at most 16 MiB.
std::size_t batch_rows(std::size_t columns) {
  return std::clamp<std::size_t>((std::size_t{1} << 24U) / (9 * columns), 1024, 65536);
}

void append_time(Column& column, Seconds time) {
  constexpr double most = 9e12;  // seconds; more microseconds do not fit into an int64
  if (std::isfinite(time) && std::fabs(time) < most)
    column.append(static_cast<std::int64_t>(std::llround(time * 1e6)));
  else
    column.append_null();
}
void append_time(Column& column, const std::optional<Seconds>& time) {
  time ? append_time(column, *time) : column.append_null();
}
template <class T>
void append(Column& column, const std::optional<T>& value) {
  value ? column.append(*value) : column.append_null();
}

ar::Metadata metadata_of(const ExperimentInfo& info) {
  std::string objectives;
  for (const auto& objective : info.objectives)
    objectives += fmt::format("{}{} {}", objectives.empty() ? "" : ", ", to_string(objective.mode), objective.metric);
  ar::Metadata out{{"name", info.name},       {"objectives", objectives},   {"space", info.space},
                   {"search", info.searcher}, {"schedule", info.scheduler}, {"made_by", "hypertune"}};
  for (const auto& [name, value] : info.attributes) out.emplace_back("attribute_" + name, to_string(value));
  return out;
}

void write_reports(const Results& results, const std::filesystem::path& file) {
  std::vector<Column> columns{{"sequence", Type::int64},
                              {"time", Type::timestamp},
                              {"trial", Type::int64},
                              {"attempt", Type::int32},
                              {"step", Type::int32}};
  const std::size_t first = columns.size();
  std::unordered_map<std::string, std::size_t> place;
  for (const auto& name : results.metrics()) {
    place[name] = columns.size();
    columns.emplace_back("metrics_" + name, Type::float64);
  }
  ar::IpcFile out(file, columns, metadata_of(results.experiment()));
  const std::size_t most = batch_rows(columns.size());
  std::size_t rows = 0;
  std::vector<const double*> values(columns.size());
  read_journal(results.directory(), [&](const Record& record) {
    if (record.sequence > results.experiment().records) return false;
    const auto* report = std::get_if<record::TrialReported>(&record.what);
    if (report == nullptr) return true;
    columns[0].append(record.sequence);
    append_time(columns[1], record.time);
    columns[2].append(report->trial);
    columns[3].append(static_cast<std::int64_t>(report->attempt));
    columns[4].append(std::int64_t{report->step});
    std::fill(values.begin(), values.end(), nullptr);
    for (const auto& [name, value] : report->metrics)
      if (const auto found = place.find(name); found != place.end()) values[found->second] = &value;
    for (std::size_t i = first; i < columns.size(); ++i)
      values[i] != nullptr ? columns[i].append(*values[i]) : columns[i].append_null();
    if (++rows == most) {
      out.write(columns);
      rows = 0;
    }
    return true;
  });
  if (rows > 0) out.write(columns);
  out.finish(columns);
}

// Columns for values that trials have by name: parameters, attributes.
class ValueColumns {
 public:
  template <class Pairs>
  void learn(const Pairs& pairs) {
    for (const auto& [name, value] : pairs) {
      const auto [found, added] = kinds_.try_emplace(name, 0);
      if (added) names_.push_back(name);
      found->second |= 1U << value.index();
      if (const auto* whole = std::get_if<std::int64_t>(&value);
          whole != nullptr && !detail::converted_exactly<double>(*whole))
        found->second |= inexact;
    }
  }
  void make(const std::string& prefix, std::vector<Column>& columns) {
    first_ = columns.size();
    for (const auto& name : names_) columns.emplace_back(prefix + name, type_of(kinds_[name]));
  }
  template <class Pairs>
  void append(const Pairs& pairs, std::vector<Column>& columns) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      Column& column = columns[first_ + i];
      const Value* value = pairs.find(names_[i]);
      if (value == nullptr)
        column.append_null();
      else if (column.type() == Type::text)
        column.append(std::string_view(to_string(*value)));
      else if (const auto* flag = std::get_if<bool>(value))
        column.append(*flag);
      else if (const auto* whole = std::get_if<std::int64_t>(value))
        column.type() == Type::int64 ? column.append(*whole) : column.append(static_cast<double>(*whole));
      else
        column.append(std::get<double>(*value));
    }
  }

 private:
  static Type type_of(unsigned kinds) {
    const unsigned flag = 1U << Value(true).index(), whole = 1U << Value(std::int64_t{0}).index(),
                   real = 1U << Value(0.0).index();
    if (kinds == flag) return Type::boolean;
    if ((kinds & ~inexact) == whole) return Type::int64;
    return (kinds & ~(whole | real)) == 0 ? Type::float64 : Type::text;
  }
  static constexpr unsigned inexact = 1U << std::variant_size_v<Value>;  // a whole number that no double is
  std::map<std::string, unsigned> kinds_;
  std::vector<std::string> names_;
  std::size_t first_ = 0;
};

void write_trials(const Results& results, const std::filesystem::path& file) {
  const auto& info = results.experiment();
  std::vector<Column> columns{{"trial", Type::int64},     {"state", Type::text},        {"steps", Type::int32},
                              {"attempts", Type::int32},  {"created", Type::timestamp}, {"started", Type::timestamp},
                              {"ended", Type::timestamp}, {"duration", Type::float64},  {"best_step", Type::int32}};
  for (const auto& objective : info.objectives)
    columns.emplace_back("best_" + detail::metric_key(objective.metric), Type::float64);
  if (!info.constraints.empty()) columns.emplace_back("feasible", Type::boolean);
  ValueColumns params, attributes;
  for (const TrialResult& trial : results.trials()) {
    params.learn(trial.params);
    attributes.learn(trial.attributes);
  }
  params.make("params_", columns);
  for (const auto& name : results.metrics()) columns.emplace_back("metrics_" + name, Type::float64);
  attributes.make("attributes_", columns);
  columns.emplace_back("failures", Type::int64);
  columns.emplace_back("cause", Type::text);
  ar::IpcFile out(file, columns, metadata_of(info));
  const std::size_t most = std::min<std::size_t>(batch_rows(columns.size()), 16384);  // texts of 4 KiB stay below 2 GiB
  std::size_t rows = 0;
  for (const TrialResult& trial : results.trials()) {
    std::size_t i = 0;
    columns[i++].append(trial.trial);
    columns[i++].append(std::string_view(to_string(trial.state)));
    columns[i++].append(std::int64_t{trial.steps});
    columns[i++].append(std::int64_t{trial.attempts});
    append_time(columns[i++], trial.created);
    append_time(columns[i++], trial.started);
    append_time(columns[i++], trial.ended);
    append(columns[i++], trial.duration);
    trial.best ? columns[i++].append(std::int64_t{trial.best->step}) : columns[i++].append_null();
    for (const auto& objective : info.objectives) {
      const auto best = results.best_report(trial.trial, objective);
      best ? columns[i++].append(best->value) : columns[i++].append_null();
    }
    if (!info.constraints.empty()) append(columns[i++], trial.feasible);
    params.append(trial.params, columns);
    i = columns.size() - 2;
    columns[i].append(std::int64_t{trial.failure_count()});
    trial.cause ? columns[i + 1].append(std::string_view(trial.cause->text)) : columns[i + 1].append_null();
    for (const auto& name : results.metrics()) {
      Column& column = *std::find_if(columns.begin(), columns.end(),
                                     [&](const Column& each) { return each.name() == "metrics_" + name; });
      const double* value = find_metric(trial.metrics, name);
      value != nullptr ? column.append(*value) : column.append_null();
    }
    attributes.append(trial.attributes, columns);
    if (++rows == most) {
      out.write(columns);
      rows = 0;
    }
  }
  if (rows > 0) out.write(columns);
  out.finish(columns);
}

}  // namespace

void export_arrow(const std::filesystem::path& directory, const std::filesystem::path& folder) {
  const Results results = Results::read(directory);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", folder.string(), error.message());
  const auto make = [&](const char* name, const auto& write) {
    const auto file = folder / name, aside = folder / (std::string(name) + ".new");
    if (std::filesystem::exists(file))
      fail(Errc::usage, "'{}' exists already: remove it, or name another folder", file.string());
    try {
      write(results, aside);
      std::filesystem::rename(aside, file);
    } catch (...) {
      std::filesystem::remove(aside, error);
      throw;
    }
  };
  make("reports.arrow", write_reports);
  make("trials.arrow", write_trials);
}

}  // namespace hypertune::inline v0
