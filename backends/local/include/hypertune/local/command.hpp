// CommandProgram: a trial that is any executable; it reports by lines on its standard output.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/bounded_log.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/free_port.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/group_address.hpp>
#include <hypertune/trial/metric_name.hpp>
#include <hypertune/trial/program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// What to do about a failure when a line of the command's output matches.
struct LogRule {
  std::string match;  ///< a regular expression (ECMAScript), found anywhere in a line
  bool exclude_host = false;
  bool no_retry = false;
};

struct CommandOptions {
  std::vector<std::string> command = {};  ///< the program and its arguments, with {names}: see CommandLine
  std::map<std::string, std::string> metrics =
      {};  ///< by name, a regular expression with one group, for lines without JSON
  std::map<std::string, std::string> environment = {};  ///< added to this program's
  std::vector<LogRule> log_rules = {};
  Seconds grace = 5;  ///< seconds between SIGTERM and SIGKILL
  /// The metrics that are tuned. A line of JSON that has none of them, no step and no checkpoint is no report (a
  /// program may print its settings so). Empty: every line of JSON with a number in it is one.
  std::vector<std::string> objectives = {};
  /// Whether the command is told its slot (OMP_NUM_THREADS, CUDA_VISIBLE_DEVICES): for executors whose trials share a
  /// process, which cannot be bound to the slot of one of them.
  bool bind_to_slot = false;
};

namespace detail {

struct CommandPlan {
  CommandLine line;
  std::vector<std::pair<std::string, std::regex>> metrics;
  struct Rule {
    std::regex match;
    LogRule what;
  };
  std::vector<Rule> rules;
  CommandOptions options;
  std::vector<std::string> gpus;  // by the slot's numbers
};

inline std::regex compile(const std::string& pattern, std::string_view where, std::size_t groups) {
  try {
    std::regex regex(pattern, std::regex::ECMAScript | std::regex::optimize);
    if (regex.mark_count() < groups)
      fail(Errc::usage, "{}: the regular expression '{}' needs a group (…) around the number", where, pattern);
    return regex;
  } catch (const std::regex_error& e) {
    fail(Errc::usage, "{}: '{}' is no regular expression: {}", where, pattern, e.what());
  }
}

class CommandRun final : public TrialRun {
 public:
  CommandRun(const CommandPlan& plan, Context& context) : plan_(plan), context_(&context) { begin(); }
  ~CommandRun() override { leave(); }
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  bool can_save() const override { return false; }  // it saves when it wants to; see adopted()
  void save(CheckpointWriter&) override {}

