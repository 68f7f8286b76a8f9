// CommandRun: processes the command's output.
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/command_run.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace hypertune::inline v0::local::detail {

template <class Take>
void CommandRun::cut(Partial& partial, std::string_view more, const Take& take) {
  if (!more.empty()) context_->alive();  // output counts as a sign of life
  partial.text += more;
  std::size_t begin = 0;
  for (auto end = partial.text.find('\n'); end != std::string::npos; end = partial.text.find('\n', begin)) {
    std::string line = partial.text.substr(begin, end - begin);
    if (!partial.cut) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      take(Line{std::move(line)});
    } else {
      partial.cut = false;
      take(Line{line + '\n', false, false});
    }
    begin = end + 1;
  }
  partial.text.erase(0, begin);
  const bool over = child_->status().has_value();
  if (partial.text.size() <= max_line && (!over || partial.text.empty())) return;
  const bool too_long = partial.text.size() > max_line || partial.cut;
  take(Line{std::exchange(partial.text, {}), !too_long, !partial.cut});
  partial.cut = too_long;
}

HYPERTUNE_INLINE void CommandRun::pump(double seconds) {
  std::string out, err;
  child_->pump(seconds, out, err);
  cut(err_, err, [&](Line line) {
    log(line.text, line.whole);
    match_rules(line.text);
    tail_.add(line.text);
  });
  cut(out_, out, [&](Line line) { lines_.push_back(std::move(line)); });
}

HYPERTUNE_INLINE std::optional<Report> CommandRun::next_report() {
  while (!lines_.empty()) {
    const Line line = std::move(lines_.front());
    lines_.pop_front();
    if (line.first) match_rules(line.text);
    if (!leads()) {
      log(line.text, line.whole);
      continue;
    }
    if (!line.whole) {
      log(line.text, false);
      if (line.first)
        refuse(line.text, fmt::format("it is longer than {} bytes", max_line), looks_like_report(line.text));
      continue;
    }
    // Most lines are no reports, and this check is cheap.
    const auto begin = line.text.find_first_not_of(" \t\r");
    const bool object = begin != std::string::npos && line.text[begin] == '{';
    std::string why;
    auto parsed = object ? parse_report_line(line.text, &why) : std::nullopt;
    const bool noted = parsed && only_notes(*parsed);
    if (noted) {  // no report: its texts go with the next report, and the line to the log
      note_texts(parsed->texts);
      remember(line.text, what_it_lacks(*parsed), false);
    } else if (parsed && is_report(*parsed)) {
      if (!judged_ && refusal_.text.empty() && !parsed->metrics.empty() && !judges(parsed->metrics))
        remember(line.text, what_it_lacks(*parsed), false);
      if (auto report = take_report(std::move(*parsed))) return report;
      continue;
    }
    log(line.text);
    bool found = false;
    auto report = match_metrics(line.text, found);
    if (parsed) why = what_it_lacks(*parsed);
    if (object && !found && !noted) refuse(line.text, why, looks_like_report(line.text));
    if (report) return report;
  }
  if (child_->status() && !pending_.empty()) return flush_metrics();
  return std::nullopt;
}

HYPERTUNE_INLINE bool CommandRun::looks_like_report(std::string_view line) const {
  const auto& wanted = plan_.options.objectives;
  line = line.substr(0, 4096);
  for (const std::string_view name : {"\"step\"", "\"checkpoint\""})
    if (line.find(name) != std::string_view::npos) return true;
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return line.find(name) != std::string_view::npos; });
}

HYPERTUNE_INLINE std::string CommandRun::what_it_lacks(const ReportLine& line) const {
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

HYPERTUNE_INLINE std::string CommandRun::quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

HYPERTUNE_INLINE void CommandRun::refuse(std::string_view line, const std::string& why, bool meant) {
  if (meant) log(fmt::format("hypertune: the line above is not taken as a report: {}", why));
  remember(line, why, meant);
}

HYPERTUNE_INLINE void CommandRun::remember(std::string_view line, const std::string& why, bool meant) {
  if (!refusal_.text.empty() && (refusal_.meant || !meant)) return;
  refusal_ = {fmt::format("the line '{}' is not one: {}", shortened(line), why), meant};
}

HYPERTUNE_INLINE bool CommandRun::judges(const Metrics& metrics) const {
  const auto& wanted = plan_.options.objectives;
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return find_metric(metrics, name) != nullptr; });
}

