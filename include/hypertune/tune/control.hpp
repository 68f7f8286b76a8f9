// What a person at another terminal asks of a driver that runs, and the way it gets there.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// One wish of a person. Without trials it is on the whole experiment.
struct ControlRequest {
  enum class Kind : std::uint8_t {
    leave,      ///< as a first Ctrl-C: every trial saves at its next report, and the driver leaves
    leave_now,  ///< as a second one
    stop,       ///< these trials end for good
    pause,      ///< these trials, or all, save and free their slots, and wait
    proceed,    ///< … no longer
    add,        ///< one more configuration
    note,       ///< attributes of these trials, or of the experiment
    why,        ///< changes nothing: "trial N: …" for each of these trials that waits, and for what; before it at_rest
    resize,     ///< these trials, or all, have so many workers from now on (`params`: "workers"; 0: any number)
  };
  Kind kind = Kind::leave;
  std::vector<TrialId> trials = {};
  Params params = {};  ///< of add, note and resize
  friend bool operator==(const ControlRequest&, const ControlRequest&) = default;
};

/// The first line of the answer to a `why` while a person has the whole rest.
inline constexpr std::string_view at_rest = "the whole experiment is paused by hand";
/// … and, where no trial is named and none runs, what the next one waits for, after this.
inline constexpr std::string_view nothing_runs = "no trial runs: ";

/// What came of it: a line for each thing that was done, or that was not and why.
struct ControlAnswer {
  bool done = true;
  std::string text = {};
};

/// The driver's end: a pipe in the experiment's folder (`control`, for its owner alone) and a thread that waits at it.
/// A request is one message of at most PIPE_BUF bytes, which the kernel keeps in one piece, and names the pipe that the
/// answer is to go to. Whatever else comes is thrown away. Use it while the experiment's lock is held.
class ControlPipe {
 public:
  using Handler = std::function<ControlAnswer(const ControlRequest&)>;

  /// `handler` is called on the thread of the pipe, one call at a time. Where the file system has no pipes, nobody can
  /// ask, and nothing else is amiss.
  ControlPipe(const std::filesystem::path& directory, Handler handler);
  ControlPipe(const ControlPipe&) = delete;
  ControlPipe& operator=(const ControlPipe&) = delete;
  ~ControlPipe();  ///< ends the thread, and removes the pipe

 private:
  class State;
  std::unique_ptr<State> self_;
};

/// Asks the driver of the experiment in `directory` and waits for its answer. Errors: `usage` (no driver runs there,
/// none that listens, or a request that is too long), `busy` (it has not answered in `seconds`), `io`.
ControlAnswer ask_driver(const std::filesystem::path& directory, const ControlRequest& request, double seconds = 30);

namespace detail {

/// What each request begins with; two bytes of its length follow.
inline constexpr std::string_view control_mark = "\x02hypertune\x03";
/// A request as it goes through the pipe. `answer_to`: the pipe of who asks.
std::string encode_request(const ControlRequest& request, std::string_view answer_to);
/// The same without mark and length. Error of kind `corrupt` for what encode_request() does not make.
std::pair<std::string, ControlRequest> decode_request(std::string_view body);

}  // namespace detail

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/control.hpp>
#endif
