// CommandRun: an attempt of a trial that is an external command.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/command_options.hpp>
#include <hypertune/local/error_tail.hpp>
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/output_lines.hpp>
#include <hypertune/local/output_timing.hpp>
#include <hypertune/local/repetitions.hpp>
#include <hypertune/local/report_join.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/local/usage_meter.hpp>
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
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// A command with its compiled expressions.
struct CommandPlan {
  CommandLine line;
  std::vector<std::pair<std::string, PlaceholderText>> files;  // by their paths below the trial's folder
  /// What finds a number in a line.
  struct Expression {
    std::string name;  // of the metric
    std::regex match;
    GroupSurroundings around;
    NumberUnit unit = NumberUnit::none;
  };
  std::vector<Expression> metrics;
  std::optional<Expression> step;
  struct Rule {
    std::regex match;
    LogRule what;
  };
  std::vector<Rule> rules;
  CommandOptions options;
  std::vector<std::string> gpus;        // indexed by the slot's numbers
  std::vector<std::string> tuned = {};  // all objectives; those of the options are without the measured ones
  bool only_measured = false;           // all objectives are measured: the command need not report
};

class CommandRun final : public TrialRun {
 public:
  CommandRun(const CommandPlan& plan, Context& context) : plan_(plan), context_(&context) { begin(); }
  ~CommandRun() override { leave(); }
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  bool can_save() const override { return false; }  // the command decides when to save; see adopted()
  void save(CheckpointWriter&) override {}

  std::optional<Report> step() override;

  std::optional<CheckpointInfo> adopted() override { return std::exchange(adopted_, std::nullopt); }
  std::optional<std::string> not_adopted() override { return std::exchange(not_adopted_, std::nullopt); }

  std::optional<CheckpointInfo> stop_and_save() override;

  void suspend() override;
  void resume() override;

  bool reset(Context& context) override;

 private:
  static constexpr std::size_t max_line = std::size_t{1} << 20U;
  static constexpr std::size_t max_searched = 4096;  // by expressions, whose recursion grows with it
  static constexpr double patience = 30;             // seconds to wait for other ranks before commands begin
  static constexpr std::size_t max_waiting = 1000;   // lines; a program that prints more quickly than is read waits
  // Seconds to wait for the end of a program that has printed several reports at once: at its end the C library writes
  // what it has kept, and then Python takes down its modules.
  static constexpr double settling = 2;
  // … and of one that has printed a single one.
  static constexpr double short_settling = 0.1;
  static constexpr std::size_t block = 4096;  // bytes that C's stdio writes at once, and a packet at most
  // Of a program whose end is waited for, at most this many lines and bytes are kept.
  static constexpr std::size_t max_lines_held = 100'000, max_bytes_held = std::size_t{16} << 20U;

  /// For one of several commands that begin and end together.
  struct Gang {
    GroupPlace place;
    std::string address, port;  // the address of rank 0's listener
    std::string devices;        // devices of all ranks on this host, by local rank; empty: only its own are visible

