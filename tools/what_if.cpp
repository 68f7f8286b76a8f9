// what-if: replays an experiment's learning curves with another schedule or other numbers of workers.
#include "commands.hpp"
#include "terminal_text.hpp"

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/override.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/record/detail/text_table.hpp>
#include <hypertune/show/detail/render.hpp>
#include <hypertune/tune/what_if.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

bool sets_whole_schedule(const std::string& text) { return text.starts_with("schedule="); }
bool sets_type(const std::string& text) { return text.starts_with("schedule.type="); }

// The schedule as in a file: the recorded one, changed by --set.
Node schedule_of(const RecordedCurves& curves, const std::vector<std::string>& set) {
  for (const auto& text : set)
    if (!sets_whole_schedule(text) && !text.starts_with("schedule."))
      fail(Errc::usage,
           "what-if changes the schedule (--set schedule.KEY=VALUE), --workers and --shuffled; '{}' would need other "
           "trainings than those recorded",
           text);
  const auto& start = curves.start();
  const bool anew = std::any_of(set.begin(), set.end(),
                                [](const auto& text) { return sets_whole_schedule(text) || sets_type(text); });
  if (!anew && start.scheduler.empty())
    fail(Errc::usage,
         "the experiment was imported, and under which schedule it ran is not known: say one, as in --set "
         "'schedule={{type: asha, grace_period: 1, max_steps: 81, reduction_factor: 3}}'");
  if (!anew && start.scheduler_options.empty() && start.scheduler != "fifo")
    fail(Errc::usage,
         "the record does not say how the scheduler '{}' was set: say all of it, as in --set 'schedule={{type: asha, "
         "grace_period: 1, max_steps: 81, reduction_factor: 3}}'",
         start.scheduler);
  // Another type has other options.
  const std::string recorded = anew ? "{}"
                                    : fmt::format("{{type: {}{}{}}}", start.scheduler,
                                                  start.scheduler_options.empty() ? "" : ", ", start.scheduler_options);
  Node root = load_yaml_text("schedule: " + recorded, "the recorded schedule");
  for (const auto& text : set) root = with_override(root, text);
  return *root.find("schedule");
}

// Refuses schedules that go far beyond the records: little would be known, and the replay would take minutes.
void require_playable(const RecordedCurves& curves, const AnyScheduler& schedule) {
  constexpr std::int64_t most = 4'000'000;
  std::int64_t longest = 1;
  for (const auto& trial : curves.trials()) longest = std::max(longest, static_cast<std::int64_t>(trial.steps.size()));
  const std::int64_t asked = schedule.max_steps(), trials = std::ssize(curves.trials());
  if (asked > 10 * longest && asked > most / std::max<std::int64_t>(trials, 1))
    fail(
        Errc::usage,
        "what-if: 'max_steps' is {}, but no trial of the record has more than {} steps: of most of it nothing is known",
        asked, longest);
}

std::string schedule_text(const AnyScheduler& schedule) {
  const std::string options = schedule.options();
  return options.empty() ? schedule.name() : fmt::format("{} ({})", schedule.name(), options);
}

struct Row {
  std::string what;
  int workers = 0;
  PlayedAgain low, usual, high;  // for different assumptions beyond the records
};

PlayedAgain as_recorded(const RecordedCurves& curves) {
  PlayedAgain played;
  played.trials = static_cast<std::size_t>(std::count_if(curves.trials().begin(), curves.trials().end(),
                                                         [](const RecordedTrial& t) { return !t.steps.empty(); }));
  played.steps = curves.steps();
  played.elapsed = curves.elapsed();
  played.busy = curves.busy();
  played.improvements = curves.improvements();
  return played;
}

std::optional<double> best_of(const PlayedAgain& played) {
  if (played.improvements.empty()) return std::nullopt;
  return played.improvements.back().value;
}

// The first improvement that is at least as good as `target`.
const Improvement* reached(const PlayedAgain& played, double target, Mode mode) {
  const auto found = std::find_if(played.improvements.begin(), played.improvements.end(), [&](const Improvement& i) {
    return mode == Mode::minimize ? i.value <= target : i.value >= target;
  });
  return found == played.improvements.end() ? nullptr : &*found;
}

// "a", or "a (b to c)" with the least and the greatest value if the assumptions make a difference.
template <class Text, class Value>
std::string range_text(const Row& row, const Value& value, const Text& text) {
  const auto usual = value(row.usual);
  const auto [least, most] = std::minmax({usual, value(row.low), value(row.high)});
  const std::string middle = text(usual), low = text(least), high = text(most);
  return low == middle && high == middle ? middle : fmt::format("{} ({} to {})", middle, low, high);
}

