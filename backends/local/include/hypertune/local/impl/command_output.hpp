// CommandRun: processes the command's output.
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/command_run.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// Whether an update counts towards an end: "3/10", "37%". The line of such a bar will end, and what it says then is the
/// report.
inline bool counts_to_an_end(std::string_view text) {
  const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (!digit(i)) continue;
    const char next = text[i + 1];
    if (next == '%' || (next == ' ' && i + 2 < text.size() && text[i + 2] == '%')) return true;
    if (next == '/' && (digit(i + 2) || text.substr(i + 2).starts_with("Unknown"))) return true;
  }
  return false;
}

void CommandRun::pump(double seconds) {
  std::vector<std::string> out;
  std::string err;
  child_->pump(seconds, out, err);
  if (child_->status())
    usage_.end(child_->usage());
  else if (!plan_.options.measure.empty() && usage_.due())
    usage_.look(child_->processes());
  if (!out.empty() || !err.empty()) context_->alive();  // output counts as a sign of life
  const double now = hypertune::detail::steady_seconds();
  std::vector<Line> printed[2];
  const auto of_out = [&](OutputLine line) { printed[0].push_back({std::move(line), false, now}); };
  const auto of_err = [&](OutputLine line) {
    if (line.shown) log(line.text, line.whole);
    match_rules(line.text);
    if (!line.passing) tail_.add(line.text, line.update || !line.stays);
    if (leads() && (!plan_.metrics.empty() || line.text.find('{') != std::string::npos))
      printed[1].push_back({std::move(line), true, now});
  };
  for (const auto& piece : out) {
    const std::size_t before = printed[0].size();
    out_->add(piece, now, of_out);
    look_for_block(piece, std::span<const Line>(printed[0]).subspan(before));
  }
  err_->add(err, now, of_err);
  if (child_->status() && !std::exchange(over_, true)) {
    timing_.ended = now;
    out_->end(of_out);
    err_->end(of_err);
  }
  // Nothing tells in which order the lines of two pipes were written. Where both come at once, take them in turn, in
  // proportion.
  const std::size_t outs = printed[0].size(), errs = printed[1].size();
  for (std::size_t o = 0, e = 0; o < outs || e < errs;) {
    const bool next_is_out = e == errs || (o < outs && (2 * o + 1) * errs <= (2 * e + 1) * outs);
    lines_.push_back(std::move(next_is_out ? printed[0][o++] : printed[1][e++]));
  }
}

std::optional<Report> CommandRun::next_report() {
  for (;;) {
    if (!joined_.empty()) {
      JoinedReport joined = std::move(joined_.front());
      joined_.pop_front();
      return report_of(std::move(joined));
    }
    if (lines_.empty()) {
      if (!over_) return std::nullopt;
      join_->flush(joined_);
      if (joined_.empty()) return std::nullopt;
      continue;
    }
    const Line line = std::move(lines_.front());
    lines_.pop_front();
    arrived_ = line.at;
    if (auto report = read_line(line)) return report;
  }
}

std::optional<Report> CommandRun::read_line(const Line& line) {
  const bool out = !line.error_stream;  // lines of standard error are in the log already
  if (out && line.first) match_rules(line.text);
  if (!leads()) {
    if (line.shown) log(line.text, line.whole);
    return std::nullopt;
  }
  if (!line.whole) {
    if (out) log(line.text, false);
    if (line.first) refuse(line, fmt::format("it is longer than {} bytes", max_line), looks_like_report(line.text));
    return std::nullopt;
  }
  // Most lines are no reports, and this check is cheap.
  const auto begin = line.text.find_first_not_of(" \t\r");
  const bool object = begin != std::string::npos && line.text[begin] == '{';
  std::string why;
  auto parsed = object ? parse_report_line(line.text, &why) : std::nullopt;
  if (!out) {
    const bool found = match_metrics(line);
    if (parsed && !found && !plan_.options.objectives.empty() && judges(parsed->metrics))
      remember(line.text, "it is on standard error: print it on standard output", true);
    return std::nullopt;
  }
  const bool noted = parsed && only_notes(*parsed);
  if (noted) {  // no report: its texts go with the next report, and the line to the log
    note_texts(parsed->texts);
    remember(line.text, what_it_lacks(*parsed), false);
  } else if (parsed && is_report(*parsed)) {
    if (!judged_ && refusal_.text.empty() && !parsed->metrics.empty() && !judges(parsed->metrics))
      remember(line.text, what_it_lacks(*parsed), false);
    return take_report(std::move(*parsed));
  }
  if (line.shown) log(line.text);
  const bool found = match_metrics(line);
  if (!found && !object && !line.passing) out_tail_.add_error(line.text, line.update || !line.stays);
  if (parsed) why = what_it_lacks(*parsed);
  if (object && !found && !noted) refuse(line, why, looks_like_report(line.text));
  return std::nullopt;
}

