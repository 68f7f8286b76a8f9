// Experiment: the Controller, Journal and callbacks of one folder, new or restored from its record.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/execute/detail/group/groups.hpp>
#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/detail/callbacks.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/show/detail/terminal_display.hpp>
#include <hypertune/space/detail/space_changes.hpp>
#include <hypertune/trial/metric_name.hpp>
#include <hypertune/tune/best_folder.hpp>
#include <hypertune/tune/detail/controller.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>
#include <hypertune/tune/detail/folder_growth.hpp>
#include <hypertune/tune/detail/ordered/ordered_gate.hpp>
#include <hypertune/tune/options.hpp>

#include <cmath>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

/// The properties of the executor that decisions depend on.
struct ExecutorFacts {
  std::vector<Host> hosts;
  std::string name = "local";
  bool survivors = false;  ///< its workers outlive the driver: after a restart trials go on where they are
  Seconds startup = 0;     ///< AnyExecutor::startup()
  bool gangs = false;      ///< its trials may have several workers
  bool manual = false;     ///< ask/tell: the caller runs the trials
  bool timed = false;      ///< decisions may depend on how long trials take
};

/// Everything about an experiment except running the trials. Not thread-safe, unless a function says otherwise.
class Experiment {
 public:
  /// Opens `directory` and replays its record, if there is one (only with options.resume). Errors: `busy`, `usage`
  /// (there is an experiment already, or options contradict each other), `resources`, `io`, `corrupt`.
  Experiment(SearchSpace space, const Options& options, const std::filesystem::path& directory,
             const ExecutorFacts& facts)
      : directory_(directory),
        space_(std::move(space)),
        objectives_(objectives_of(options)),
        facts_(facts),
        callbacks_(followers(options, facts), [this](const std::string& text) { note(text); }) {
    require_sound(space_, options, facts_.manual);
    require_possible(options, facts_);
    if (options.display != Display::quiet && !facts_.manual && TerminalDisplay::defined()) make_display(options);
    make_controller(options);  // may throw, so before anything is created
    std::filesystem::create_directories(directory_ / "trials");
    journal_.emplace(Journal::open(directory_));
    if (journal_->last() > 0 && !options.resume) refuse_to_overwrite(directory_);
    store_.emplace(directory_);
    journal_->on_committed([this](std::span<const Record> batch) { follow(batch); });
    replay(options);
  }

  [[noreturn]] static void refuse_to_overwrite(const std::filesystem::path& directory) {
    fail(Errc::usage,
         "'{}' holds an experiment already: resume it (--resume, .resume = true), choose another output, or delete it",
         directory.string());
  }

