// A comparison as a table for people, and as JSON. Included by impl/comparison.hpp.
#pragma once

#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/comparison.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/record/detail/text_table.hpp>

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

inline void put_interval(JsonWriter& out, std::string_view name, const std::optional<Interval>& interval) {
  out.key(name);
  interval ? out.begin_array().value(interval->low).value(interval->high).end_array() : out.value(nullptr);
}

inline void put_test(JsonWriter& out, const GroupComparison& test) {
  out.begin_object().member("a", test.a).member("b", test.b);
  out.member("samples", test.of_trials ? "trials" : "experiments");
  out.member("count_a", test.count_a).member("count_b", test.count_b);
  out.member("median_a", test.median_a).member("median_b", test.median_b);
  put_interval(out, "median_difference", test.median_difference);
  const RankTest none;
  const RankTest& rank = test.test ? *test.test : none;
  const auto tested = [&](double value) { return test.test ? std::optional(value) : std::nullopt; };
  out.member("probability_a_better", tested(rank.effect));
  put_interval(out, "interval", rank.interval);
  out.member("p", rank.p).member("p_holm", test.p).member("least_p", tested(rank.least_p)).member("test", rank.method);
  out.key("best_of");
  if (test.best_of) {
    out.begin_object().member("draws", test.best_of->draws).member("expected_a", test.best_of->expected_a);
    out.member("expected_b", test.best_of->expected_b).member("probability_a_better", test.best_of->probability);
    put_interval(out, "interval", test.best_of->interval);
    out.end_object();
  } else {
    out.value(nullptr);
  }
  out.member("verdict", test.verdict).end_object();
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
  detail::JsonWriter out(detail::JsonFor::file);
  const auto& objective = comparison.experiments.front().objective;
  out.begin_object().member("metric", objective.metric).member("mode", to_string(objective.mode));
  out.key("equal").begin_object();
  out.member("trials", comparison.equal_trials).member("reports", comparison.equal.reports);
  out.member("seconds", comparison.equal.elapsed).end_object();
  out.key("experiments").begin_array();
  for (const auto& each : comparison.experiments) {
    if (&each != &comparison.experiments.front()) out.next("\n ");
    out.begin_object().member("folder", each.directory.string()).member("name", each.label).member("group", each.group);
    out.member("trials", each.trials).member("failed", each.failed).member("reports", each.spent.reports);
    out.member("seconds", each.spent.elapsed).member("best", each.best).member("best_trial", each.best_trial);
    out.member("at_equal_trials", each.best_of_trials(comparison.equal_trials));
    out.member("at_equal_reports", each.best_at_reports(comparison.equal.reports));
    out.member("at_equal_seconds", each.best_at_time(comparison.equal.elapsed)).key("settings").begin_object();
    for (const auto& name : comparison.differing) out.member(name, setting(each, name));
    out.end_object().end_object();
  }
  out.end_array().member("at", detail::budget_text(comparison.at)).key("tests").begin_array();
  for (const auto& test : comparison.tests) {
    if (&test != &comparison.tests.front()) out.next("\n ");
    detail::put_test(out, test);
  }
  return out.end_array().member("note", comparison.note).end_object().take();
}

}  // namespace hypertune::inline v0