bool CommandRun::looks_like_report(std::string_view line) const {
  const auto& wanted = plan_.options.objectives;
  line = line.substr(0, 4096);
  for (const std::string_view name : {"\"step\"", "\"checkpoint\""})
    if (line.find(name) != std::string_view::npos) return true;
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return line.find(name) != std::string_view::npos; });
}

std::string CommandRun::what_it_lacks(const ReportLine& line) const {
  for (const auto& name : plan_.options.objectives)
    if (const auto* text = line.text(name))
      return fmt::format("'{}' is the text '{}', no number", name, shortened(*text, 40));
  auto lacking = plan_.options.objectives;
  std::erase_if(lacking, [&](const auto& name) { return find_metric(line.metrics, name) != nullptr; });
  std::string text = fmt::format("it has no {}", quoted(lacking));
  std::vector<std::string_view> names;
  for (const auto& [name, value] : line.metrics) names.emplace_back(name);
  for (const auto& name : plan_.options.objectives)
    if (const auto near = hypertune::detail::nearest(name, names);
        !near.empty() && find_metric(line.metrics, name) == nullptr)
      return text + fmt::format(": is '{}' meant?", near);
  return text;
}

std::string CommandRun::quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

void CommandRun::refuse(const Line& line, const std::string& why, bool meant) {
  if (meant && !line.error_stream)
    log(fmt::format("hypertune: the line above is not taken as a report: {}", why));
  else if (meant)
    log(fmt::format("hypertune: the line '{}' is not taken as a report: {}", shortened(line.text), why));
  remember(line.text, why, meant);
}

void CommandRun::remember(std::string_view line, const std::string& why, bool meant) {
  if (!refusal_.text.empty() && (refusal_.meant || !meant)) return;
  refusal_ = {fmt::format("the line '{}' is not one: {}", shortened(line), why), meant};
}

bool CommandRun::judges(const Metrics& metrics) const {
  const auto& wanted = plan_.options.objectives;
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return find_metric(metrics, name) != nullptr; });
}

bool CommandRun::only_notes(const ReportLine& line) const {
  const auto& wanted = plan_.options.objectives;
  return line.metrics.empty() && !line.checkpoint &&
         std::none_of(wanted.begin(), wanted.end(), [&](const auto& name) { return line.text(name) != nullptr; });
}

bool CommandRun::is_report(const ReportLine& line) const {
  if (line.metrics.empty() && !line.checkpoint) return false;
  const auto& wanted = plan_.options.objectives;
  return wanted.empty() || line.step || line.checkpoint ||
         std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return find_metric(line.metrics, name) != nullptr; });
}

bool CommandRun::is_attribute(const std::string& name) const {
  const auto& wanted = plan_.options.objectives;
  return hypertune::detail::is_attribute_name(name) && std::find(wanted.begin(), wanted.end(), name) == wanted.end();
}

void CommandRun::note_texts(std::vector<std::pair<std::string, std::string>>& texts) {
  for (auto& [name, text] : texts)
    if (is_attribute(name) && (attributes_.size() < max_attributes || attributes_.contains(name)))
      attributes_.set(name, std::move(text));
}

std::optional<Report> CommandRun::take_report(ReportLine line) {
  if (line.checkpoint) adopt(*line.checkpoint, line.step ? *line.step + 1 : line.metrics.empty() ? steps_ : steps_ + 1);
  note_texts(line.texts);
  if (line.metrics.empty()) return std::nullopt;  // a checkpoint alone is no report: it goes with the next one
  Report report(std::move(line.metrics));
  report.attributes = std::exchange(attributes_, {});
  note_judged(report.metrics);
  report.step = line.step;
  count_step(line.step.value_or(steps_));
  return report;
}

void CommandRun::count_step(int step) {
  if (last_step_ && step <= *last_step_ && !std::exchange(told_repetition_, true))
    log(fmt::format(
        "hypertune: the report of step {} comes after that of step {}: it is taken for a repetition and does "
        "not count (said once)",
        step, *last_step_));
  if (!last_step_ && step < context_->next_step() && !std::exchange(told_repetition_, true))
    log(fmt::format(
        "hypertune: the report of step {} comes in a trial that goes on from step {}: it is taken for a repetition and "
        "does not count (said once); {}",
        step, context_->next_step(),
        plan_.step ? "if the command counts anew from a checkpoint, say 'counts: attempt' in 'trial.step'"
                   : "count on from HYPERTUNE_STEP"));
  last_step_ = std::max(step, last_step_.value_or(0));
  steps_ = step + 1;
}

std::size_t CommandRun::waiting_lines_naming(const std::string& checkpoint) const {
  return static_cast<std::size_t>(std::count_if(lines_.begin(), lines_.end(), [&](const Line& line) {
    if (line.error_stream || !names_checkpoint(line)) return false;
    const auto report = parse_report_line(line.text);
    return report && report->checkpoint == checkpoint;
  }));
}