    int host() const {  // index of this host, in the order of ranks
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
  // The command with the values of this attempt. Makes the files that it names.
  std::vector<std::string> arguments(const std::string& restore) const;
  // Starts the command, for the first time or for the next of its repetitions.
  void start();

  // Adds the units that were seen and not yet passed on.
  void add_units(Report& report);
  // The next report of the command that runs; nullopt: the command has ended.
  std::optional<Report> next_of_command();
  // Adds what is measured of the command, in place of what it says itself under the same name.
  void measure(Metrics& metrics);
  // The one report of a trial of whose reports only one counts, or of repeated runs.
  std::optional<Report> only_report();
  void consider(Report report);
  bool repeated() const { return plan_.options.repeat.times > 1; }
  RepetitionFile repetition_file() const;

  // Joins the group. Returns once all ranks are there, so that each command finds the others.
  void join();
  std::string own_devices() const;

  // The variables that torchrun sets.
  void add_place(std::map<std::string, std::optional<std::string>>& entries) const;

  // Variables to add to this program's environment.
  std::map<std::string, std::optional<std::string>> environment(const std::string& restore) const;

  struct Line : OutputLine {
    bool error_stream = false;
    double at = 0;  // when it arrived
  };

  void pump(double seconds);

  // ---- Programs that print in blocks ----
  //
  // Such a program prints all of its reports at its end, or many at a time. To stop it because of the first of them
  // would save nothing if it has ended, and lose the others. So reports that come together wait for its end, and are
  // marked if it comes (Report::over). A single one waits for a moment, as it may be its last. How long they wait must
  // not decide in an ordered run: there it is told by the program's writes, which arrive one by one
  // (OutputStream::packets), that it prints in blocks, and then its reports always wait. The reports of a program that
  // prints each as it is made never do.

  // Looks at one read(2) of standard output, and the lines that have ended in it.
  void look_for_block(std::string_view piece, std::span<const Line> lines);
  bool several_reports(std::span<const Line> lines) const;
  // Whether reports wait for the end of the program.
  bool holds();
  static bool names_checkpoint(const Line& line) { return line.text.find("\"checkpoint\"") != std::string::npos; }
  bool waits_for_end(std::string_view piece, std::span<const Line> lines) const;
  void mark(Report& report);

  std::optional<Report> next_report();
  /// The report of a line of standard output that is a JSON object.
  std::optional<Report> read_line(const Line& line);

  // ---- Lines that are no reports ----

  // Whether a line was probably meant as a report: it names an objective, a step or a checkpoint.
  bool looks_like_report(std::string_view line) const;
  std::string what_it_lacks(const ReportLine& line) const;
  static std::string quoted(const std::vector<std::string>& names);
  /// Refuses a line as a report. `meant`: it was meant as one, so that the log says why it was refused. The first
  /// refused line is remembered for the message of a trial that ends without a report; one that was meant takes
  /// precedence.
  void refuse(const Line& line, const std::string& why, bool meant);
  void remember(std::string_view line, const std::string& why, bool meant);
  bool judges(const Metrics& metrics) const;
  void note_judged(const Metrics& metrics) { judged_ = judged_ || judges(metrics); }

  /// Whether the line has only texts, none of them in place of an objective.
  bool only_notes(const ReportLine& line) const;
  bool is_report(const ReportLine& line) const;

  /// Whether a text with this name is an attribute of the trial: not if it stands in place of an objective.
  bool is_attribute(const std::string& name) const;

  void note_texts(std::vector<std::pair<std::string, std::string>>& texts);

  std::optional<Report> take_report(ReportLine line);

  // A repeated step is not recorded again. That is right after a restart, which this attempt cannot know of; within one
  // attempt a repetition is probably a mistake, so the log says it once.
  void count_step(int step);

  void adopt(const std::string& name, int steps);
  /// How many of the lines that wait to be taken name this checkpoint.
  std::size_t waiting_lines_naming(const std::string& checkpoint) const;

  /// Matches the metric expressions. False: none of them matches.
  bool match_metrics(const Line& line);
  /// The number that an expression finds in a line. `matches`: whether it matches; a number that is refused is logged.
  std::optional<double> find_number(const Line& line, const CommandPlan::Expression& expression, bool& matches);
  std::optional<int> find_step(const Line& line);
  Report report_of(JoinedReport joined);

  void match_rules(std::string_view line);

  std::optional<Report> finish();

  // Keys of values in the group.
  static std::string end_of(int rank) { return fmt::format("command of rank {} has ended", rank); }
  static std::string failure_of(int rank) { return fmt::format("command of rank {} has failed", rank); }
  static constexpr const char* never_set = "an end that nobody tells";
  // Seconds for which a failure waits for its cause, another rank's.
  static constexpr double patience_here = 1, patience_elsewhere = 12, behind_others = 2;

  // Checks whether the command is stopped (SIGSTOP): it would block all other ranks, which cannot know why.
  void look_for_stop();

  // Rank 0 has finished: gives the others some time to end by themselves. If one of them fails meanwhile, the attempt
  // fails.
  void wait_for_others();
  // Whether the command failed because of other ranks. A command whose peers are gone fails for that reason. So wait:
  // if another rank is the cause, the attempt is ended for that meanwhile (a lost host is only noticed by its silence).
  // If several commands fail, the one whose wait ends first is named. On a busy machine failures are noticed in any
  // order, so a command that reports a lost connection is named only if no other fails.
  bool failed_because_of_others(const std::string& words);
  // Whether no other command is known to have failed earlier and to be the possible cause.
  bool fails_first(bool caused_by_peers);
  // Waits for a value of the group. False: it was not set until then, or the attempt is to end.
  bool wait_in_group(const std::string& key, double until);

  // The command got SIGTERM together with all other processes here, and has ended. The driver gets it as well and will
  // probably stop the attempt. If it does not, the reason is unknown, but it was not the trial's fault.
  std::optional<Report> end_with_others(int status);
  bool received_sigterm() const { return sigterm_count() != sigterms_before_; }

  void terminate();

  // Asks the command to end, and kills it if it does not in time.
  void leave();
  void wait_for_exit();

  void log(std::string_view line, bool whole = true);

  const CommandPlan& plan_;
  Context* context_;
  std::optional<LocalCheckpointStore> store_;
  std::optional<Gang> gang_;
  std::filesystem::path folder_;  // folder for the command's checkpoints; set for rank 0 only
  std::optional<BoundedLog> log_;
  std::unique_ptr<ChildProcess> child_;
  UsageMeter usage_;
  std::optional<OutputLines> out_, err_;
  bool over_ = false;       // all its output is in lines_
  std::deque<Line> lines_;  // lines of its output still to be processed
  ErrorTail tail_;          // of its standard error
  ErrorTail out_tail_;      // of its standard output
  std::string last_line_;   // for one of several commands: the last line logged
  struct {
    std::string text;
    bool meant = false;
  } refusal_;                        // the first refused line, and why
  bool judged_ = false;              // all objectives have been reported
  Attributes attributes_;            // from lines that were no reports; go with the next report
  std::optional<ReportJoin> join_;   // of what expressions find
  std::deque<JoinedReport> joined_;  // what it has made of that
  bool told_passing_ = false;
  std::map<std::string, std::string> behind_numbers_;  // the letters behind each metric's first number
  std::set<std::string> told_units_;                   // metrics with which they were passed on
  std::optional<int> first_step_;                      // what the command calls its first step: 0 or 1
  std::optional<CheckpointInfo> adopted_;
  std::optional<std::string> not_adopted_;
  int steps_ = 0;
  OutputTiming timing_;
  std::optional<double> block_until_;  // reports wait until then: they have come together
  bool goes_on_ = false;               // … and the program did not end by then
  bool in_blocks_ = false;             // in an ordered run: it prints in blocks
  std::size_t bytes_held_ = 0;
  double arrived_ = 0;          // when the line of the last report did
  int marked_ = 0;              // reports of a program that has ended
  std::vector<Report> ended_;   // of repetitions that have ended
  std::optional<Report> kept_;  // the last or the best one so far, of which …
  bool kept_judges_ = false;    // … all objectives are known
  std::optional<CheckpointInfo> kept_checkpoint_;
  bool told_ = false;             // the only report was passed on
  bool succeeded_ = false;        // the command has ended well
  std::optional<int> last_step_;  // the highest step that this attempt has reported
  bool told_repetition_ = false;
  bool terminating_ = false, suspended_ = false, exclude_host_ = false, no_retry_ = false;
  double kill_at_ = 0;
  double look_for_stop_at_ = 0;
  std::optional<double> stopped_since_;
  int sigterms_before_ = 0;  // sigterm_count() when the command began
};

}  // namespace hypertune::inline v0::local::detail
