// TerminalDisplay: a callback that shows an experiment on a terminal, or as plain lines elsewhere.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/show/live_region.hpp>
#include <hypertune/show/progress.hpp>
#include <hypertune/show/render.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct TerminalOptions {
  std::FILE* stream = stderr;
  bool plain = false;          ///< plain lines even on a terminal
  bool quiet = false;          ///< nothing at all
  double refresh = 0.25;       ///< seconds between two pictures on a terminal
  Seconds summary_every = 30;  ///< seconds between two summaries in plain output
  Capacity capacity = {};
};

/// On a terminal, shows a table that is redrawn in place. Elsewhere (a pipe, a file, TERM=dumb), prints a line at the
/// start, at a new best (at most one a second), every `summary_every` seconds, and at the end, without control codes.
/// NO_COLOR is honoured. Feeding it costs about ten nanoseconds per record, because a separate thread draws, from the
/// start of the experiment to its end or to the destructor. The cursor is hidden only while a picture is written, so
/// that a program that dies leaves the terminal as it was. In a UTF-8 locale there is a small curve beside the best
/// value. All members may be called from any thread.
class TerminalDisplay {
 public:
  explicit TerminalDisplay(TerminalOptions options = {}) : state_(std::make_unique<State>(std::move(options))) {}

  /// A record from before a resumption: it is counted, but not announced.
  void catch_up(const Record& record) {
    const std::lock_guard lock(state_->mutex);
    state_->tracker.add(record, false);
  }
  /// Sets what the records do not contain; see Capacity.
  void set_capacity(Capacity capacity) {
    const std::lock_guard lock(state_->mutex);
    state_->tracker.set_capacity(std::move(capacity));
  }
  /// Prints a line above the table (a warning, a hint). Nothing with `quiet`. While an experiment runs, the drawing
  /// thread does it: the caller does not wait for the terminal.
  void print(std::string_view line) { state_->print(line); }
  /// Whether a table is drawn in place.
  bool live() const { return state_->live; }

  // Callback
  void on_record(const Record& record) { state_->on_record(record); }
  std::string name() const { return "terminal"; }

 private:
  struct State {
    explicit State(TerminalOptions o);
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { close(); }

    void on_record(const Record& record);
    void print(std::string_view line);
    void write(const std::string& line);
    void close();
    void run();
    void show(const ExperimentProgress& p, bool last);
    void show_plain(const ExperimentProgress& p, bool last);

    const TerminalOptions options;
    const bool live;
    std::mutex mutex;  // protects tracker, closing, drawing, lines, and the start of thread
    ProgressTracker tracker;
    bool closing = false;
    bool drawing = false;            // the thread takes lines
    std::vector<std::string> lines;  // printed and not yet taken by it
    std::condition_variable wake;
    std::thread thread;
    std::chrono::steady_clock::time_point began;

    std::mutex output;  // protects all members below; taken after `mutex` is released
    detail::terminal::LiveRegion region;
    bool color, unicode;
    std::int64_t shown_improvements = 0, shown_failures = 0;
    double last_best = -1e9, last_summary = 0;
    bool announced = false;
  };

  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0