  /// Throws an Error of kind `usage` if options contradict each other. Needs no hosts. `manual`: ask/tell, without a
  /// Tuner.
  static void require_sound(const SearchSpace& space, const Options& options, bool manual = false) {
    const auto objectives = objectives_of(options);
    if (!options.objectives.empty() && (options.metric.given() || options.mode.given()))
      fail(Errc::usage, ".objectives is given, and {} as well: give one of them",
           options.metric.given() ? ".metric" : ".mode");
    for (auto objective = objectives.begin(); objective != objectives.end(); ++objective)
      if (std::any_of(objectives.begin(), objective, [&](const auto& o) { return o.metric == objective->metric; }))
        fail(Errc::usage, ".objectives: '{}' is given twice", objective->metric);
    for (const auto& objective : objectives)
      if (const auto why = detail::refused_name(objective.metric); !why.empty()) fail(Errc::usage, "{}", why);
    for (const auto& bound : options.constraints)
      if (const auto why = detail::refused_name(bound.metric); !why.empty()) fail(Errc::usage, "{}", why);
    if (objectives.size() > 1 && !options.search.multi_objective())
      fail(Errc::usage,
           "the searcher '{}' reads one objective only, but {} are given: auto, nsga2, nsga3, tpe, gp, random, sobol "
           "and "
           "grid take several",
           options.search.name(), objectives.size());
    if (objectives.size() > 1 && !options.schedule.multi_objective())
      fail(Errc::usage,
           "the scheduler '{}' reads one objective only, but {} are given: mo_asha is asha for several, fifo stops no "
           "trial",
           options.schedule.name(), objectives.size());
    for (const auto& bound : options.constraints)
      if (bound.metric.empty() || !std::isfinite(bound.value))
        fail(Errc::usage, ".constraints: '{}' {} {} is no bound: name a metric and a finite number", bound.metric,
             bound.side == Mode::minimize ? "at most" : "at least", bound.value);
    for (const auto& upper : options.constraints)
      for (const auto& lower : options.constraints)
        if (upper.metric == lower.metric && upper.side == Mode::minimize && lower.side == Mode::maximize &&
            upper.value < lower.value)
          fail(Errc::usage, ".constraints: '{}' cannot be at most {} and at least {}", upper.metric, upper.value,
               lower.value);
    if (options.retry_failed && !options.resume)
      fail(Errc::usage, ".retry_failed is for an experiment that is resumed: set .resume as well");
    if (options.samples < 0)
      fail(Errc::usage, ".samples is {}: it must be 0 (all of a grid) or more", *options.samples);
    if (options.concurrency < 0)
      fail(Errc::usage, ".concurrency is {}: it must be 0 (no limit) or more", options.concurrency);
    if (options.max_retries < 0) fail(Errc::usage, ".max_retries is {}: it must be 0 or more", options.max_retries);
    if (options.max_failed_trials < 0)
      fail(Errc::usage, ".max_failed_trials is {}: it must be 0 (no limit) or more", options.max_failed_trials);
    for (const auto& [name, seconds] : {std::pair(".ordered_timeout", options.ordered_timeout),
                                        {".hang_timeout", options.hang_timeout},
                                        {".interrupt_grace", options.interrupt_grace}})
      if (!(seconds >= 0)) fail(Errc::usage, "{} is {}: it must be 0 s or more", name, seconds);
    if (!(options.hang_timeout < longest_hang_timeout))
      fail(Errc::usage, ".hang_timeout is {} s: it must be below {:g} s (0 is without a limit)", options.hang_timeout,
           longest_hang_timeout);
    trials_per_sample(space, options.search);
    const Resources& r = options.resources;
    if (!(r.cpus >= 0) || !(r.gpus >= 0)) fail(Errc::usage, ".resources: cpus and gpus must be 0 or more");
    options.workers.require_sound();
    options.group.require_sound();
    if (manual && options.workers.several())
      fail(Errc::usage, ".workers: a trial of ask/tell has one worker, its caller");
    options.checkpoint.validate();
    require_log_limit(options.log_limit);
    for (const auto& [name, value] : options.attributes) detail::require_attribute_name(name);
    if (options.samples == 0 && !options.search.finite() && !has_grid(space) && options.stop.empty() && !manual)
      fail(Errc::usage, "how many trials? set .samples (or a stop condition; a grid needs neither)");
  }
  /// Throws an Error of kind `resources` if no host can ever run a trial, and of kind `usage` if trials have several
  /// workers and the executor does not support that.
  static void require_possible(const Options& options, const ExecutorFacts& facts) {
    if (options.workers.several() && !facts.gangs)
      fail(Errc::usage, ".workers: this executor ('{}') runs one worker for a trial, not {}", facts.name,
           options.workers.max);
    if (options.workers.several() && !Groups::defined())
      fail(Errc::usage,
           ".workers: this program has no groups of workers: include <hypertune/src/groups.hpp> beside "
           "<hypertune/src/core.hpp>, or link hypertune::hypertune");
    const Placement placement(facts.hosts, options.group);
    if (!options.resources_for && !placement.possible(options.resources, options.workers))
      fail(Errc::resources, "no trial can ever run: {}", placement.why_not(options.resources, options.workers));
  }

