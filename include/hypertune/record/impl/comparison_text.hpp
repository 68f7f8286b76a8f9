// A comparison as a table for people, and as JSON. Included by impl/comparison.hpp.
#pragma once

#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/comparison.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/text_table.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline const char* budget_text(Budget budget) {
  switch (budget) {
    case Budget::end: return "the end";
    case Budget::trials: return "equal trials";
    case Budget::reports: return "equal reports";
    case Budget::time: return "equal time";
  }
  return "?";
}

inline std::string percent(double share) { return detail::format("{:.0f} %", 100 * share); }

inline std::string test_text(const GroupComparison& test, const Comparison& all, std::size_t width) {
  std::string text;
  const auto line = [&](const std::string& words) {
    text += terminal::wrapped(terminal::printable(words), width) + '\n';
  };
  line(detail::format("{} against {}: {}", test.a, test.b, test.verdict));
  if (!test.test) return text;
  const auto number = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? detail::format("{:.6g}", *value) : std::string("none");
  };
  std::string numbers =
      detail::format("  {} {}{} against {}{}; medians {} and {}", test.count_a, test.of_trials ? "trial" : "experiment",
                     plural(static_cast<std::int64_t>(test.count_a)), test.count_b,
                     test.of_trials ? "" : detail::format(", each by its best at {}", budget_text(all.at)),
                     number(test.median_a), number(test.median_b));
  if (!test.median_a || !test.median_b) numbers += " (none: half of them or more have no result)";
  if (test.median_difference)
    numbers += detail::format(", difference between {:.4g} and {:.4g}", test.median_difference->low,
                              test.median_difference->high);
  line(numbers);
  if (test.test->p) {
    numbers = detail::format("  {} is better with probability {:.2f}", test.a, test.test->effect);
    if (test.test->interval)
      numbers += detail::format(" (between {:.2f} and {:.2f})", test.test->interval->low, test.test->interval->high);
    numbers += detail::format("; {}, p = {:.3g}", test.test->method, *test.test->p);
    const auto tested = std::count_if(all.tests.begin(), all.tests.end(),
                                      [](const GroupComparison& each) { return each.p.has_value(); });
    if (tested > 1) numbers += detail::format(", {:.3g} for {} comparisons (Holm)", *test.p, tested);
    line(numbers);
  }
  if (test.best_of)
    line(
        detail::format("  the best of {} trials drawn from each: {} and {} to be expected; that of {} is better "
                       "with probability {:.2f} (between {:.2f} and {:.2f})",
                       test.best_of->draws, number(test.best_of->expected_a), number(test.best_of->expected_b), test.a,
                       test.best_of->probability, test.best_of->interval->low, test.best_of->interval->high));
  return text;
}

inline void append_json(std::string& out, const std::optional<double>& value) {
  value ? append_json(out, *value) : static_cast<void>(out += "null");
}
inline void append_json(std::string& out, const std::optional<Interval>& interval) {
  if (!interval) return static_cast<void>(out += "null");
  append_json(out += '[', interval->low);
  append_json(out += ", ", interval->high);
  out += ']';
}

/// Writes `"key": value` pairs, one after the other.
class JsonFields {
 public:
  explicit JsonFields(std::string& out) : out_(&out) { out += '{'; }
  template <class T>
  JsonFields& operator()(std::string_view key, const T& value) {
    append_json(*out_ += std::exchange(separator_, ", "), key);
    *out_ += ": ";
    if constexpr (std::is_same_v<T, bool>)
      *out_ += value ? "true" : "false";
    else if constexpr (std::is_integral_v<T>)
      append_number(*out_, value);
    else if constexpr (std::is_convertible_v<const T&, std::string_view>)
      append_json(*out_, std::string_view(value));
    else
      append_json(*out_, value);
    return *this;
  }
  /// Writes only the key; the caller writes the value.
  void key(std::string_view name) {
    append_json(*out_ += std::exchange(separator_, ", "), name);
    *out_ += ": ";
  }
  void end() { *out_ += '}'; }

 private:
  std::string* out_;
  const char* separator_ = "";
};

