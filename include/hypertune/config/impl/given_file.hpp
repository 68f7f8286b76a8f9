// Files that `start_with` and `known` of a sweep name: definitions.
#pragma once

#include <hypertune/config/given_file.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/sweep_keys.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/record/detail/csv_line.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

/// Whether a trial of this state has a result, whoever wrote it: hypertune or Optuna.
inline bool has_result(std::string state) {
  for (char& c : state)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return state == "completed" || state == "stopped" || state == "complete" || state == "pruned";
}

class GivenReader {
 public:
  static constexpr std::size_t max_bytes = std::size_t{256} << 20U, max_rows = 1'000'000;

  GivenReader(const GivenFor& wanted, std::string name) : wanted_(wanted), name_(std::move(name)) {}

  std::vector<KnownResult> take() { return std::move(rows_); }

  void experiment(const std::filesystem::path& folder) {
    const Results results = Results::read(folder);
    for (const TrialResult& trial : results.trials()) {
      if (wanted_.results && !has_result(to_string(trial.state))) continue;
      const std::string where = fmt::format("{}: trial {}", name_, trial.trial);
      if (wanted_.results && std::any_of(wanted_.objectives.begin(), wanted_.objectives.end(), [&](const auto& each) {
            return find_metric(trial.metrics, each.metric) == nullptr;
          }))
        continue;  // stopped before it reported
      add(where, {.params = trial.params, .metrics = trial.metrics, .steps = std::max(trial.steps, 1)});
    }
  }

  // --- JSON

  void json_lines(std::string_view text) {
    int line = 0;
    while (!text.empty()) {
      std::string_view row = take_until(text, '\n');
      ++line;
      constexpr std::string_view blank = " \t\r";
      row.remove_prefix(std::min(row.find_first_not_of(blank), row.size()));
      while (!row.empty() && (blank.find(row.back()) != blank.npos || row.back() == ',')) row.remove_suffix(1);
      if (row.empty() || row == "[" || row == "]") continue;  // a list with an object on each line
      if (!row.starts_with('{') || !row.ends_with('}'))
        fail(Errc::input, "{}:{}: this is no line with one JSON object: {{\"params\": {{…}}}}", name_, line);
      json_row(load_yaml_text(row, name_, line));
    }
  }

  // --- CSV