  const std::filesystem::path& directory() const { return directory_; }
  Controller& controller() { return *controller_; }
  const Controller& controller() const { return *controller_; }
  Journal& journal() { return *journal_; }
  bool resumed() const { return resumed_; }
  /// For an ordered experiment: the gate as it is after the replay.
  OrderedGate take_gate() { return std::move(gate_); }
  /// The last time in the record, at which a simulated clock goes on.
  Seconds last_time() const { return last_time_; }
  const SearchSpace& space() const { return space_; }

  /// Records the start, adds known results, finishes what an earlier driver left undone, and starts trials as long as
  /// there is room.
  void begin(const Options& options, Seconds now, Outcome& out) {
    callbacks_.open(directory_);
    record::ExperimentStarted started;
    started.name = options.name;
    started.objectives = objectives_;
    started.space = space_.describe();
    started.searcher = controller_->state().searcher();
    started.scheduler = options.schedule.name();
    started.searcher_options = options.search.options();
    started.scheduler_options = options.schedule.options();
    started.executor = facts_.name;
    started.command = options.command;
    controller_->make_room(out);
    started.samples = controller_->rules().samples;
    started.seed = options.seed;
    started.resumed = resumed_;
    started.constraints = options.constraints;
    controller_->open_session(std::move(started), now, out);
    controller_->expect_hosts(coming_, now);
    if (!options.attributes.empty()) controller_->note(-1, options.attributes, now, out);
    controller_->add_known(options.known, now, out);
    find_unrecorded(now, out);
    controller_->try_again(failed_, now, out);
    controller_->finish_replay(now, facts_.survivors, out);
    controller_->fill(now, out);
  }

  /// Writes the records and notices of a call to the Controller. To be called before its commands are carried out.
  void write(Outcome& out, Seconds now) {
    for (auto& what : out.records) {
      // A trial that fails because the folder has vanished is not to blame: the driver has to end for the same reason.
      if (std::holds_alternative<record::AttemptFailed>(what)) journal_->require_folder();
      journal_->append(now, std::move(what));
    }
    out.records.clear();
    show_usage();
    for (const auto& text : out.notices) note(text);
    out.notices.clear();
  }

  /// Records the end, and waits until everything is durable and all callbacks have seen it.
  void end(Seconds now, bool interrupted, std::string why) {
    journal_->append(now, record::ExperimentEnded{interrupted, std::move(why)});
    journal_->drain();
    if (const auto line = controller_->untold_save_failures()) note(*line);
    if (!facts_.manual) write_best(results(), *store_, directory_);
    display_.reset();
  }

  /// The results so far, from committed records only. May be called from any thread.
  Results results() const {
    const std::lock_guard guard(results_mutex_);
    return results_;
  }

  /// Shows a line to the user. May be called from any thread.
  void note(const std::string& text) const {
    if (display_)
      display_->print("hypertune: " + text);
    else
      detail::say("hypertune: " + text);
  }

 private:
  // The losses of processes that one signal or one lost host has ended are all reported within some milliseconds. This
  // is short compared with forming a new generation of the remaining workers.
  static constexpr Seconds loss_patience = 0.02;

  static std::vector<AnyCallback> followers(const Options& options, const ExecutorFacts& facts) {
    auto all = options.callbacks;
    if (options.progress_csv && !facts.manual && !facts.survivors) all.emplace_back(CsvLogger{});
    return all;
  }

  void make_display(const Options& options) {
    capacity_.per_trial = options.resources;
    capacity_.least_workers = options.workers.min;
    capacity_.max_workers = options.workers.max;
    if (const auto limit = ExperimentStop(options.stop, objectives_).next_time(0)) capacity_.time_limit = *limit;
    display_ =
        TerminalDisplay::make({.plain = options.display == Display::plain || facts_.survivors, .capacity = capacity_});
  }