inline void append_test(std::string& out, const GroupComparison& test) {
  JsonFields object(out);
  object("a", test.a)("b", test.b)("samples", test.of_trials ? "trials" : "experiments")("count_a", test.count_a)(
      "count_b", test.count_b)("median_a", test.median_a)("median_b", test.median_b)("median_difference",
                                                                                     test.median_difference);
  const RankTest none;
  const RankTest& rank = test.test ? *test.test : none;
  const auto tested = [&](double value) { return test.test ? std::optional(value) : std::nullopt; };
  object("probability_a_better", tested(rank.effect))("interval", rank.interval)("p", rank.p)("p_holm", test.p)(
      "least_p", tested(rank.least_p))("test", rank.method);
  object.key("best_of");
  if (test.best_of) {
    JsonFields best(out);
    best("draws", test.best_of->draws)("expected_a", test.best_of->expected_a)("expected_b", test.best_of->expected_b)(
        "probability_a_better", test.best_of->probability)("interval", test.best_of->interval);
    best.end();
  } else {
    out += "null";
  }
  object("verdict", test.verdict);
  object.end();
}

}  // namespace detail

std::string comparison_table(const Comparison& comparison, std::size_t width) {
  using detail::terminal::Cell;
  using detail::terminal::TextTable;
  const auto& all = comparison.experiments;
  const bool grouped = std::any_of(all.begin(), all.end(), [](const auto& each) { return each.group != each.label; });
  std::vector<TextTable::Column> columns{{"experiment", false, 12}};
  if (grouped) columns.push_back({"group", false, 8});
  for (const char* title : {"trials", "failed", "reports", "seconds"}) columns.push_back({title, true});
  columns.push_back({all.front().objective.metric, true, 8});
  const auto after = [](std::int64_t count, const char* what) {
    return detail::format("after {} {}{}", count, what, detail::plural(count));
  };
  columns.push_back({after(static_cast<std::int64_t>(comparison.equal_trials), "trial"), true, 8});
  columns.push_back({after(comparison.equal.reports, "report"), true, 8});
  columns.push_back({detail::format("after {:.4g} s", comparison.equal.elapsed), true, 8});
  TextTable table(columns);
  const auto cell = [](const std::optional<double>& value) { return value ? Cell(*value, 6) : Cell("-"); };
  for (const auto& each : all) {
    std::vector<Cell> row{each.label};
    if (grouped) row.emplace_back(each.group);
    row.insert(
        row.end(),
        {static_cast<std::int64_t>(each.trials), static_cast<std::int64_t>(each.failed), each.spent.reports,
         Cell(each.spent.elapsed, 6), cell(each.best), cell(each.best_of_trials(comparison.equal_trials)),
         cell(each.best_at_reports(comparison.equal.reports)), cell(each.best_at_time(comparison.equal.elapsed))});
    table.add(std::move(row));
  }
  std::string text = table.text(width);
  if (!comparison.differing.empty()) {
    std::vector<TextTable::Column> titles{{"differing", false, 12}};
    for (const auto& each : all) titles.push_back({each.label, false, 24});
    TextTable settings(titles);
    for (const auto& name : comparison.differing) {
      std::vector<Cell> row{name};
      for (const auto& each : all) row.emplace_back(setting(each, name));
      settings.add(std::move(row));
    }
    text += '\n' + settings.text(width);
  }
  for (const auto& test : comparison.tests) text += '\n' + detail::test_text(test, comparison, width);
  if (!comparison.note.empty()) text += '\n' + detail::terminal::wrapped(comparison.note, width) + '\n';
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  std::string out;
  detail::JsonFields object(out);
  const auto& first = comparison.experiments.front();
  object("metric", first.objective.metric)("mode", to_string(first.objective.mode));
  object.key("equal");
  {
    detail::JsonFields equal(out);
    equal("trials", comparison.equal_trials)("reports", comparison.equal.reports)("seconds", comparison.equal.elapsed);
    equal.end();
  }
  object.key("experiments");
  for (const char* separator = "["; const auto& each : comparison.experiments) {
    out += std::exchange(separator, ",\n ");
    detail::JsonFields fields(out);
    fields("folder", each.directory.string())("name", each.label)("group", each.group)("trials", each.trials)(
        "failed", each.failed)("reports", each.spent.reports)("seconds", each.spent.elapsed)("best", each.best);
    fields("best_trial", each.best_trial)("at_equal_trials", each.best_of_trials(comparison.equal_trials))(
        "at_equal_reports", each.best_at_reports(comparison.equal.reports))(
        "at_equal_seconds", each.best_at_time(comparison.equal.elapsed));
    fields.key("settings");
    detail::JsonFields settings(out);
    for (const auto& name : comparison.differing) settings(name, setting(each, name));
    settings.end();
    fields.end();
  }
  out += ']';
  object("at", std::string_view(detail::budget_text(comparison.at)));
  object.key("tests");
  out += '[';
  for (const char* separator = ""; const auto& test : comparison.tests) {
    out += std::exchange(separator, ",\n ");
    detail::append_test(out, test);
  }
  out += ']';
  object("note", comparison.note);
  object.end();
  return out;
}

}  // namespace hypertune::inline v0
