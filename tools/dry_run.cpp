#include "dry_run.hpp"

#include <hypertune/detail/text_width.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/random.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/tune/options.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Asks an attempt to end when its time is over.
class Deadline {
 public:
  Deadline(Context& context, Seconds seconds)
      : thread_([this, &context, seconds](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
          if (stop.stop_requested()) return;
          over_ = true;
          context.request_stop();
        }) {}
  bool over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool over_ = false;
  std::jthread thread_;
};

// What has been added to a file.
class Tail {
 public:
  explicit Tail(std::filesystem::path file) : file_(std::move(file)) {}
  template <class Take>
  void lines(bool all, const Take& take) {
    std::ifstream in(file_, std::ios::binary);
    in.seekg(at_);
    std::string line;
    while (std::getline(in, line)) {
      if (in.eof() && !all) break;  // not whole yet
      at_ += static_cast<std::streamoff>(line.size()) + 1;
      take(line);
    }
  }

 private:
  std::filesystem::path file_;
  std::streamoff at_ = 0;
};

std::string text_of(const Report& report, int next) {
  std::string text = fmt::format("step {}:", report.step.value_or(next));
  for (const auto& [name, value] : report.metrics) text += fmt::format(" {}={}", name, value);
  for (const auto& [name, value] : report.attributes) text += fmt::format(" {}={}", name, to_string(value));
  return text;
}

// The metrics that something hangs on and that are missing or no numbers.
void judge(const Sweep& sweep, const Report& report, std::vector<std::string>& wrong) {
  for (const auto& [metric, mode] : objectives_of(sweep.options)) {
    const double* value = find_metric(report.metrics, metric);
    if (value != nullptr && !std::isfinite(*value))
      wrong.push_back(fmt::format("'{}' is {}: a trial whose values stay so is the worst of all", metric, *value));
  }
  for (const auto& bound : sweep.options.constraints)
    if (find_metric(report.metrics, bound.metric) == nullptr)
      wrong.push_back(fmt::format("the report has no '{}', on which 'constraints' sets a bound", bound.metric));
}

bool has_objectives(const Sweep& sweep, const Report& report) {
  for (const auto& [metric, mode] : objectives_of(sweep.options))
    if (find_metric(report.metrics, metric) == nullptr) return false;
  return true;
}

}  // namespace

DryRun dry_run(const Sweep& sweep, const Program& program, Seconds timeout,
               const std::function<void(std::string_view, std::string_view)>& say) {
  const detail::TemporaryFolder folder;
  const auto& options = sweep.options;
  Point point;
  if (!options.start_with.empty()) {
    point = sweep.space.point(options.start_with.front());
  } else {
    Rng rng = derived_rng(*options.seed, {0});
    point = sweep.space.sample(rng);
  }
  const Params params = sweep.space.params(point);
  say("trial", fmt::format("{}", params));
  Slot slot;
  slot.resources = options.resources;
  Context context({.trial = 0,
                   .attempt = 0,
                   .point = point,
                   .params = params,
                   .next_step = 0,
                   .restore = std::nullopt,
                   .slot = slot,
                   .directory = folder.path() / "trials" / "0",
                   .seed = *options.seed,
                   .checkpoints = folder.path()});
  Tail log(context.log());
  DryRun found;
  const auto printable = [](std::string_view line) {
    constexpr std::size_t most = 400;
    return hypertune::detail::terminal::elide(hypertune::detail::terminal::printable(line), most);
  };
  const auto show_log = [&](bool all) {
    log.lines(all, [&](const std::string& line) {
      constexpr std::string_view ours = "hypertune: ";
      if (line.starts_with(ours)) found.wrong.push_back(printable(line.substr(ours.size())));
      say(line.starts_with(ours) ? "hypertune" : "log", printable(line));
    });
  };
  int next = 0;
  Deadline deadline(context, timeout);
  std::optional<std::string> failure;
  bool ended = false;
  try {
    const auto run = program.begin(context);
    while (!found.report && !ended) {
      auto report = run->step();
      show_log(!report);
      if (!report) {
        ended = true;
        continue;
      }
      if (const auto saved = run->adopted()) {
        found.checkpoint = true;
        say("checkpoint", fmt::format("{} of {} steps", saved->name, saved->steps));
      }
      say("report", printable(text_of(*report, next)));
      next = report->step.value_or(next) + 1;
      if (has_objectives(sweep, *report)) found.report = std::move(report);
    }
  } catch (const TrialFailure& error) { failure = error.what(); } catch (const Error& error) {
    failure = error.what();
  }
  show_log(true);
  if (found.report) {
    judge(sweep, *found.report, found.wrong);
    return found;
  }
  std::string wanted;
  for (const auto& [metric, mode] : objectives_of(options)) wanted += (wanted.empty() ? "'" : ", '") + metric + "'";
  if (deadline.over())
    found.wrong.push_back(
        fmt::format("no report of {} within {} s: print one JSON line a step, flushed, or give it "
                    "longer by --timeout",
                    wanted, timeout));
  else if (failure)
    found.wrong.push_back("the trial failed: " + printable(*failure));
  else
    found.wrong.push_back(
        fmt::format("the command ended without a report of {}: print a JSON line such as "
                    "{{\"{}\": 0.5}}, or write an expression under 'trial.metrics'",
                    wanted, objectives_of(options).front().metric));
  return found;
}

}  // namespace hypertune::inline v0::command
