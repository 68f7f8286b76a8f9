// TerminalDisplay: a callback that shows an experiment on a terminal, or as plain lines elsewhere.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/show/detail/progress.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

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
  explicit TerminalDisplay(TerminalOptions options = {});
  [[gnu::weak]] ~TerminalDisplay();
  TerminalDisplay(const TerminalDisplay&) = delete;
  TerminalDisplay& operator=(const TerminalDisplay&) = delete;

  /// Whether the program has the definitions of the display. If not, it can make none: what is weak here, so that an
  /// Experiment links without it, is not called.
  static bool defined() { return &TerminalDisplay::make != nullptr; }
  [[gnu::weak]] static std::unique_ptr<TerminalDisplay> make(const TerminalOptions& options);

  /// A record from before a resumption: it is counted, but not announced.
  [[gnu::weak]] void catch_up(const Record& record);
  /// Sets what the records do not contain; see Capacity.
  [[gnu::weak]] void set_capacity(Capacity capacity);
  /// Prints a line above the table (a warning, a hint). Nothing with `quiet`. While an experiment runs, the drawing
  /// thread does it: the caller does not wait for the terminal.
  [[gnu::weak]] void print(std::string_view line);
  /// Whether a table is drawn in place.
  bool live() const;

  // Callback
  [[gnu::weak]] void on_record(const Record& record);
  std::string name() const { return "terminal"; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0