  // Called after each change, because hosts come and go, and the resources of a host are often known only once it is
  // there.
  void show_usage() {
    if (!display_) return;
    const auto usage = controller_->placement().usage();
    const std::size_t held = controller_->held();
    if (shown_ && usage == *shown_ && held == capacity_.held) return;
    shown_ = usage;
    capacity_.held = held;
    capacity_.cpus = usage.cpus;
    capacity_.gpus = usage.gpus;
    capacity_.cpus_used = usage.cpus_used;
    capacity_.gpus_used = usage.gpus_used;
    display_->set_capacity(capacity_);
  }

  void make_controller(const Options& options) {
    ControlRules rules;
    rules.samples = options.samples;
    AnySearcher searcher = options.search;
    if (!searcher.covers_grid() && has_grid(space_)) {
      rules.samples = std::max<std::int64_t>(1, options.samples) * trials_per_sample(space_, searcher);
      if (space_.grid_size() > 1) searcher = mixed_grid(std::move(searcher));
    }
    rules.seed = options.seed;
    rules.concurrency = options.concurrency;
    rules.uniform_resources = !options.resources_for;
    if (options.resources_for)
      rules.resources = options.resources_for;
    else
      rules.resources = [r = options.resources](const Params&) { return r; };
    rules.workers = options.workers;
    rules.resize = options.resize;
    rules.metric_given = !options.objectives.empty() || options.metric.given();
    rules.failures = {options.max_retries, options.max_failed_trials};
    rules.checkpoint = options.checkpoint;
    rules.manual = facts_.manual;
    rules.ordered = options.ordered && !facts_.survivors;
    rules.host_timeout = options.ordered_timeout;
    rules.startup = facts_.startup;
    rules.loss_patience = facts_.survivors ? 0 : loss_patience;
    rules.tell_changes = !facts_.survivors;
    for (const auto& params : options.start_with) rules.start_with.push_back(space_.configuration(params));
    auto hosts = facts_.hosts;
    if (rules.ordered)
      for (std::size_t host = 0; host < hosts.size(); ++host)
        if (hosts[host].presence == Presence::coming) {
          hosts[host].presence = Presence::there;
          coming_.push_back(static_cast<int>(host));
        }
    Placement placement(hosts, options.group);
    const SearchContext goal{
        .objectives = objectives_.size(),
        .constraints = options.constraints.size(),
        .samples = rules.samples,
        .parallelism = std::max(
            1, options.concurrency > 0 ? options.concurrency : placement.about(options.resources, options.workers)),
        .seed = options.seed,
        .note = options.display == Display::quiet ? std::function<void(const std::string&)>()
                                                  : [this](const std::string& text) { note(text); }};
    controller_.emplace(ExperimentState(space_, std::move(searcher), options.schedule, objectives_, options.stop, goal,
                                        options.constraints, facts_.timed, facts_.startup),
                        std::move(rules), std::move(placement));
  }

  void replay(const Options& options) {
    if (journal_->last() == 0) return;
    resumed_ = true;
    results_.judge_by(options.constraints, journal_->last());
    const auto tried_again = failures_tried_again(options);
    std::optional<record::ExperimentStarted> last;
    read_journal(directory_, [&](const Record& record) {
      if (const auto* started = std::get_if<record::ExperimentStarted>(&record.what)) {
        if (!last && started->objectives != objectives_)
          fail(Errc::usage, "'{}' tunes {}, not {}: an experiment keeps its objectives", directory_.string(),
               names(started->objectives), names(objectives_));
        last = *started;
      }
      last_time_ = std::max(last_time_, record.time);
      results_.add(record);
      if (display_) display_->catch_up(record);
      if (const auto* checkpoint = released(record)) {
        constexpr std::size_t most = 1000;  // more than a Journal writes at once
        undeleted_.push_back(*checkpoint);
        if (undeleted_.size() > most) undeleted_.pop_front();
      }
      // A failure that is tried again is hidden from searcher and scheduler.
      const auto* ended = std::get_if<record::TrialEnded>(&record.what);
      const auto again = ended == nullptr ? tried_again.end() : tried_again.find(ended->trial);
      if (again == tried_again.end() || record.sequence > again->second || ended->state != TrialState::failed)
        controller_->replay(record);
      else
        controller_->replay(Record{
            record.sequence, record.time,
            record::AttemptFailed{ended->trial, 0,
                                  Cause{.source = FailureSource::preemption, .text = record::tried_again}, true}});
      if (options.ordered) gate_.replay(record.what, controller_->state().trials());
    });
    gate_.replayed();
    if (last) say_changes(*last, options);
  }

