// CommandRun: begins and ends the command, alone or as one of several.
#pragma once

#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/command_run.hpp>
#include <hypertune/local/free_port.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/trial/detail/group_address.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <signal.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>

namespace hypertune::inline v0::local::detail {

std::optional<Report> CommandRun::step() {
  auto report = plan_.options.report == ReportRule::each || !leads() ? next_of_command() : only_report();
  if (report) add_units(*report);
  return report;
}

std::optional<Report> CommandRun::next_of_command() {
  for (;;) {
    if (context_->stop_requested() && !terminating_) terminate();
    // Whether the command has ended is known only by looking.
    if (!child_->status() && lines_.size() < max_waiting) pump(0);
    if (!holds())
      if (auto report = next_report()) {
        if (timing_.first == 0) timing_.first = arrived_;
        mark(*report);
        measure(report->metrics);
        return report;
      }
    if (child_->status()) return finish();
    look_for_stop();
    if (terminating_ && hypertune::detail::steady_seconds() >= kill_at_) child_->signal(SIGKILL);
    if (!leads()) {  // it need not print, and is within one step all the time
      context_->alive();
      if (context_->group().rest_asked()) {
        Report none;
        none.step = context_->next_step();
        return none;
      }
    }
    pump(0.05);
  }
}

std::optional<Report> CommandRun::only_report() {
  if (told_) return std::nullopt;
  for (;;) {
    while (auto report = next_of_command()) consider(std::move(*report));
    if (succeeded_ && !kept_ && plan_.only_measured) {
      count_step(steps_);
      consider(Report());
    }
    if (!succeeded_ || !kept_) return std::nullopt;
    measure(kept_->metrics);  // until its end
    ended_.push_back(std::move(*std::exchange(kept_, std::nullopt)));
    if (!repeated()) break;
    repetition_file().write(ended_);
    if (ended_.size() == static_cast<std::size_t>(plan_.options.repeat.times)) break;
    child_.reset();  // with all that the run has left behind
    start();
  }
  told_ = true;
  adopted_ = std::exchange(kept_checkpoint_, std::nullopt);
  Report report = repeated() ? combined(ended_, plan_.options.repeat.use, plan_.options.modes, plan_.tuned)
                             : std::move(ended_.back());
  report.over = true;
  report.remark.clear();
  return report;
}

void CommandRun::add_units(Report& report) {
  for (const auto& [metric, unit] : behind_numbers_)
    if (find_metric(report.metrics, metric) != nullptr && told_units_.insert(metric).second)
      report.units.emplace_back(metric, unit);
}

void CommandRun::measure(Metrics& metrics) {
  if (plan_.options.measure.empty()) return;
  if (!child_->status()) usage_.look(child_->processes());
  for (const auto& [name, what] : plan_.options.measure) {
    std::erase_if(metrics, [&](const auto& metric) { return metric.first == name; });
    metrics.emplace_back(name, usage_.value(what));
  }
}

// A report without the metrics that are tuned counts only as long as there is none with them.
void CommandRun::consider(Report report) {
  report.step = steps_ - 1;
  const bool judged = judges(report.metrics);
  bool better = judged || !kept_judges_;
  if (plan_.options.report == ReportRule::best && judged && kept_judges_ && !plan_.options.objectives.empty()) {
    const auto& name = plan_.options.objectives.front();
    const auto mode = plan_.options.modes.find(name);
    const bool maximize = mode != plan_.options.modes.end() && mode->second == Mode::maximize;
    const auto loss = [&](const Metrics& metrics) {  // NaN and both infinities are the worst
      const double value = *find_metric(metrics, name);
      return !std::isfinite(value) ? std::numeric_limits<double>::infinity() : maximize ? -value : value;
    };
    better = loss(report.metrics) < loss(kept_->metrics);
  }
  auto checkpoint = std::exchange(adopted_, std::nullopt);
  if (better) {
    kept_ = std::move(report);
    kept_judges_ = judged;
    std::swap(checkpoint, kept_checkpoint_);
  }
  if (checkpoint) store_->drop(*checkpoint);  // no report of its steps is recorded
}

RepetitionFile CommandRun::repetition_file() const {
  std::string configuration;
  hypertune::detail::append_json_object(configuration, context_->params());
  return {context_->directory() / "repetitions", std::move(configuration)};
}

// Updates of one line make one report.
bool CommandRun::several_reports(std::span<const Line> lines) const {
  std::size_t objects = 0;
  std::vector<std::optional<std::uint64_t>> rows(plan_.metrics.size());  // where each metric was found
  for (const Line& line : lines) {
    if (!line.whole) continue;
    const auto start = line.text.find_first_not_of(" \t\r");
    if (start != std::string::npos && line.text[start] == '{') {
      const auto parsed = parse_report_line(line.text);
      if (parsed && is_report(*parsed) && !parsed->metrics.empty()) {
        if (++objects > 1) return true;
        continue;
      }
    }
    if (line.text.size() > max_searched) continue;
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (std::regex_search(line.text, plan_.metrics[k].match)) {
        if (rows[k].value_or(line.row) != line.row) return true;
        rows[k] = line.row;
      }
  }
  return false;
}

void CommandRun::look_for_block(std::string_view piece, std::span<const Line> lines) {
  const bool terminal = plan_.options.output == CommandOutput::line;
  if (!leads() || (plan_.options.ordered && terminal)) return;  // a terminal does not keep writes apart
  bytes_held_ += piece.size();
  if (in_blocks_ || block_until_) return;
  bytes_held_ = piece.size();
  const bool several = lines.size() > 1 && several_reports(lines);
  if (plan_.options.ordered)
    in_blocks_ = several || (piece.size() == block && piece.back() != '\n');
  else if (several && waits_for_end(piece, lines))
    block_until_ = hypertune::detail::steady_seconds() + settling;
}

// A program that has gone on after such a wait does not keep its reports until its end: only a full block may be the
// sign of that then. One that names checkpoints flushes, and what it has saved must not wait; nor must other ranks.
bool CommandRun::waits_for_end(std::string_view piece, std::span<const Line> lines) const {
  if (of_several() || (goes_on_ && piece.size() < block)) return false;
  return std::none_of(lines.begin(), lines.end(), [](const Line& line) { return names_checkpoint(line); });
}

bool CommandRun::holds() {
  if (child_->status() || terminating_ || lines_.size() > max_lines_held || bytes_held_ > max_bytes_held) return false;
  if (!leads() || plan_.options.ordered) return in_blocks_;
  const double now = hypertune::detail::steady_seconds();
  if (block_until_) {
    if (now < *block_until_) return true;
    goes_on_ = true;
    if (lines_.empty()) block_until_.reset();  // what came together has been passed on
    return false;
  }
  return !lines_.empty() && !of_several() && !names_checkpoint(lines_.front()) &&
         now < lines_.front().at + short_settling;
}

void CommandRun::mark(Report& report) {
  if (!leads() || !child_->status() || terminating_ || received_sigterm()) return;
  if (plan_.options.ordered && !in_blocks_) return;
  report.over = true;
  if (++marked_ == 2 && came_at_the_end(timing_)) report.remark = about_buffering(timing_, plan_.options.output);
}

std::optional<CheckpointInfo> CommandRun::stop_and_save() {
  const int told = plan_.options.report == ReportRule::each ? steps_ : context_->next_step();
  terminate();
  wait_for_exit();
  std::optional<CheckpointInfo> made;
  const auto take = [&] {
    if (!adopted_) return;
    // A checkpoint of a step whose report was not passed on: restoring it would leave a gap in the reports.
    if (adopted_->steps > told)
      store_->drop(*adopted_);
    else
      made = adopted_;
    adopted_.reset();
  };
  while (next_report()) take();
  take();
  return made;
}

void CommandRun::suspend() {
  child_->signal(SIGSTOP);
  usage_.suspend();
  suspended_ = true;
}

void CommandRun::resume() {
  child_->signal(SIGCONT);
  usage_.resume();
  suspended_ = false;
  stopped_since_.reset();
}

bool CommandRun::reset(Context& context) {
  leave();
  context_ = &context;
  begin();
  return true;
}

void CommandRun::begin() {
  gang_.reset();
  adopted_.reset();
  not_adopted_.reset();
  ended_.clear();
  kept_checkpoint_.reset();
  behind_numbers_.clear();
  told_units_.clear();
  told_ = terminating_ = suspended_ = false;
  sigterms_before_ = sigterm_count();
  steps_ = context_->next_step();
  const auto& root = context_->checkpoints();
  store_.emplace(root.empty() ? context_->directory().parent_path().parent_path() : root);
  log_.emplace(context_->log(), context_->log_limit());
  if (context_->group().formed()) join();
  // A new folder for each attempt, so that unfinished checkpoints of an earlier attempt do not interfere (sealed ones
  // have been moved away by then). It is on the disk of the store, so that checkpoints are moved there and not copied.
  const auto saved = std::filesystem::absolute(store_->root()) / "trials" / std::to_string(context_->trial()) / "saved";
  // Only rank 0 makes checkpoints.
  folder_.clear();
  if (leads()) {
    store_->require_no_link(context_->trial());
    hypertune::detail::remove_tree(saved);
    folder_ = saved / std::to_string(context_->attempt());
    std::filesystem::create_directories(folder_);
  }
  if (repeated()) {
    ended_ = repetition_file().read();
    const auto most = static_cast<std::size_t>(plan_.options.repeat.times) - 1;  // one is left to be run
    if (ended_.size() > most) ended_.resize(most);
  }
  start();
}

void CommandRun::start() {
  last_line_.clear();
  lines_.clear();
  joined_.clear();
  join_.emplace(plan_.metrics.size(), plan_.options.objectives);
  attributes_ = {};
  out_.emplace(max_line, plan_.step.has_value());
  err_.emplace(max_line, plan_.step.has_value());
  first_step_ = plan_.options.first_step;
  over_ = told_passing_ = false;
  refusal_ = {};
  judged_ = told_repetition_ = exclude_host_ = no_retry_ = false;
  last_step_.reset();
  stopped_since_.reset();
  tail_.clear();
  out_tail_.clear();
  kept_.reset();
  kept_judges_ = succeeded_ = in_blocks_ = false;
  block_until_.reset();
  goes_on_ = false;
  bytes_held_ = 0;
  marked_ = 0;
  steps_ = context_->next_step();
  if (repeated()) log(fmt::format("hypertune: run {} of {} begins", ended_.size() + 1, plan_.options.repeat.times));
  const std::string restore =
      context_->restore() ? std::filesystem::absolute(context_->restore()->directory()).string() : "";
  const auto output = plan_.options.output == CommandOutput::line ? OutputStream::terminal
                      : plan_.options.ordered                     ? OutputStream::packets
                                                                  : OutputStream::pipe;
  usage_.begin();
  child_ = std::make_unique<ChildProcess>(arguments(restore), environment(restore), output);
  timing_ = {.began = hypertune::detail::steady_seconds()};
}

std::vector<std::string> CommandRun::arguments(const std::string& restore) const {
  CommandLine::Values values;
  for (const auto& [name, value] : context_->params()) values[name] = value;
  const auto directory = std::filesystem::absolute(context_->directory());
  const std::pair<const char*, std::string> words[] = {{"trial", std::to_string(context_->trial())},
                                                       {"step", std::to_string(steps_)},
                                                       {"directory", directory},
                                                       {"checkpoint", folder_.string()},
                                                       {"restore", restore},
                                                       {"repetition", std::to_string(ended_.size())}};
  for (const auto& [name, value] : words) values.emplace(name, value);  // a parameter of that name takes precedence
  for (const auto& [path, text] : plan_.files) values.emplace(path, (directory / path).string());
  try {
    for (const auto& [path, text] : plan_.files) {
      std::filesystem::create_directories((directory / path).parent_path());
      hypertune::detail::replace_file(directory / path, text.without_inactive_lines(values));
    }
    return plan_.line(values);
  } catch (const Error& e) {
    if (e.code() != Errc::usage) throw;
    throw TrialFailure(Cause{.text = e.what(), .retry = false});  // a value that does not fit fails the same way again
  }
}

void CommandRun::join() {
  Group& group = context_->group();
  gang_.emplace();
  gang_->place = group.join(true);
  const int rank = gang_->place.rank;
  const auto say = [&](const std::string& what, const std::string& value) {
    group.set(fmt::format("command {}", what), value);
  };
  const auto hear = [&](const std::string& what) {
    if (auto value = group.wait(fmt::format("command {}", what), patience)) return *value;
    throw TrialFailure(
        Cause{.source = FailureSource::infrastructure, .text = fmt::format("nothing was heard of the {}", what)});
  };
  if (rank == 0) {
    try {
      gang_->address = hypertune::detail::address_of(gang_->place);
    } catch (const Error& e) {
      if (e.code() != Errc::usage) throw;
      throw TrialFailure(Cause{.text = e.what(), .retry = false});  // it would fail the same way again
    }
    gang_->port = std::to_string(free_port(gang_->address));
    say("address", gang_->address);
    say("port", gang_->port);
  } else {
    gang_->address = hear("address");
    gang_->port = hear("port");
  }
  // Launchers with one process per GPU make the GPUs of all processes on the host visible to each of them, and each
  // process uses the one of its local rank.
  const Slot& slot = context_->slot();
  const std::string own = own_devices();
  if (own.empty() || slot.gpus.size() != 1 || slot.resources.gpus < 1) return;
  say(fmt::format("devices of rank {}", rank), own);
  for (int other = 0; other < gang_->place.size(); ++other)
    if (gang_->place.hosts[static_cast<std::size_t>(other)] == gang_->place.host()) {
      const std::string device = other == rank ? own : hear(fmt::format("devices of rank {}", other));
      gang_->devices += (gang_->devices.empty() ? "" : ",") + device;
    }
}

std::string CommandRun::own_devices() const {
  if (plan_.options.bind_to_slot) return SlotBinding({}, plan_.gpus, false).visible_devices(context_->slot());
  const char* bound = std::getenv("CUDA_VISIBLE_DEVICES");
  return bound == nullptr ? "" : bound;
}

void CommandRun::add_place(std::map<std::string, std::optional<std::string>>& entries) const {
  const GroupPlace& place = gang_->place;
  const auto add = [&](const char* name, int value) { entries[name] = std::to_string(value); };
  add("RANK", place.rank);
  add("LOCAL_RANK", place.local_rank());
  add("WORLD_SIZE", place.size());
  add("LOCAL_WORLD_SIZE", place.local_size());
  add("GROUP_RANK", gang_->host());
  add("HYPERTUNE_RANK", place.rank);
  add("HYPERTUNE_WORLD_SIZE", place.size());
  entries["TORCHELASTIC_RESTART_COUNT"] = std::to_string(context_->attempt());
  entries["TORCHELASTIC_USE_AGENT_STORE"] = std::nullopt;  // rank 0 of the command itself listens
  entries["MASTER_ADDR"] = gang_->address;
  entries["MASTER_PORT"] = gang_->port;
}

std::map<std::string, std::optional<std::string>> CommandRun::environment(const std::string& restore) const {
  std::map<std::string, std::optional<std::string>> entries;
  if (plan_.options.bind_to_slot)
    for (const auto& [name, value] : SlotBinding({}, plan_.gpus, false).environment(context_->slot()))
      entries[name] = value;
  if (gang_ && !gang_->devices.empty()) entries["CUDA_VISIBLE_DEVICES"] = gang_->devices;
  // What prints to a terminal may draw on it.
  if (plan_.options.output == CommandOutput::line) {
    entries["TERM"] = "dumb";
    entries["NO_COLOR"] = "1";
  }
  for (const auto& [name, value] : plan_.options.environment) entries[name] = value;
  if (gang_) add_place(entries);
  std::string params;
  hypertune::detail::append_json_object(params, context_->params());
  entries["HYPERTUNE_PARAMS"] = params;
  entries["HYPERTUNE_TRIAL"] = std::to_string(context_->trial());
  entries["HYPERTUNE_STEP"] = std::to_string(steps_);
  const auto repetition = static_cast<int>(ended_.size());
  entries["HYPERTUNE_SEED"] = std::to_string(seed_of_repetition(context_->seed(), repetition));
  entries["HYPERTUNE_REPETITION"] = std::to_string(repetition);
  entries["HYPERTUNE_DIRECTORY"] = std::filesystem::absolute(context_->directory()).string();
  entries["HYPERTUNE_CHECKPOINT"] = leads() ? std::optional(folder_.string()) : std::nullopt;
  entries["HYPERTUNE_RESTORE"] = restore.empty() ? std::nullopt : std::optional(restore);
  return entries;
}

std::optional<Report> CommandRun::finish() {
  const int status = *child_->status();
  if (terminating_) return std::nullopt;
  const bool by_sigterm = process::exit_code(status) == 128 + SIGTERM;
  constexpr double apart = 0.25;  // seconds: processes are usually signalled one after the other
  for (const double until = hypertune::detail::steady_seconds() + apart;
       by_sigterm && !received_sigterm() && hypertune::detail::steady_seconds() < until;)
    pump(0.01);
  if (received_sigterm()) return end_with_others(status);
  const auto& success = plan_.options.success;
  if (WIFEXITED(status) && std::find(success.begin(), success.end(), WEXITSTATUS(status)) != success.end()) {
    succeeded_ = true;
    if (!leads()) {
      context_->group().set(end_of(gang_->place.rank), "");
      return std::nullopt;
    }
    // If the attempt began from a checkpoint, there were reports before it.
    if (judged_ || plan_.only_measured || refusal_.text.empty() || context_->next_step() > 0) {
      wait_for_others();
      return std::nullopt;
    }
    const auto& wanted = plan_.options.objectives;
    throw TrialFailure(Cause{.text = fmt::format("ended without a report{}: {}",
                                                 wanted.empty() ? "" : " of " + quoted(wanted), refusal_.text),
                             .retry = false});
  }
  Cause cause = cause_of_status(status, "the command");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    cause.text = "the command exited with code 0, which is not among those of 'trial.success'";
  if (repeated())
    cause.text = fmt::format("in run {} of {}: ", ended_.size() + 1, plan_.options.repeat.times) + cause.text;
  std::string words = !tail_.tells() && !out_tail_.text().empty() ? out_tail_.text() : tail_.text();
  if (words.empty() && of_several()) words = last_line_;
  append_last_output(cause, words, ": ");
  if (of_several() && cause.source == FailureSource::user && failed_because_of_others(words)) return std::nullopt;
  cause.exclude_host = exclude_host_;
  cause.retry = !no_retry_;
  throw TrialFailure(std::move(cause));
}

void CommandRun::look_for_stop() {
  const double now = hypertune::detail::steady_seconds();
  if (!of_several() || terminating_ || now < look_for_stop_at_) return;
  look_for_stop_at_ = now + std::min(plan_.options.stopped_timeout / 8, 5.0);
  if (!child_->is_stopped()) {
    stopped_since_.reset();
    return;
  }
  if (!stopped_since_) stopped_since_ = now;
  if (now - *stopped_since_ < plan_.options.stopped_timeout) return;
  child_->signal(SIGKILL);
  throw TrialFailure(
      Cause{.source = FailureSource::infrastructure,
            .text = fmt::format("the command was stopped (SIGSTOP) for {:.0f} s", now - *stopped_since_)});
}

void CommandRun::wait_for_others() {
  if (!of_several()) return;
  const double until = hypertune::detail::steady_seconds() + plan_.options.stop_grace;
  bool all = true;
  for (int rank = 1; all && rank < gang_->place.size(); ++rank) all = wait_in_group(end_of(rank), until);
  if (all || context_->stop_requested()) return;
  // One that has failed waits longer than this, and its failure counts.
  const double soon = std::max(0.05, 2.0 / gang_->place.size());
  for (int rank = 1; rank < gang_->place.size(); ++rank)
    if (wait_in_group(failure_of(rank), hypertune::detail::steady_seconds() + soon)) {
      wait_in_group(never_set, hypertune::detail::steady_seconds() + patience_elsewhere + 3 * behind_others);
      return;
    }
}

bool CommandRun::failed_because_of_others(const std::string& words) {
  const bool caused_by_peers = mentions_lost_connection(words);
  double seconds = gang_->place.on_one_host() ? patience_here : patience_elsewhere;
  if (caused_by_peers) seconds += behind_others;
  if (!fails_first(caused_by_peers)) seconds += behind_others;
  wait_in_group(never_set, hypertune::detail::steady_seconds() + seconds);
  return context_->stop_requested();
}

bool CommandRun::fails_first(bool caused_by_peers) {
  const std::pair mine(caused_by_peers, run_clock());
  Group& group = context_->group();
  try {
    group.set(failure_of(gang_->place.rank), fmt::format("{:d} {:.6f}", mine.first, mine.second));
    for (int rank = 0; rank < gang_->place.size(); ++rank)
      if (rank != gang_->place.rank)
        if (const auto at = group.wait(failure_of(rank), 0.2 / gang_->place.size());
            at && std::pair(at->starts_with('1'), std::strtod(at->c_str() + 1, nullptr)) < mine)
          return false;
  } catch (const GroupError&) {}  // the attempt is about to end
  return true;
}

bool CommandRun::wait_in_group(const std::string& key, double until) {
  try {
    for (;;) {
      const double left = until - hypertune::detail::steady_seconds();
      if (context_->stop_requested() || left <= 0) return false;
      context_->alive();
      if (context_->group().wait(key, std::min(left, 1.0))) return true;
    }
  } catch (const GroupError&) { return false; }
}

std::optional<Report> CommandRun::end_with_others(int status) {
  constexpr double patience = 2;  // Slurm kills all processes after KillWait, usually 30 s
  const double until = hypertune::detail::steady_seconds() + patience;
  while (!context_->stop_requested() && hypertune::detail::steady_seconds() < until) pump(0.02);
  if (context_->stop_requested()) return std::nullopt;
  throw TrialFailure(
      Cause{.source = FailureSource::preemption,
            .text = "all processes here were asked to end (SIGTERM): " + cause_of_status(status, "the command").text});
}

void CommandRun::terminate() {
  if (terminating_) return;
  terminating_ = true;
  kill_at_ = hypertune::detail::steady_seconds() + plan_.options.stop_grace;
  if (!received_sigterm()) child_->signal(SIGTERM);  // a second SIGTERM may interrupt the reaction to the first one
  if (suspended_) child_->signal(SIGCONT);
}

void CommandRun::leave() {
  if (child_ && !child_->status()) {
    terminate();
    wait_for_exit();
  }
  child_.reset();
  if (kept_checkpoint_) store_->drop(*kept_checkpoint_);
  kept_checkpoint_.reset();
  log_.reset();
}

void CommandRun::wait_for_exit() {
  for (; !child_->status(); pump(0.05))
    if (hypertune::detail::steady_seconds() >= kill_at_) child_->signal(SIGKILL);
}

void CommandRun::log(std::string_view line, bool whole) {
  if (of_several() && !line.empty()) last_line_ = line.substr(0, 300);
  std::string text(line);
  if (whole) text += '\n';
  if (log_) log_->write(text);
}

}  // namespace hypertune::inline v0::local::detail
