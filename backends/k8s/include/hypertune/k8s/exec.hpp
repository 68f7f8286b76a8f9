// What is run in a container by the API server, and how it ended.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A command in a container of a running pod. There is no shell between.
struct PodCommand {
  std::string pod;
  std::vector<std::string> command;
  std::string container = {};   ///< empty: the pod's default one
  std::string name_space = {};  ///< empty: the client's
};

/// Meant for designated initialisers.
struct ExecOptions {
  /// Pieces of its standard input, asked for by the thread that calls, as fast as the pod takes them; empty: no more.
  /// Not set: its standard input is empty.
  std::function<std::string_view()> input = {};
  bool hold_input = false;  ///< its standard input does not end before it does
  /// Pieces of what it says, on the thread that calls; false: enough, it is left. Not set: collected in the result.
  std::function<bool(std::string_view)> take_out = {}, take_err = {};
  std::size_t max_output = std::size_t{64} << 20U;  ///< bytes of either stream; more is an Error
  Seconds deadline = 60;
  Seconds stall = 1e9;  ///< … and without a byte moving for so long it is given up
};

/// What a command in a container has for its streams: descriptors of this process. Meant for designated initialisers.
struct Foreground {
  int in = 0, out = 1, err = 2;
  /// A terminal of its own, with both outputs in one, of the size of the terminal at `out`, also when that changes. The
  /// terminal at `in` is raw meanwhile: what is typed, Ctrl-C too, is the command's.
  bool terminal = false;
  Seconds deadline = 30;  ///< to start it
};

struct ExecResult {
  int exit = 0;  ///< exit code; 128 + the signal where one ended it
  std::string out = {}, err = {};
  bool input_cut = false;  ///< it ended before it took all of its input
  bool ok() const { return exit == 0; }
};

}  // namespace hypertune::inline v0::k8s