  // The replay has to know beforehand which failures were tried again, or are to be tried again now
  // (options.retry_failed): for each such trial, the sequence number of its last failure that is tried again. Puts the
  // trials to be tried again now into failed_.
  std::map<TrialId, std::int64_t> failures_tried_again(const Options& options) {
    std::map<TrialId, std::int64_t> until, open;
    JournalReader(directory_).read_ends([&](const Record& record) {
      if (const auto* ended = std::get_if<record::TrialEnded>(&record.what)) {
        open.erase(ended->trial);
        if (ended->state == TrialState::failed) open.emplace(ended->trial, record.sequence);
      } else if (const auto* failed = std::get_if<record::AttemptFailed>(&record.what)) {
        if (!failed->retry)  // its TrialEnded follows, unless the driver died before
          open.insert_or_assign(failed->trial, record.sequence);
        else if (const auto node = open.extract(failed->trial); node && record::is_tried_again(*failed))
          until[failed->trial] = node.mapped();
      }
    });
    if (!options.retry_failed) return until;
    for (const auto& [trial, sequence] : open) {
      until[trial] = sequence;
      failed_.push_back(trial);
    }
    return until;
  }

  // Tells the user what a resumption cannot take over, or does not take over as one may expect.
  void say_changes(const record::ExperimentStarted& last, const Options& options) {
    const auto& state = controller_->state();
    const auto& trials = state.trials();
    const std::int64_t failed = trials.counts()[TrialState::failed];
    if (options.max_failed_trials > 0 && failed > options.max_failed_trials)
      fail(Errc::usage,
           "{} trials of '{}' have failed, and {} may: raise that (max_failed_trials, failures.max_trials), or have "
           "them tried again (--retry-failed, .retry_failed = true)",
           failed, directory_.string(), options.max_failed_trials);
    if (last.seed != *options.seed)
      note(detail::format("the seed was {} and is {} now: new trials differ from what they would have been", last.seed,
                          *options.seed));
    // Only the names are compared: changed options of the same algorithm are accepted silently.
    const auto say_other = [&](const char* what, const std::string& before, const std::string& now) {
      if (before != now) note(detail::format("the {} was {} and is {} now", what, before, now));
    };
    say_other("search", last.searcher, state.searcher());
    say_other("schedule", last.scheduler, options.schedule.name());
    for (const auto& change : detail::space_changes(last.space, space_.describe())) note("the search space: " + change);
    if (const auto foreign = state.foreign(); foreign > 0)
      note(detail::format("the search space has changed: {} of {} trials do not fit it and teach nothing ({})", foreign,
                          trials.size(), state.why_foreign()));
    const std::int64_t samples = controller_->rules().samples, made = trials.size() - state.known();
    if (samples > 0 && samples < last.samples && samples < made)
      note(detail::format("there are {} trials, more than the {} samples asked for now: no more are made", made,
                          samples));
    if (!failed_.empty())
      note(detail::format("{} trial{} that failed {} tried again", failed_.size(), failed_.size() == 1 ? "" : "s",
                          failed_.size() == 1 ? "is" : "are"));
  }