void print_table(const RecordedCurves& curves, const std::vector<Row>& rows) {
  using detail::terminal::Cell;
  const Objective& objective = curves.objectives().front();
  const auto target = best_of(rows.front().usual);
  detail::terminal::TextTable table({{.title = "", .right = false, .smallest = 12},
                                     {.title = "workers", .right = true},
                                     {.title = "trials", .right = true},
                                     {.title = "steps", .right = true},
                                     {.title = "busy", .right = true},
                                     {.title = "took", .right = true},
                                     {.title = "best " + objective.metric, .right = true, .smallest = 8},
                                     {.title = "as good as recorded after", .right = true}});
  for (const Row& row : rows) {
    const auto count = [&](auto member) {
      return range_text(
          row, [&](const PlayedAgain& p) { return static_cast<std::int64_t>(p.*member); },
          [](std::int64_t n) { return fmt::format("{}", n); });
    };
    const auto duration = [&](auto value) {
      return range_text(row, value, [](double s) {
        // Short experiments are compared by fractions of a second.
        return std::isnan(s) ? std::string("-") : s < 10 ? fmt::format("{:.2g} s", s) : duration_text(s);
      });
    };
    std::vector<Cell> cells;
    cells.emplace_back(row.what);
    cells.emplace_back(fmt::format("{}", row.workers));
    cells.emplace_back(count(&PlayedAgain::trials));
    cells.emplace_back(count(&PlayedAgain::steps));
    cells.emplace_back(duration([](const PlayedAgain& p) { return p.busy; }));
    cells.emplace_back(duration([](const PlayedAgain& p) { return p.elapsed; }));
    cells.emplace_back(range_text(
        row, [](const PlayedAgain& p) { return best_of(p).value_or(std::nan("")); },
        [](double v) { return std::isnan(v) ? std::string("-") : fmt::format("{:.6g}", v); }));
    cells.emplace_back(target ? duration([&](const PlayedAgain& p) {
      const Improvement* found = reached(p, *target, objective.mode);
      return found == nullptr ? std::nan("") : found->seconds;
    })
                              : std::string("-"));
    table.add(std::move(cells));
  }
  std::fputs(table.text(terminal_width()).c_str(), stdout);
}

// Prints how far the figures rest on assumptions.
void print_limits(const RecordedCurves& curves, const std::vector<Row>& rows, TrialOrder order) {
  print_line("");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const auto& p = row.usual;
    if (p.unknown_steps == 0 && row.low.unknown_steps == 0 && row.high.unknown_steps == 0) continue;
    print_line(fmt::format(
        "{}, {} worker{}: {} of {} trials train on beyond what was recorded, {} of {} steps are not known{}.", row.what,
        row.workers, row.workers == 1 ? "" : "s", p.unknown_trials, p.trials, p.unknown_steps, p.steps,
        p.uncompared_steps > 0
            ? fmt::format(", {} of them with fewer than 5 other trials to compare with", p.uncompared_steps)
            : ""));
  }
  const bool exact = std::all_of(rows.begin() + 1, rows.end(), [](const Row& row) {
    return row.low.unknown_steps == 0 && row.usual.unknown_steps == 0 && row.high.unknown_steps == 0;
  });
  if (exact)
    print_line("Every report that was asked for is in the record.");
  else
    print_line(
        "Beyond the record a trial gains the median of what comparable trials gained; in brackets: it gains nothing, "
        "or "
        "as much as the best of them.");
  if (!curves.start().searcher.empty() && curves.start().searcher != "random" && curves.start().searcher != "grid")
    print_line(
        fmt::format("The configurations are those that '{}' proposed{}: with other results it might have proposed "
                    "others.",
                    curves.start().searcher, order == TrialOrder::shuffled ? ", in another order" : ""));
}

boost::json::value number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

boost::json::object json_of(const PlayedAgain& played) {
  boost::json::array improvements;
  for (const Improvement& i : played.improvements)
    improvements.push_back(
        {{"seconds", number(i.seconds)}, {"steps", i.steps}, {"trial", i.trial}, {"value", number(i.value)}});
  boost::json::object object{{"trials", played.trials},
                             {"steps", played.steps},
                             {"busy", number(played.busy)},
                             {"elapsed", number(played.elapsed)},
                             {"unknown_trials", played.unknown_trials},
                             {"unknown_steps", played.unknown_steps},
                             {"uncompared_steps", played.uncompared_steps},
                             {"improvements", std::move(improvements)}};
  const auto best = best_of(played);
  object["best"] = best ? number(*best) : boost::json::value(nullptr);
  return object;
}

void print_json(const RecordedCurves& curves, const std::vector<Row>& rows) {
  const Objective& objective = curves.objectives().front();
  boost::json::array all;
  for (std::size_t i = 1; i < rows.size(); ++i)
    all.push_back({{"schedule", rows[i].what},
                   {"workers", rows[i].workers},
                   {"stands_still", json_of(rows[i].low)},
                   {"usual", json_of(rows[i].usual)},
                   {"best", json_of(rows[i].high)}});
  const boost::json::object document{{"metric", objective.metric},
                                     {"mode", to_string(objective.mode)},
                                     {"recorded", json_of(rows.front().usual)},
                                     {"played", std::move(all)}};
  fmt::print("{}\n", boost::json::serialize(document));
}

}  // namespace

int what_if(const WhatIfArguments& arguments) {
  const RecordedCurves curves = RecordedCurves::read(arguments.directory);
  const Node node = schedule_of(curves, arguments.set);
  WhatIf change{.schedule = scheduler_from_yaml(node)};
  change.order = arguments.shuffled ? TrialOrder::shuffled : TrialOrder::recorded;
  change.seed = arguments.seed;
  require_playable(curves, change.schedule);
  std::vector<Row> rows;
  const auto recorded = as_recorded(curves);
  rows.push_back({"recorded", std::max(1, curves.max_at_once()), recorded, recorded, recorded});
  auto counts = arguments.workers;
  if (counts.empty()) counts.push_back(0);
  for (const int workers : counts) {
    change.workers = workers;
    auto result = hypertune::what_if(curves, change);
    rows.push_back({schedule_text(change.schedule), result.workers, std::move(result.stands_still),
                    std::move(result.usual), std::move(result.best)});
  }
  if (arguments.format == "json") {
    print_json(curves, rows);
  } else {
    print_table(curves, rows);
    print_limits(curves, rows, change.order);
  }
  return exit_done;
}

}  // namespace hypertune::inline v0::command