  std::optional<Report> step() override {
    for (;;) {
      if (context_->stop_requested() && !terminating_) terminate();
      if (auto report = next_report()) return report;
      if (child_->status()) return finish();
      if (terminating_ && hypertune::detail::steady_seconds() >= kill_at_) child_->signal(SIGKILL);
      if (!leads()) {  // it need not print, and all that it does is one step
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

  std::optional<CheckpointInfo> adopted() override { return std::exchange(adopted_, std::nullopt); }

  std::optional<CheckpointInfo> stop_and_save() override {
    const int told = steps_;
    terminate();
    wait_for_exit();
    std::optional<CheckpointInfo> made;
    const auto take = [&] {
      if (!adopted_) return;
      // Of a step whose report nobody has been told: to go on from there would leave a gap.
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

  void suspend() override {
    child_->signal(SIGSTOP);
    suspended_ = true;
  }
  void resume() override {
    child_->signal(SIGCONT);
    suspended_ = false;
  }

  bool reset(Context& context) override {
    leave();
    context_ = &context;
    begin();
    return true;
  }

 private:
  static constexpr std::size_t max_line = std::size_t{1} << 20U;
  static constexpr std::size_t max_searched = 4096;  // by expressions, whose depth grows with it
  static constexpr double patience = 30;             // for what the other ranks say before their commands begin

  /// The command as one of several, which are begun and ended together: a gang.
  struct Gang {
    GroupPlace place;
    std::string address, port;  // where rank 0 listens
    std::string devices;        // of all ranks on this host, by local rank; empty: it has its own alone

    int host() const {  // the number of this host among the hosts, by rank
      std::vector<std::string_view> seen;
      for (const auto& name : place.hosts) {
        if (name == place.host()) break;
        if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
      }
      return static_cast<int>(seen.size());
    }
  };

  bool leads() const { return !gang_ || gang_->place.rank == 0; }
  bool of_several() const { return gang_ && gang_->place.size() > 1; }

  void begin() {
    gang_.reset();
    last_line_.clear();
    lines_.clear();
    pending_.clear();
    out_ = err_ = {};
    refusal_ = {};
    judged_ = told_repetition_ = false;
    last_step_.reset();
    tail_.clear();
    adopted_.reset();
    terminating_ = suspended_ = exclude_host_ = no_retry_ = false;
    ends_before_ = ends_from_outside();
    steps_ = context_->next_step();
    const auto& root = context_->checkpoints();
    store_.emplace(root.empty() ? context_->directory().parent_path().parent_path() : root);
    log_.emplace(context_->log(), context_->log_limit());
    if (context_->group().formed()) join();
    // The command's own, anew for each attempt: what an earlier one had begun when it died is in nobody's way. (Sealed
    // checkpoints have been moved out by then.)
    // It lies on the disk of the store, so that a checkpoint is moved there and not copied.
    const auto saved =
        std::filesystem::absolute(store_->root()) / "trials" / std::to_string(context_->trial()) / "saved";
    // Of a gang, rank 0's checkpoints are the trial's.
    folder_.clear();
    if (leads()) {
      std::error_code ignored;
      std::filesystem::remove_all(saved, ignored);
      folder_ = saved / std::to_string(context_->attempt());
      std::filesystem::create_directories(folder_);
    }
    CommandLine::Values values;
    for (const auto& [name, value] : context_->params()) values[name] = to_string(value);
    const std::string restore =
        context_->restore() ? std::filesystem::absolute(context_->restore()->directory()).string() : "";
    const std::pair<const char*, std::string> words[] = {
        {"trial", std::to_string(context_->trial())},
        {"step", std::to_string(steps_)},
        {"directory", std::filesystem::absolute(context_->directory())},
        {"checkpoint", folder_.string()},
        {"restore", restore}};
    for (const auto& [name, value] : words) values.emplace(name, value);  // a parameter of that name wins
    child_ = std::make_unique<ChildProcess>(plan_.line(values), environment(restore));
  }

  // All ranks have come here before any command begins, so that each finds the others.
  void join() {
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
        throw TrialFailure(Cause{.text = e.what(), .retry = false});  // it would be so again
      }
      gang_->port = std::to_string(free_port(gang_->address));
      say("address", gang_->address);
      say("port", gang_->port);
    } else {
      gang_->address = hear("address");
      gang_->port = hear("port");
    }
    // Launchers of one process a GPU show each process all that this host's processes have, and it takes the one of its
    // local rank.
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
  std::string own_devices() const {
    if (plan_.options.bind_to_slot) return SlotBinding({}, plan_.gpus, false).visible_devices(context_->slot());
    const char* bound = std::getenv("CUDA_VISIBLE_DEVICES");
    return bound == nullptr ? "" : bound;
  }

  // As torchrun has it.
  void add_place(std::map<std::string, std::optional<std::string>>& entries) const {
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
    entries["TORCHELASTIC_USE_AGENT_STORE"] = std::nullopt;  // rank 0 of the command listens
    entries["MASTER_ADDR"] = gang_->address;
    entries["MASTER_PORT"] = gang_->port;
  }

  // Added to this program's.
  std::map<std::string, std::optional<std::string>> environment(const std::string& restore) const {
    std::map<std::string, std::optional<std::string>> entries;
    if (plan_.options.bind_to_slot)
      for (const auto& [name, value] : SlotBinding({}, plan_.gpus, false).environment(context_->slot()))
        entries[name] = value;
    if (gang_ && !gang_->devices.empty()) entries["CUDA_VISIBLE_DEVICES"] = gang_->devices;
    for (const auto& [name, value] : plan_.options.environment) entries[name] = value;
    if (gang_) add_place(entries);
    std::string params;
    hypertune::detail::append_json_object(params, context_->params());
    entries["HYPERTUNE_PARAMS"] = params;
    entries["HYPERTUNE_TRIAL"] = std::to_string(context_->trial());
    entries["HYPERTUNE_STEP"] = std::to_string(steps_);
    entries["HYPERTUNE_SEED"] = std::to_string(context_->seed());
    entries["HYPERTUNE_DIRECTORY"] = std::filesystem::absolute(context_->directory()).string();
    entries["HYPERTUNE_CHECKPOINT"] = leads() ? std::optional(folder_.string()) : std::nullopt;
    entries["HYPERTUNE_RESTORE"] = restore.empty() ? std::nullopt : std::optional(restore);
    return entries;
  }

  // What the command has printed of a line that is not whole yet.
  struct Partial {
    std::string text;
    bool cut = false;  // the line was too long: what came of it was logged as it came
  };
  struct Line {
    std::string text;
    bool whole = true;  // false: a piece of one that is too long for a report
    bool first = true;  // … its first one
  };

  void pump(double seconds) {
    std::string out, err;
    child_->pump(seconds, out, err);
    cut(err_, err, [&](Line line) {
      log(line.text, line.whole);
      match_rules(line.text);
      tail_.push_back(line.text.substr(0, 500));
      if (tail_.size() > 3) tail_.pop_front();
    });
    cut(out_, out, [&](Line line) { lines_.push_back(std::move(line)); });
  }

  // Whole lines go to `take`; at the end of the output the last one does even without its newline.
  template <class Take>
  void cut(Partial& partial, std::string_view more, const Take& take) {
    if (!more.empty()) context_->alive();  // it prints: it is not hung
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

  std::optional<Report> next_report() {
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
      // Most of what is printed is none, and costs no more than this look.
      const auto begin = line.text.find_first_not_of(" \t\r");
      const bool object = begin != std::string::npos && line.text[begin] == '{';
      std::string why;
      auto parsed = object ? parse_report_line(line.text, &why) : std::nullopt;
      const bool noted = parsed && only_notes(*parsed);
      if (noted) {  // no step: they go with the next report, and the line to the log
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

  // ---- What is no report, and why ----

  // A line that names what is tuned, a step or a checkpoint, is meant as a report.
  bool looks_like_report(std::string_view line) const {
    const auto& wanted = plan_.options.objectives;
    line = line.substr(0, 4096);
    for (const std::string_view name : {"\"step\"", "\"checkpoint\""})
      if (line.find(name) != std::string_view::npos) return true;
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const auto& name) { return line.find(name) != std::string_view::npos; });
  }
  std::string what_it_lacks(const ReportLine& line) const {
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
  static std::string quoted(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
    return out;
  }
  /// `meant`: it must have been meant as a report, so that its loss is said where the user looks. Of the others the
  /// first is remembered, for a trial that ends without any.
  void refuse(std::string_view line, const std::string& why, bool meant) {
    if (meant) log(fmt::format("hypertune: the line above is not taken as a report: {}", why));
    remember(line, why, meant);
  }
  void remember(std::string_view line, const std::string& why, bool meant) {
    if (!refusal_.text.empty() && (refusal_.meant || !meant)) return;
    refusal_ = {fmt::format("the line '{}' is not one: {}", shortened(line), why), meant};
  }
  bool judges(const Metrics& metrics) const {
    const auto& wanted = plan_.options.objectives;
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const auto& name) { return find_metric(metrics, name) != nullptr; });
  }
  void note_judged(const Metrics& metrics) { judged_ = judged_ || judges(metrics); }

  /// Texts with a step, none of them where a number of what is tuned should stand.
  bool only_notes(const ReportLine& line) const {
    const auto& wanted = plan_.options.objectives;
    return line.metrics.empty() && !line.checkpoint &&
           std::none_of(wanted.begin(), wanted.end(), [&](const auto& name) { return line.text(name) != nullptr; });
  }
  bool is_report(const ReportLine& line) const {
    if (line.metrics.empty() && !line.checkpoint) return false;
    const auto& wanted = plan_.options.objectives;
    return wanted.empty() || line.step || line.checkpoint ||
           std::any_of(wanted.begin(), wanted.end(),
                       [&](const auto& name) { return find_metric(line.metrics, name) != nullptr; });
  }

  /// A text in a report is noted of the trial, unless it stands where a number should.
  bool is_attribute(const std::string& name) const {
    const auto& wanted = plan_.options.objectives;
    return hypertune::detail::is_attribute_name(name) && std::find(wanted.begin(), wanted.end(), name) == wanted.end();
  }

  void note_texts(std::vector<std::pair<std::string, std::string>>& texts) {
    for (auto& [name, text] : texts)
      if (is_attribute(name) && (attributes_.size() < max_attributes || attributes_.contains(name)))
        attributes_.set(name, std::move(text));
  }

  std::optional<Report> take_report(ReportLine line) {
    if (line.checkpoint)
      adopt(*line.checkpoint, line.step ? *line.step + 1 : line.metrics.empty() ? steps_ : steps_ + 1);
    note_texts(line.texts);
    if (line.metrics.empty()) return std::nullopt;  // a checkpoint alone is no step: it goes with the next report
    Report report(std::move(line.metrics));
    report.attributes = std::exchange(attributes_, {});
    note_judged(report.metrics);
    report.step = line.step;
    count_step(line.step.value_or(steps_));
    return report;
  }

  // Of a step that was recorded before nothing is recorded again. That is right where a trial does steps again after a
  // restart, which this attempt knows nothing of; within one attempt it is hardly what was meant.
  void count_step(int step) {
    if (last_step_ && step <= *last_step_ && !std::exchange(told_repetition_, true))
      log(fmt::format(
          "hypertune: the report of step {} comes after that of step {}: it is taken for a repetition and does "
          "not count (said once)",
          step, *last_step_));
    last_step_ = std::max(step, last_step_.value_or(0));
    steps_ = step + 1;
  }

  void adopt(const std::string& name, int steps) {
    try {
      require_safe_name(name);
      adopted_ = store_->adopt(context_->trial(), steps, folder_ / name);
    } catch (const Error& e) { log(fmt::format("hypertune: the checkpoint '{}' is not taken: {}", name, e.what())); }
  }

  /// `found`: whether an expression had something to find in the line.
  std::optional<Report> match_metrics(const std::string& line, bool& found) {
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
      if (find_metric(pending_, name) != nullptr && !complete) complete = flush_metrics();  // the next step's
      pending_.emplace_back(name, *value);
    }
    if (!complete && !pending_.empty() && pending_.size() == plan_.metrics.size()) complete = flush_metrics();
    return complete;
  }
  std::optional<Report> flush_metrics() {
    count_step(steps_);
    note_judged(pending_);
    Report report(std::exchange(pending_, {}));
    report.attributes = std::exchange(attributes_, {});
    return report;
  }

  void match_rules(std::string_view line) {
    line = line.substr(0, max_searched);
    for (const auto& rule : plan_.rules)
      if (std::regex_search(line.begin(), line.end(), rule.match)) {
        exclude_host_ = exclude_host_ || rule.what.exclude_host;
        no_retry_ = no_retry_ || rule.what.no_retry;
      }
  }

  std::optional<Report> finish() {
    const int status = *child_->status();
    if (terminating_) return std::nullopt;
    const bool by_sigterm = process::exit_code(status) == 128 + SIGTERM;
    constexpr double apart = 0.25;  // seconds: who ends all processes signals one after the other
    for (const double until = hypertune::detail::steady_seconds() + apart;
         by_sigterm && !told_from_outside() && hypertune::detail::steady_seconds() < until;)
      pump(0.01);
    if (told_from_outside()) return end_with_others(status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      if (!leads()) {
        context_->group().set(end_of(gang_->place.rank), "");
        return std::nullopt;
      }
      // Of one that goes on from a checkpoint there were reports before.
      if (judged_ || refusal_.text.empty() || context_->next_step() > 0) {
        wait_for_others();
        return std::nullopt;
      }
      const auto& wanted = plan_.options.objectives;
      throw TrialFailure(Cause{.text = fmt::format("ended without a report{}: {}",
                                                   wanted.empty() ? "" : " of " + quoted(wanted), refusal_.text),
                               .retry = false});
    }
    Cause cause = cause_of_status(status, "the command");
    std::string words;
    for (const auto& line : tail_) words += (words.empty() ? "" : " | ") + line;
    if (words.empty() && of_several()) words = last_line_;
    add_last_words(cause, words, ": ");
    if (of_several() && cause.source == FailureSource::user && others_are_why(words)) return std::nullopt;
    cause.exclude_host = exclude_host_;
    cause.retry = !no_retry_;
    throw TrialFailure(std::move(cause));
  }

  static std::string end_of(int rank) { return fmt::format("command of rank {} has ended", rank); }

  // Rank 0 is through: the others have some time to end by themselves. One that fails in it ends the attempt.
  void wait_for_others() {
    if (!of_several()) return;
    const double until = hypertune::detail::steady_seconds() + plan_.options.grace;
    for (int rank = 1; rank < gang_->place.size(); ++rank)
      if (!wait_in_group(end_of(rank), until)) return;
  }
  // A command whose peers are gone fails of that. Who else is lost is heard of meanwhile, and the attempt is ended for
  // that; where it was a host, its silence comes first. Of several commands that fail, the one whose waiting ends first
  // is named. Their ends are noticed in any order on a busy machine, so one that speaks of a lost connection is named
  // only if no other fails.
  bool others_are_why(const std::string& words) {
    const double patience_here = 1, patience_elsewhere = 12, behind_others = 2;
    const bool follows = speaks_of_lost_connection(words);
    double seconds = gang_->place.on_one_host() ? patience_here : patience_elsewhere;
    if (follows) seconds += behind_others;
    if (!fails_first(follows)) seconds += behind_others;
    wait_in_group("an end that nobody tells", hypertune::detail::steady_seconds() + seconds);
    return context_->stop_requested();
  }
  // Whether no other command that may be the reason is known to have failed before.
  bool fails_first(bool follows) {
    const std::pair mine(follows, run_clock());
    const auto key = [](int rank) { return fmt::format("command of rank {} has failed", rank); };
    Group& group = context_->group();
    try {
      group.set(key(gang_->place.rank), fmt::format("{:d} {:.6f}", mine.first, mine.second));
      for (int rank = 0; rank < gang_->place.size(); ++rank)
        if (rank != gang_->place.rank)
          if (const auto at = group.wait(key(rank), 0.2 / gang_->place.size());
              at && std::pair(at->starts_with('1'), std::strtod(at->c_str() + 1, nullptr)) < mine)
            return false;
    } catch (const GroupError&) {}  // the attempt is about to end
    return true;
  }
  // False: nobody has set it until then, or the attempt is to end.
  bool wait_in_group(const std::string& key, double until) {
    try {
      for (;;) {
        const double left = until - hypertune::detail::steady_seconds();
        if (context_->stop_requested() || left <= 0) return false;
        context_->alive();
        if (context_->group().wait(key, std::min(left, 1.0))) return true;
      }
    } catch (const GroupError&) { return false; }
  }

  // The command got SIGTERM with all other processes here, and has left. Its driver is about to hear of that as well,
  // and asks for the end of the attempt; else nobody knows why it was ended, but it was not the trial's doing.
  std::optional<Report> end_with_others(int status) {
    constexpr double patience = 2;  // Slurm kills all after KillWait, mostly 30 s
    const double until = hypertune::detail::steady_seconds() + patience;
    while (!context_->stop_requested() && hypertune::detail::steady_seconds() < until) pump(0.02);
    if (context_->stop_requested()) return std::nullopt;
    throw TrialFailure(Cause{
        .source = FailureSource::preemption,
        .text = "all processes here were asked to end (SIGTERM): " + cause_of_status(status, "the command").text});
  }
  bool told_from_outside() const { return ends_from_outside() != ends_before_; }

  void terminate() {
    if (terminating_) return;
    terminating_ = true;
    kill_at_ = hypertune::detail::steady_seconds() + plan_.options.grace;
    if (!told_from_outside()) child_->signal(SIGTERM);  // a second one may cut short what the first one began
    if (suspended_) child_->signal(SIGCONT);
  }

  // Asks it to leave, and sees to it.
  void leave() {
    if (child_ && !child_->status()) {
      terminate();
      wait_for_exit();
    }
    child_.reset();
    log_.reset();
  }
  void wait_for_exit() {
    for (; !child_->status(); pump(0.05))
      if (hypertune::detail::steady_seconds() >= kill_at_) child_->signal(SIGKILL);
  }

  void log(std::string_view line, bool whole = true) {
    if (of_several() && !line.empty()) last_line_ = line.substr(0, 300);
    std::string text(line);
    if (whole) text += '\n';
    if (log_) log_->write(text);
  }

  const CommandPlan& plan_;
  Context* context_;
  std::optional<LocalCheckpointStore> store_;
  std::optional<Gang> gang_;
  std::filesystem::path folder_;  // in which it makes its checkpoints; none but rank 0 does
  std::optional<BoundedLog> log_;
  std::unique_ptr<ChildProcess> child_;
  Partial out_, err_;
  std::deque<Line> lines_;        // of its standard output, not looked at yet
  std::deque<std::string> tail_;  // the last ones of its standard error
  std::string last_line_;         // of a gang, what was logged last
  struct {
    std::string text;
    bool meant = false;
  } refusal_;              // the first line that was not taken, and why
  bool judged_ = false;    // all that is tuned has been reported
  Attributes attributes_;  // of a line that was no step, for the next report
  Metrics pending_;        // read by regular expressions
  std::optional<CheckpointInfo> adopted_;
  int steps_ = 0;
  std::optional<int> last_step_;  // the highest one that this attempt has reported
  bool told_repetition_ = false;
  bool terminating_ = false, suspended_ = false, exclude_host_ = false, no_retry_ = false;
  double kill_at_ = 0;
  int ends_before_ = 0;  // ends_from_outside() when the command began
};

}  // namespace detail

/// A trial that is an external command. It gets its parameters by {name} in its arguments, or as JSON in
/// HYPERTUNE_PARAMS; reports by JSON lines on its standard output, one a step (`{"step": 3, "accuracy": 0.91,
/// "checkpoint": "step-3"}`); and saves by writing a folder under HYPERTUNE_CHECKPOINT and naming it in a report. Its
/// other output goes to trials/<id>/log. Works under every executor. Of a trial of several workers each runs the
/// command, with its rank in its environment as torchrun has it; rank 0's reports and checkpoints are the trial's.
class CommandProgram final : public Program {
 public:
  /// Error of kind `usage` if the command names an unknown parameter, or an expression is malformed.
  CommandProgram(const SearchSpace& space, CommandOptions options)
      : CommandProgram(names_of(space), std::move(options)) {}
  CommandProgram(const std::vector<std::string>& names, CommandOptions options)
      : plan_{CommandLine(options.command, names), {}, {}, options, options.bind_to_slot ? usable_gpus() : none()} {
    const auto require_free = [](const std::string& name) {
      if (const auto why = hypertune::detail::reserved_in_report_lines(name); !why.empty())
        fail(Errc::usage, "{}", why);
    };
    for (const auto& name : options.objectives) require_free(name);
    for (const auto& [name, pattern] : options.metrics) require_free(name);
    for (const auto& [name, pattern] : options.metrics)
      plan_.metrics.emplace_back(name, detail::compile(pattern, "metrics: " + name, 1));
    for (const auto& rule : options.log_rules)
      plan_.rules.push_back({detail::compile(rule.match, "failures: log", 0), rule});
    if (!(options.grace >= 0)) fail(Errc::usage, "the command's grace is {} s, but must be 0 or more", options.grace);
  }

  std::unique_ptr<TrialRun> begin(Context& context) const override {
    return std::make_unique<detail::CommandRun>(plan_, context);
  }
  bool reusable() const override { return true; }
  bool external() const override { return true; }
  double grace() const override { return plan_.options.grace; }

 private:
  static std::vector<std::string> none() { return {}; }
  static std::vector<std::string> names_of(const SearchSpace& space) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < space.size(); ++i) names.push_back(space.name(i));
    return names;
  }

  detail::CommandPlan plan_;
};

}  // namespace hypertune::inline v0::local