  void csv(std::string_view text) {
    std::string last;
    if (!text.ends_with('\n')) text = last = std::string(text) + '\n';
    int line = 1;
    bool header = true;
    while (!text.empty()) {
      auto row = csv_line(text);
      if (!row) fail(Errc::input, "{}:{}: a quote is opened here and never closed", name_, line);
      const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(row->second), '\n');
      const bool empty = row->first.size() == 1 && row->first.front().empty();
      if (std::exchange(header, header && empty) && !empty)
        csv_header(row->first);
      else if (!empty)
        csv_row(row->first, line);
      line += static_cast<int>(lines);
      text.remove_prefix(row->second);
    }
    if (header)
      fail(Errc::input, "{}:1: there is no header: write the names of the columns into the first line", name_);
  }

 private:
  using Place = std::optional<std::size_t>;

  void add(const std::string& where, KnownResult row) {
    if (rows_.size() == max_rows) fail(Errc::input, "{}: there are more than {} rows", where, max_rows);
    try {
      row.params = wanted_.space.params(wanted_.space.configuration(row.params));
    } catch (const Error& error) { fail(Errc::input, "{}: {}", where, error.what()); }
    rows_.push_back(std::move(row));
  }

  // A number as hypertune writes it in JSON, or as pandas does in CSV.
  static std::optional<double> number(const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      if (*text == "NaN" || *text == "nan") return std::numeric_limits<double>::quiet_NaN();
      for (const auto& [word, meant] :
           {std::pair("inf", infinity), {"Infinity", infinity}, {"-inf", -infinity}, {"-Infinity", -infinity}})
        if (*text == word) return meant;
      return std::nullopt;
    }
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
    return detail::number(value);
  }

  void json_row(const Node& node) {
    const bool exported = node.has("trial") && node.has("state");  // a line of `hypertune results --format json`
    const bool nested = wanted_.results || exported || (node.has("params") && node["params"].is_map());
    if (exported && wanted_.results && !has_result(node["state"].as<std::string>())) return;
    if (nested && !exported) check_keys(node, known_keys());
    KnownResult row;
    for (const auto& [name, value] : (nested ? node["params"] : node).entries()) row.params.set(name, value.scalar());
    if (wanted_.results) {
      for (const auto& [name, value] : node["metrics"].entries()) {
        if (exported && value.is_null()) continue;
        const auto metric = value.is_scalar() ? number(value.scalar()) : std::nullopt;
        if (!metric) value.fail("{} must be a number, not {}", value.title(), value.kind_text());
        row.metrics.emplace_back(name, *metric);
      }
      for (const auto& objective : wanted_.objectives)
        if (find_metric(row.metrics, objective.metric) == nullptr) {
          if (exported) return;  // stopped before it reported
          node["metrics"].fail("'metrics' lacks the metric that is tuned: add {}", objective.metric);
        }
      if (const auto steps = node.find("steps"))
        row.steps = exported ? std::max(steps->as<int>(), 1) : steps->as<int>();
      if (row.steps < 1) node["steps"].fail("'steps' must be 1 or more, not {}", row.steps);
    }
    add(node.where(), std::move(row));
  }

  Place column(std::string_view name, std::initializer_list<std::string_view> prefixes) const {
    for (const auto prefix : prefixes)
      if (const auto found = columns_.find(std::string(prefix) + std::string(name)); found != columns_.end())
        return found->second;
    return std::nullopt;
  }

  void csv_header(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string_view name = names[i];
      if (i == 0 && name.starts_with("\xEF\xBB\xBF")) name.remove_prefix(3);  // as Excel begins a file
      if (!columns_.emplace(name, i).second && !name.empty())
        fail(Errc::input, "{}:1: the column '{}' is there twice: remove one", name_, ascii_line(name));
    }
    fields_ = names.size();
    const auto& model = wanted_.space.model();
    bool prefixed = false;
    for (const std::size_t d : model.declared) {
      const auto& dimension = model.dimensions[d];
      params_.push_back(column(dimension.name, {"params_", "config/", ""}));
      const bool own = column(dimension.name, {"params_", "config/"}).has_value();
      prefixed = prefixed || own;
      const bool needed = dimension.when.empty() && !dimension.formula && dimension.info.kind != DomainKind::constant;
      if (needed && !params_.back())
        fail(Errc::input, "{}:1: there is no column '{}', or 'params_{}', for that parameter{}", name_, dimension.name,
             dimension.name, fields_ == 1 ? ": columns are separated by commas" : "");
    }
    if (!wanted_.results) return;
    std::size_t at = 0;
    for (const auto& objective : wanted_.objectives) {
      auto place = column(objective.metric, {"metrics_", "", "user_attrs_"});
      if (!place && prefixed)  // as Optuna names it
        place = column(wanted_.objectives.size() == 1 ? "value" : fmt::format("values_{}", at), {""});
      if (!place)
        fail(Errc::input, "{}:1: there is no column '{}', or 'metrics_{}', for the metric that is tuned", name_,
             objective.metric, objective.metric);
      metrics_.push_back({objective.metric, *place, true});
      ++at;
    }
    for (const auto& [name, place] : columns_)
      if (constexpr std::string_view prefix = "metrics_"; name.starts_with(prefix)) further(name.substr(prefix.size()));
    for (const auto& name : wanted_.further) further(name);
    std::sort(metrics_.begin() + static_cast<std::ptrdiff_t>(at), metrics_.end(),
              [](const auto& a, const auto& b) { return a.place < b.place; });
    if (!wanted_.space.index_of("steps")) steps_ = column("steps", {""});
    if (!steps_ && prefixed) steps_ = column("training_iteration", {""});  // as Ray names it
    if (prefixed) state_ = column("state", {""});
  }
  void further(const std::string& name) {
    const auto place = column(name, {"metrics_", ""});
    if (place && std::none_of(metrics_.begin(), metrics_.end(), [&](const auto& each) { return each.place == *place; }))
      metrics_.push_back({name, *place, false});
  }

  void csv_row(const std::vector<std::string>& fields, int line) {
    if (fields.size() != fields_)
      fail(Errc::input, "{}:{}: there are {} fields, but {} columns", name_, line, fields.size(), fields_);
    if (state_ && wanted_.results && !has_result(fields[*state_])) return;
    KnownResult row;
    const auto& model = wanted_.space.model();
    for (std::size_t i = 0; i < params_.size(); ++i)
      if (params_[i] && !fields[*params_[i]].empty()) {
        const auto& dimension = model.dimensions[model.declared[i]];
        row.params.add(dimension.name, value_of(dimension, fields[*params_[i]], line));
      }
    for (const auto& metric : metrics_) {
      const std::string& field = fields[metric.place];
      if (field.empty() && (!metric.tuned || state_)) {
        if (metric.tuned) return;  // stopped before it reported
        continue;
      }
      const auto value = number(plain_value(field));
      if (!value)
        fail(Errc::input, "{}:{}: '{}' is '{}', which is no number", name_, line, metric.name, ascii_line(field));
      row.metrics.emplace_back(metric.name, *value);
    }
    if (steps_ && !fields[*steps_].empty()) {
      const std::string& field = fields[*steps_];
      const auto whole = written_whole(field);  // pandas writes 3.0 into a column with gaps
      const bool sound = whole && !whole->beyond && !whole->negative &&
                         whole->magnitude < static_cast<std::uint64_t>(std::numeric_limits<int>::max());
      if (!sound || (whole->magnitude == 0 && !state_))
        fail(Errc::input, "{}:{}: 'steps' is '{}', but must be a whole number from 1", name_, line, ascii_line(field));
      row.steps = std::max(static_cast<int>(whole->magnitude), 1);
    }
    add(fmt::format("{}:{}", name_, line), std::move(row));
  }

  // A field of CSV has no type: an option that is written like it is meant, else what YAML reads.
  Value value_of(const Dimension& dimension, const std::string& field, int line) const {
    for (const auto& option : dimension.options)
      if (to_string(option) == field) return option;
    if (is_beyond_whole(field))
      fail(Errc::input, "{}:{}: '{}' is {}, which no whole number of 64 bits is", name_, line, dimension.name,
           ascii_line(field));
    return plain_value(field);
  }

  struct MetricColumn {
    std::string name;
    std::size_t place = 0;
    bool tuned = false;
  };

  const GivenFor& wanted_;
  std::string name_;
  std::vector<KnownResult> rows_;
  std::unordered_map<std::string, std::size_t> columns_;
  std::size_t fields_ = 0;
  std::vector<Place> params_;  // by declaration
  std::vector<MetricColumn> metrics_;
  Place steps_, state_;
};

}  // namespace detail