  // Finds checkpoints that were sealed when the driver died, before their record was durable. One that is ahead of the
  // last recorded report is useless, because the reports in between would be missing.
  void find_unrecorded(Seconds now, Outcome& out) {
    if (!resumed_ || facts_.manual) return;
    store_->recover();
    for (const auto& checkpoint : std::exchange(undeleted_, {})) delete_checkpoint(checkpoint);
    const auto& state = controller_->state();
    for (TrialId trial = 0; trial < state.trials().size(); ++trial) {
      if (is_final(state.trials()[trial].state)) continue;
      for (const auto& sealed : store_->list(trial)) {
        const auto held = state.checkpoints(trial);
        if (std::any_of(held.begin(), held.end(), [&](const auto& c) { return c.name == sealed.name; })) continue;
        // If trials take over each other's states, the steps do not tell from which state the checkpoint was made.
        if (sealed.steps > state.trials()[trial].steps || state.exploits())
          store_->drop(sealed);
        else
          controller_->found(sealed, now, out);
      }
    }
  }

  static std::string names(const std::vector<Objective>& objectives) {
    std::string text;
    for (const auto& o : objectives)
      text += detail::format("{}{} ({})", text.empty() ? "" : ", ", o.metric, to_string(o.mode));
    return text;
  }

  static const CheckpointInfo* released(const Record& record) {
    const auto* dropped = std::get_if<record::CheckpointDropped>(&record.what);
    return dropped != nullptr && dropped->why == record::by_retention ? &dropped->checkpoint : nullptr;
  }

  // A checkpoint that cannot be deleted (a trial made a folder of it read-only, or a process on a shared disk has one
  // of its files open) only takes space: the experiment goes on, and the next start of a driver tries again.
  void delete_checkpoint(const CheckpointInfo& checkpoint) {
    try {
      store_->drop(checkpoint);
    } catch (const Error& e) {
      if (!std::exchange(told_undeleted_, true))
        note(detail::format("checkpoint {} of trial {} is not needed any more and could not be deleted (said once): {}",
                            checkpoint.name, checkpoint.trial, e.what()));
    }
  }

  void look_at_folders(std::span<const Record> batch) {
    for (const auto& record : batch)
      if (const auto* ended = std::get_if<record::TrialEnded>(&record.what))
        if (const auto text = growth_.ended(ended->trial, results_.experiment().planned)) note(*text);
  }

  // Runs on the Journal's thread, with durable records. Only here are checkpoints deleted and callbacks called, as that
  // cannot be undone.
  void follow(std::span<const Record> batch) {
    {
      const std::lock_guard guard(results_mutex_);
      for (const auto& record : batch) results_.add(record);
    }
    for (const auto& record : batch)
      if (const auto* dropped = released(record)) delete_checkpoint(*dropped);
    if (display_)
      for (const auto& record : batch) display_->on_record(record);
    callbacks_.batch(batch);
    if (!facts_.manual && !facts_.survivors) look_at_folders(batch);
  }

  std::filesystem::path directory_;
  SearchSpace space_;
  std::vector<Objective> objectives_;
  ExecutorFacts facts_;
  std::vector<int> coming_;  // ordered runs: hosts that are not there yet, but count as present
  Callbacks callbacks_;
  std::unique_ptr<TerminalDisplay> display_;
  Capacity capacity_;
  std::optional<Placement::Usage> shown_;
  std::optional<Controller> controller_;
  std::optional<LocalCheckpointStore> store_;
  mutable std::mutex results_mutex_;
  Results results_{directory_};
  bool resumed_ = false;
  std::vector<TrialId> failed_;  // trials to be tried again
  // The last checkpoints that an earlier driver recorded as dropped: it may have died before it deleted them.
  std::deque<CheckpointInfo> undeleted_;
  bool told_undeleted_ = false;
  detail::FolderGrowth growth_{directory_ / "trials"};
  OrderedGate gate_;
  Seconds last_time_ = 0;
  std::optional<Journal> journal_;  // last: its thread uses the others
};

}  // namespace hypertune::inline v0
