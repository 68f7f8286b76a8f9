// OutputLines: cuts what a program prints into lines, and those into the updates of a progress bar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::local {

/// A line of a program's output, or an update of it that the program has written over (by \r, by backspaces, or by
/// moving the cursor). Without its end, and without sequences for terminals (ANSI).
struct OutputLine {
  std::string text;
  bool whole = true;      ///< false: a piece of one that is longer than the limit; the last piece ends with \n
  bool first = true;      ///< the first piece
  bool stays = true;      ///< false: the program has written over it
  bool update = false;    ///< one of several updates, which differ only in numbers
  bool shown = true;      ///< false: the next update, which says the same with newer numbers, is enough for a log
  bool passing = false;   ///< an update that is passed on because no line has ended for long; it may come again
  bool drawn = false;     ///< the cursor has come back to it, or may
  std::uint64_t row = 0;  ///< the line, of which this may be an update: how many have ended before it
};

/// Of a series of updates that differ only in numbers, the last one is passed on when the program writes something else
/// or ends the line: this is what a terminal shows in the end. A line that never ends has its latest update passed on
/// every minute. A line that begins with a brace is never taken for an update, because it may be a report.
///
/// A program that draws several bars moves the cursor up, over lines that have ended. From then on the lines down to the
/// lowest from which it has moved up are like one that has not ended: they are passed on when the program goes on below
/// them, or so far that it does not move up to them any more. What had ended before the first such move has been passed
/// on.
///
/// Holds two updates at most of each of these lines (at most 60), each at most as long as the limit.
class OutputLines {
 public:
  using Take = std::function<void(OutputLine)>;

  /// `most`: bytes of a line, or an update, that are kept in one piece. `every_update`: passes on every update.
  explicit OutputLines(std::size_t most = std::size_t{1} << 20U, bool every_update = false)
      : most_(most), every_update_(every_update) {}

  /// Seconds after which the latest update of a line that goes on is passed on.
  static constexpr double patience = 60;

  /// `now`: seconds of any clock that only grows.
  void add(std::string_view more, double now, const Take& take);
  /// The output has ended: passes on the last line even if it has no end.
  void end(const Take& take);

 private:
  static constexpr std::uint64_t max_rows = 60;  // of a tall terminal

  enum class State : std::uint8_t { text, escape, charset, control, command, command_escape };

  struct Row {
    std::string text;                 // the update that is being written
    bool cut = false;                 // it was too long: pieces of it have been passed on
    bool passed = false;              // it had ended and was passed on before the cursor came back
    bool ended = false;               // by \n
    std::optional<std::string> held;  // the update before it
    std::string held_kind;
    bool held_update = false;  // it took the place of another one
    double shown_at = 0;       // when this line, or its latest passing update, began
  };

  std::uint64_t line() const { return top_ + at_; }
  void put(std::string_view plain, const Take& take);  // text that is seen
  void leave(std::size_t index, const Take& take);     // what comes is written over this line
  void new_line(const Take& take);
  void up(std::uint64_t lines);
  void down();
  void pass_rows(std::size_t count, const Take& take);  // the first ones, which cannot change any more
  void end_row(std::size_t index, const Take& take);
  void pass(OutputLine line, std::size_t index, const Take& take);
  void pass_held(std::size_t index, bool shown, const Take& take);
  void sequence(char byte, const Take& take);          // a byte of a sequence for terminals
  void control_sequence(char last, const Take& take);  // its last byte

  std::size_t most_;
  bool every_update_;
  std::deque<Row> rows_ = std::deque<Row>(1);  // those that may change; the others have been passed on
  std::uint64_t top_ = 0;                      // the number of the first one
  std::size_t at_ = 0;                         // which of them the cursor is in
  std::uint64_t below_ = 0;                    // the lowest line from which the cursor has moved up, plus 1
  std::uint64_t height_ = 0;                   // the most lines that it has moved up at once
  std::optional<std::uint64_t> from_;          // where the present move up has begun
  std::optional<std::uint64_t> home_;          // the line at which the screen begins
  bool returned_ = false;                      // \r was seen: the end of the line, if \n comes next
  std::size_t back_ = 0;                       // backspaces seen: they take effect when something is written
  double now_ = 0;
  State state_ = State::text;
  std::string sequence_;  // the beginning of a control sequence
};

}  // namespace hypertune::inline v0::local
