// Included by prometheus.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/record/prometheus.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::prometheus {

inline constexpr std::size_t max_hosts = 100, max_label_bytes = 256;

enum class Kind : std::uint8_t { gauge, counter, info };

/// The value of a label, shortened and escaped; invalid UTF-8 is replaced.
inline std::string label_text(std::string_view text) {
  std::string out;
  text = text.substr(0, utf8_cut(text, max_label_bytes));
  while (!text.empty()) {
    const auto character = decode_utf8(text);
    const char c = text.front();
    if (!character.valid)
      append_utf8(out, character.code);
    else if (c == '\\' || c == '"')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return out;
}

/// Writes families of metrics, one after the other, in one of the formats.
class Text {
 public:
  Text(Exposition format, std::string_view experiment)
      : open_(format == Exposition::openmetrics), experiment_(label_text(experiment)) {}

  /// Begins a family. `name` is without the suffix of its kind (_total, _info).
  void family(std::string_view name, Kind kind, std::string_view unit, std::string_view help) {
    const char* ending = kind == Kind::counter ? "_total" : kind == Kind::info ? "_info" : "";
    name_ = detail::format("hypertune_{}{}", name, ending);
    const std::string title = open_ ? detail::format("hypertune_{}", name) : name_;
    // The older format has no type "info": it is a gauge there.
    const char* type = kind == Kind::counter ? "counter" : kind == Kind::info && open_ ? "info" : "gauge";
    out_ += detail::format("# HELP {} {}\n# TYPE {} {}\n", title, help, title, type);
    if (open_ && !unit.empty()) out_ += detail::format("# UNIT {} {}\n", title, unit);
  }
  void sample(double value, std::initializer_list<std::pair<const char*, std::string_view>> labels = {}) {
    out_ += detail::format("{}{{experiment=\"{}\"", name_, experiment_);
    for (const auto& [label, text] : labels) out_ += detail::format(",{}=\"{}\"", label, label_text(text));
    out_ += "} ";
    if (std::isfinite(value))
      append_number(out_, value);
    else
      out_ += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    out_ += '\n';
  }
  std::string end() {
    if (open_) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  bool open_;
  std::string experiment_, name_, out_;
};

/// The hosts with the most attempts, and the others combined into one.
inline std::vector<HostUse> bounded(std::vector<HostUse> hosts) {
  if (hosts.size() <= max_hosts) return hosts;
  std::sort(hosts.begin(), hosts.end(), [](const HostUse& a, const HostUse& b) {
    return a.attempts != b.attempts ? a.attempts > b.attempts : a.host < b.host;
  });
  HostUse other{.host = "other"};
  for (std::size_t i = max_hosts - 1; i < hosts.size(); ++i) {
    other.busy += hosts[i].busy;
    other.attempts += hosts[i].attempts;
    other.lost += hosts[i].lost;
  }
  hosts.resize(max_hosts - 1);
  hosts.push_back(std::move(other));
  return hosts;
}

inline void write_objectives(Text& text, const Results& results) {
  const auto& objectives = results.experiment().objectives;
  std::vector<std::pair<const Objective*, TrialResult>> best;
  for (const Objective& objective : objectives)
    if (auto found = results.find_best(objective); found && found->best)
      best.emplace_back(&objective, std::move(*found));
  if (best.empty()) return;
  text.family("best_value", Kind::gauge, "", "Best value of an objective that a trial has reported.");
  for (const auto& [objective, trial] : best)
    text.sample(trial.best->value, {{"metric", objective->metric}, {"mode", to_string(objective->mode)}});
  text.family("best_trial", Kind::gauge, "", "Number of the trial with the best value of an objective.");
  for (const auto& [objective, trial] : best)
    text.sample(static_cast<double>(trial.trial), {{"metric", objective->metric}});
}

inline void write_hosts(Text& text, const Results& results) {
  const auto hosts = bounded(results.hosts());
  if (hosts.empty()) return;
  const auto each = [&](std::string_view name, std::string_view unit, std::string_view help, auto value) {
    text.family(name, Kind::counter, unit, help);
    for (const HostUse& host : hosts) text.sample(static_cast<double>(value(host)), {{"host", host.host}});
  };
  each("host_busy_seconds", "seconds", "Time of all attempts on a host together.",
       [](const HostUse& host) { return host.busy; });
  each("host_attempts", "", "Attempts begun on a host.", [](const HostUse& host) { return host.attempts; });
  each("host_losses", "", "How often a host was lost or went away.", [](const HostUse& host) { return host.lost; });
}

}  // namespace detail::prometheus

std::string prometheus_text(const Results& results, Exposition format) {
  using detail::prometheus::Kind;
  const ExperimentInfo& info = results.experiment();
  detail::prometheus::Text text(format, info.name);
  text.family("experiment", Kind::info, "", "Search, schedule and executor of the experiment.");
  text.sample(1, {{"search", info.searcher}, {"schedule", info.scheduler}, {"executor", info.executor}});
  text.family("experiment_start_time_seconds", Kind::gauge, "seconds", "When it was started first, since 1970.");
  text.sample(info.started);
  text.family("experiment_last_record_time_seconds", Kind::gauge, "seconds",
              "When something last happened, since 1970.");
  text.sample(info.updated);
  text.family("experiment_elapsed_seconds", Kind::gauge, "seconds",
              "How long it has run, without the time between drivers.");
  text.sample(info.elapsed);
  text.family("experiment_ended", Kind::gauge, "", "1: its driver has ended in order; 0: it runs, or was killed.");
  text.sample(info.ended ? 1 : 0);
  text.family("driver_starts", Kind::counter, "", "How often it was started or resumed.");
  text.sample(info.starts);
  text.family("samples_planned", Kind::gauge, "", "Trials that there are to be; 0: no limit.");
  text.sample(static_cast<double>(info.planned));
  text.family("trials", Kind::gauge, "", "Trials by state.");
  for (int state = 0; state <= static_cast<int>(TrialState::failed); ++state)
    text.sample(static_cast<double>(results.count(static_cast<TrialState>(state))),
                {{"state", to_string(static_cast<TrialState>(state))}});
  text.family("trial_failures", Kind::counter, "", "Attempts that failed, by whose doing that was.");
  for (const auto source : {FailureSource::user, FailureSource::infrastructure, FailureSource::preemption})
    text.sample(static_cast<double>(results.failures(source)), {{"source", to_string(source)}});
  text.family("reports", Kind::counter, "", "Reports of all trials.");
  text.sample(static_cast<double>(info.reports));
  text.family("repeated_steps", Kind::counter, "", "Steps that were done again, as they had not been saved.");
  text.sample(static_cast<double>(results.repeated_steps()));
  detail::prometheus::write_objectives(text, results);
  detail::prometheus::write_hosts(text, results);
  return text.end();
}

}  // namespace hypertune::inline v0