HYPERTUNE_INLINE bool CommandRun::only_notes(const ReportLine& line) const {
  const auto& wanted = plan_.options.objectives;
  return line.metrics.empty() && !line.checkpoint &&
         std::none_of(wanted.begin(), wanted.end(), [&](const auto& name) { return line.text(name) != nullptr; });
}

HYPERTUNE_INLINE bool CommandRun::is_report(const ReportLine& line) const {
  if (line.metrics.empty() && !line.checkpoint) return false;
  const auto& wanted = plan_.options.objectives;
  return wanted.empty() || line.step || line.checkpoint ||
         std::any_of(wanted.begin(), wanted.end(),
                     [&](const auto& name) { return find_metric(line.metrics, name) != nullptr; });
}

HYPERTUNE_INLINE bool CommandRun::is_attribute(const std::string& name) const {
  const auto& wanted = plan_.options.objectives;
  return hypertune::detail::is_attribute_name(name) && std::find(wanted.begin(), wanted.end(), name) == wanted.end();
}

HYPERTUNE_INLINE void CommandRun::note_texts(std::vector<std::pair<std::string, std::string>>& texts) {
  for (auto& [name, text] : texts)
    if (is_attribute(name) && (attributes_.size() < max_attributes || attributes_.contains(name)))
      attributes_.set(name, std::move(text));
}

HYPERTUNE_INLINE std::optional<Report> CommandRun::take_report(ReportLine line) {
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

HYPERTUNE_INLINE void CommandRun::count_step(int step) {
  if (last_step_ && step <= *last_step_ && !std::exchange(told_repetition_, true))
    log(fmt::format(
        "hypertune: the report of step {} comes after that of step {}: it is taken for a repetition and does "
        "not count (said once)",
        step, *last_step_));
  last_step_ = std::max(step, last_step_.value_or(0));
  steps_ = step + 1;
}

HYPERTUNE_INLINE std::size_t CommandRun::waiting_lines_naming(const std::string& checkpoint) const {
  return static_cast<std::size_t>(std::count_if(lines_.begin(), lines_.end(), [&](const Line& line) {
    if (line.text.find("\"checkpoint\"") == std::string::npos) return false;
    const auto report = parse_report_line(line.text);
    return report && report->checkpoint == checkpoint;
  }));
}

HYPERTUNE_INLINE void CommandRun::adopt(const std::string& name, int steps) {
  const auto pump_some = [&] {
    constexpr std::size_t most_waiting = 1000;  // a program that prints more quickly than is read waits
    if (lines_.size() < most_waiting) pump(0);
  };
  constexpr const char* reused =
      "the same name was reported again before it was taken, so that it may be of a later step: use a new name each "
      "time";
  try {
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

HYPERTUNE_INLINE std::optional<Report> CommandRun::match_metrics(const std::string& line, bool& found) {
  std::optional<Report> complete;
  for (const auto& [name, regex] : plan_.metrics) {
    if (line.size() > max_searched) {
      refuse(line, fmt::format("it is longer than {} bytes, the most that is searched for metrics", max_searched),
             false);
      break;
    }
    std::smatch match;
    if (!std::regex_search(line, match, regex) || match[1].length() == 0) continue;
    found = true;
    std::string why;
    const auto value = number_in_text(match[1].str(), why);
    if (!value) {
      refuse(line, fmt::format("what the expression for '{}' finds is no number that is sure: {}", name, why), true);
      continue;
    }
    if (find_metric(pending_, name) != nullptr && !complete) complete = flush_metrics();  // the next step
    pending_.emplace_back(name, *value);
  }
  if (!complete && !pending_.empty() && pending_.size() == plan_.metrics.size()) complete = flush_metrics();
  return complete;
}

HYPERTUNE_INLINE std::optional<Report> CommandRun::flush_metrics() {
  count_step(steps_);
  note_judged(pending_);
  Report report(std::exchange(pending_, {}));
  report.attributes = std::exchange(attributes_, {});
  return report;
}

HYPERTUNE_INLINE void CommandRun::match_rules(std::string_view line) {
  line = line.substr(0, max_searched);
  for (const auto& rule : plan_.rules)
    if (std::regex_search(line.begin(), line.end(), rule.match)) {
      exclude_host_ = exclude_host_ || rule.what.exclude_host;
      no_retry_ = no_retry_ || rule.what.no_retry;
    }
}

}  // namespace hypertune::inline v0::local::detail
