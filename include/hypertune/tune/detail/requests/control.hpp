// Requests of a user at another terminal to a running driver, and the pipe that carries them.
#pragma once

#include <hypertune/space/params.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

struct DriverInfo;

/// One request of a user. Without trials it is about the whole experiment.
struct ControlRequest {
  enum class Kind : std::uint8_t {
    leave,      ///< like a first Ctrl-C: every trial saves at its next report, then the driver ends
    leave_now,  ///< like a second Ctrl-C
    stop,       ///< these trials end for good
    pause,      ///< these trials, or all, save, free their slots and wait
    proceed,    ///< ends a pause
    add,        ///< adds a configuration to try
    note,       ///< sets attributes of these trials, or of the experiment
    why,        ///< changes nothing; answers "trial N: …" with the reason for each trial that waits
    resize,     ///< gives these trials, or all, another number of workers (`params`: "workers"; 0: any number)
  };
  Kind kind = Kind::leave;
  std::vector<TrialId> trials = {};
  Params params = {};  ///< for add, note and resize
  friend bool operator==(const ControlRequest&, const ControlRequest&) = default;
};

/// The first line of the answer to a `why` while the user has paused the experiment, or all trials that could run.
inline constexpr std::string_view experiment_paused_text = "the whole experiment is paused by hand";
/// The answer to a `why` that names no trial while none runs begins with this; what the next trial waits for follows.
inline constexpr std::string_view nothing_runs = "no trial runs: ";

/// The answer: a line for each thing that was done, or the reason why it was not.
struct ControlAnswer {
  bool done = true;
  std::string text = {};
};

/// The driver's side: a named pipe in the experiment's folder (`control`, accessible to its owner only) and a thread
/// that reads it. A request is one message of at most PIPE_BUF bytes, which the kernel writes in one piece. It names
/// the pipe for the answer. Anything else that arrives is ignored. Create it only while holding the experiment's lock.
class ControlPipe {
 public:
  using Handler = std::function<ControlAnswer(const ControlRequest&)>;

  /// `handler` is called on the pipe's thread, one call at a time. On a file system without named pipes there are no
  /// requests; this is no error.
  ControlPipe(const std::filesystem::path& directory, Handler handler);
  ControlPipe(const ControlPipe&) = delete;
  ControlPipe& operator=(const ControlPipe&) = delete;
  ~ControlPipe();  ///< ends the thread, and removes the pipe

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// How to let a driver go on whose process is stopped (by SIGSTOP, Ctrl-Z or a debugger); empty if it is not, or runs on
/// another host.
std::string how_to_wake(const DriverInfo& driver);

/// How long a request waits for its answer.
struct AskPatience {
  double seconds = 30;
  /// Called after `notice_after` seconds without an answer, once, with a line for the user.
  std::function<void(const std::string&)> notice = {};
  double notice_after = 3;
};
/// Sends a request to the driver of the experiment in `directory` and waits for its answer. Errors: `usage` (no driver
/// runs there, it does not listen, or the request is too long), `busy` (no answer in time, or after `notice_after` from
/// a driver whose process is stopped: the request stays, and may still be carried out), `io`.
ControlAnswer ask_driver(const std::filesystem::path& directory, const ControlRequest& request,
                         const AskPatience& patience = {});

/// The parts of the answer to a `why`.
struct WhyAnswer {
  bool paused = false;                          ///< it begins with experiment_paused_text
  std::string nothing_runs = {};                ///< the line that begins with hypertune::nothing_runs, if there is one
  std::map<TrialId, std::string> reasons = {};  ///< for each trial that waits
};
/// Asks the driver what these trials wait for, because the records do not show it: the user has paused them, or a host
/// is missing. Empty if it cannot be asked: it belongs to another user or machine, is busy, or has just ended.
WhyAnswer ask_why(const std::filesystem::path& directory, std::vector<TrialId> trials, double seconds);

namespace detail {

/// The first bytes of each request. Its length follows in two bytes.
inline constexpr std::string_view control_mark = "\x02hypertune\x03";
/// A request as it is written into the pipe. `answer_to`: the name of the pipe for the answer.
std::string encode_request(const ControlRequest& request, std::string_view answer_to);
/// Decodes a request without mark and length. Throws an Error of kind `corrupt` for anything that encode_request() does
/// not produce.
std::pair<std::string, ControlRequest> decode_request(std::string_view body);

}  // namespace detail

}  // namespace hypertune::inline v0