void CommandRun::adopt(const std::string& name, int steps) {
  const auto pump_some = [&] {
    if (lines_.size() < max_waiting) pump(0);
  };
  constexpr const char* reused =
      "the same name was reported again before it was taken, so that it may be of a later step: use a new name each "
      "time";
  try {
    if (repeated()) fail(Errc::usage, "a run that is interrupted begins again, as 'trial.repeat' is set");
    require_safe_name(name);
    pump_some();
    std::error_code ignored;
    const auto there = [&] { return std::filesystem::exists(folder_ / name, ignored); };
    if (waiting_lines_naming(name) > 0) fail(Errc::usage, "{}", reused);
    auto made = store_->adopt(context_->trial(), steps, folder_ / name);
    // A trainer that had written into the folder again before it was moved away has said so by now, and has no such
    // folder any more.
    pump_some();
    if (const auto again = waiting_lines_naming(name); again > 1 || (again == 1 && !there())) {
      store_->drop(made);
      fail(Errc::usage, "{}", reused);
    }
    adopted_ = std::move(made);
  } catch (const Error& e) {
    not_adopted_ = fmt::format("the checkpoint '{}' is not taken: {}", name, e.what());
    log("hypertune: " + *not_adopted_);
  }
}

std::optional<double> CommandRun::find_number(const Line& line, const CommandPlan::Expression& expression,
                                              bool& matches) {
  std::smatch match;
  if (!std::regex_search(line.text, match, expression.match) || match[1].length() == 0) return std::nullopt;
  matches = true;
  const auto begin = static_cast<std::size_t>(match.position(1));
  const NumberPlace place{.line = line.text,
                          .begin = begin,
                          .end = begin + static_cast<std::size_t>(match.length(1)),
                          .match_end = static_cast<std::size_t>(match.position(0) + match.length(0)),
                          .before = expression.around.before,
                          .after = expression.around.after};
  std::string why, behind;
  auto value = number_in_line(place, expression.unit, why, &behind);
  if (value && !behind.empty()) {
    if (behind.size() > 2 && behind.back() == 's') behind.pop_back();  // 1 step, 2 steps
    const auto& first = behind_numbers_.try_emplace(expression.name, behind).first->second;
    if (first != behind && expression.name != "step") {  // a step may be 1st, 2nd
      why = fmt::format("{} follows it, and {} followed the one before: name the unit", behind, first);
      value.reset();
    }
  }
  if (!value)
    refuse(line, fmt::format("what the expression for '{}' finds is no number that is sure: {}", expression.name, why),
           true);
  return value;
}

std::optional<int> CommandRun::find_step(const Line& line) {
  if (!plan_.step) return std::nullopt;
  bool matches = false;
  const auto number = find_number(line, *plan_.step, matches);
  if (!number) return std::nullopt;
  if (*number < 0 || *number > std::numeric_limits<int>::max() - 1 || *number != std::floor(*number)) {
    refuse(line, fmt::format("the step {} is no whole number from 0 on", *number), true);
    return std::nullopt;
  }
  return static_cast<int>(*number);
}

bool CommandRun::match_metrics(const Line& line) {
  if (plan_.metrics.empty()) return false;
  if (line.text.size() > max_searched) {
    refuse(line, fmt::format("it is longer than {} bytes, the most that is searched for metrics", max_searched), false);
    return false;
  }
  // A bar has its values when it is full. Where a line has no such end, its values count as time passes, unless the
  // program is known to end its lines, or says its steps.
  if (line.passing && (plan_.step || join_->any_stays() || counts_to_an_end(line.text))) return false;
  bool matches = false;
  FoundMetrics found{.error_stream = line.error_stream, .stays = line.stays, .drawn = line.drawn, .row = line.row};
  for (const auto& expression : plan_.metrics)
    if (const auto value = find_number(line, expression, matches)) found.metrics.emplace_back(expression.name, *value);
  found.step = find_step(line);
  join_->add(std::move(found), joined_);
  if (!line.passing || !matches) return matches;
  join_->flush(joined_);
  if (!std::exchange(told_passing_, true))
    log(fmt::format("hypertune: this line is written over and over: its values are a report every {} s (said once)",
                    OutputLines::patience));
  return true;
}

Report CommandRun::report_of(JoinedReport joined) {
  note_judged(joined.metrics);
  Report report(std::move(joined.metrics));
  report.attributes = std::exchange(attributes_, {});
  if (joined.step) {  // a bar may begin with 0 where its first values come with 1
    const int before = plan_.options.steps_of_attempt ? context_->next_step() : 0;
    if (!first_step_) first_step_ = *joined.step == context_->next_step() - before ? 0 : 1;
    report.step = before + std::max(*joined.step - *first_step_, 0);
  }
  count_step(report.step.value_or(steps_));
  return report;
}

void CommandRun::match_rules(std::string_view line) {
  line = line.substr(0, max_searched);
  for (const auto& rule : plan_.rules)
    if (std::regex_search(line.begin(), line.end(), rule.match)) {
      exclude_host_ = exclude_host_ || rule.what.exclude_host;
      no_retry_ = no_retry_ || rule.what.no_retry;
    }
}

}  // namespace hypertune::inline v0::local::detail
