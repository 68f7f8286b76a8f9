// CommandRun: an attempt of a trial that is an external command.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/execute/bounded_log.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/command_options.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/trial/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// A command as it was understood.
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

class CommandRun final : public TrialRun {
 public:
  CommandRun(const CommandPlan& plan, Context& context) : plan_(plan), context_(&context) { begin(); }
  ~CommandRun() override { leave(); }
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  bool can_save() const override { return false; }  // it saves when it wants to; see adopted()
  void save(CheckpointWriter&) override {}

  std::optional<Report> step() override;

  std::optional<CheckpointInfo> adopted() override { return std::exchange(adopted_, std::nullopt); }

  std::optional<CheckpointInfo> stop_and_save() override;

  void suspend() override;
  void resume() override;

  bool reset(Context& context) override;

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

  void begin();

  // All ranks have come here before any command begins, so that each finds the others.
  void join();
  std::string own_devices() const;

  // As torchrun has it.
  void add_place(std::map<std::string, std::optional<std::string>>& entries) const;

  // Added to this program's.
  std::map<std::string, std::optional<std::string>> environment(const std::string& restore) const;

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

  void pump(double seconds);

  // Whole lines go to `take`; at the end of the output the last one does even without its newline.
  template <class Take>
  void cut(Partial& partial, std::string_view more, const Take& take);
  std::optional<Report> next_report();

  // ---- What is no report, and why ----

  // A line that names what is tuned, a step or a checkpoint, is meant as a report.
  bool looks_like_report(std::string_view line) const;
  std::string what_it_lacks(const ReportLine& line) const;
  static std::string quoted(const std::vector<std::string>& names);
  /// `meant`: it must have been meant as a report, so that its loss is said where the user looks. Of the others the
  /// first is remembered, for a trial that ends without any.
  void refuse(std::string_view line, const std::string& why, bool meant);
  void remember(std::string_view line, const std::string& why, bool meant);
  bool judges(const Metrics& metrics) const;
  void note_judged(const Metrics& metrics) { judged_ = judged_ || judges(metrics); }

  /// Texts with a step, none of them where a number of what is tuned should stand.
  bool only_notes(const ReportLine& line) const;
  bool is_report(const ReportLine& line) const;

  /// A text in a report is noted of the trial, unless it stands where a number should.
  bool is_attribute(const std::string& name) const;

  void note_texts(std::vector<std::pair<std::string, std::string>>& texts);

  std::optional<Report> take_report(ReportLine line);

  // Of a step that was recorded before nothing is recorded again. That is right where a trial does steps again after a
  // restart, which this attempt knows nothing of; within one attempt it is hardly what was meant.
  void count_step(int step);

  void adopt(const std::string& name, int steps);

  /// `found`: whether an expression had something to find in the line.
  std::optional<Report> match_metrics(const std::string& line, bool& found);
  std::optional<Report> flush_metrics();

  void match_rules(std::string_view line);

  std::optional<Report> finish();

  static std::string end_of(int rank) { return fmt::format("command of rank {} has ended", rank); }

  // One that is stopped holds up all others, and none of them can say why.
  void look_for_stop();

  // Rank 0 is through: the others have some time to end by themselves. One that fails in it ends the attempt.
  void wait_for_others();
  // A command whose peers are gone fails of that. Who else is lost is heard of meanwhile, and the attempt is ended for
  // that; where it was a host, its silence comes first. Of several commands that fail, the one whose waiting ends first
  // is named. Their ends are noticed in any order on a busy machine, so one that speaks of a lost connection is named
  // only if no other fails.
  bool others_are_why(const std::string& words);
  // Whether no other command that may be the reason is known to have failed before.
  bool fails_first(bool follows);
  // False: nobody has set it until then, or the attempt is to end.
  bool wait_in_group(const std::string& key, double until);

  // The command got SIGTERM with all other processes here, and has left. Its driver is about to hear of that as well,
  // and asks for the end of the attempt; else nobody knows why it was ended, but it was not the trial's doing.
  std::optional<Report> end_with_others(int status);
  bool told_from_outside() const { return ends_from_outside() != ends_before_; }

  void terminate();

  // Asks it to leave, and sees to it.
  void leave();
  void wait_for_exit();

  void log(std::string_view line, bool whole = true);

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
  double look_for_stop_at_ = 0;
  std::optional<double> stopped_since_;
  int ends_before_ = 0;  // ends_from_outside() when the command began
};

}  // namespace hypertune::inline v0::local::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/command_output.hpp>
#include <hypertune/local/impl/command_run.hpp>
#endif