std::vector<KnownResult> read_given_text(std::string_view text, const std::string& name, const GivenFor& wanted) {
  using Reader = detail::GivenReader;
  if (text.size() > Reader::max_bytes)
    fail(Errc::input, "{}: it has {} MiB, more than {}", name, text.size() >> 20U, Reader::max_bytes >> 20U);
  Reader reader(wanted, name);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '['))
    reader.json_lines(text);
  else
    reader.csv(text);
  return reader.take();
}

std::string no_given_file(const std::filesystem::path& path) {
  return hypertune::detail::format("there is no file or experiment '{}'", path.string());
}

std::vector<KnownResult> read_given(const std::filesystem::path& path, const GivenFor& wanted) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (!has_journal(path)) fail(Errc::input, "'{}' is a folder without an experiment", path.string());
    detail::GivenReader reader(wanted, path.string());
    reader.experiment(path);
    return reader.take();
  }
  if (!std::filesystem::is_regular_file(path, ignored)) throw Error(Errc::input, no_given_file(path));
  if (std::filesystem::file_size(path, ignored) > detail::GivenReader::max_bytes)
    fail(Errc::input, "'{}' has more than {} MiB", path.string(), detail::GivenReader::max_bytes >> 20U);
  const auto text = detail::read_file(path);
  if (!text) fail(Errc::input, "'{}' cannot be read: check its permissions", path.string());
  return read_given_text(*text, path.string(), wanted);
}

}  // namespace hypertune::inline v0
