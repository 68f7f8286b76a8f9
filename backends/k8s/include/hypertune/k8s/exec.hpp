// Commands that the API server runs in a container, and how they ended.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// A command in a container of a running pod. It is run without a shell.
struct PodCommand {
  std::string pod;
  std::vector<std::string> command;
  std::string container = {};   ///< empty: the pod's default one
  std::string name_space = {};  ///< empty: the client's
};

/// Meant for designated initialisers.
struct ExecOptions {
  /// Returns pieces of its standard input, called on the calling thread as fast as the pod takes them; an empty piece
  /// ends it. Not set: its standard input is empty.
  std::function<std::string_view()> input = {};
  bool hold_input = false;  ///< keep its standard input open until it exits
  /// Receive pieces of its output, on the calling thread; false: stop reading. Not set: collected in the result.
  std::function<bool(std::string_view)> take_out = {}, take_err = {};
  std::size_t max_output = std::size_t{64} << 20U;  ///< bytes of either stream; more is an Error
  Seconds deadline = 60;
  Seconds stall = 1e9;  ///< give up after this time in which no byte was transferred
};

/// The streams of a command in a container, as descriptors of this process. Meant for designated initialisers.
struct Foreground {
  int in = 0, out = 1, err = 2;
  /// Gives the command a terminal, with both outputs in one stream, of the size of the terminal at `out`, also when
  /// that changes. The terminal at `in` is in raw mode meanwhile: the command gets all keys, including Ctrl-C.
  bool terminal = false;
  Seconds deadline = 30;  ///< seconds to start it
};

struct ExecResult {
  int exit = 0;  ///< exit code; 128 + the signal if a signal killed it
  std::string out = {}, err = {};
  bool input_cut = false;  ///< it ended before it had read all of its input
  bool ok() const { return exit == 0; }
};

}  // namespace hypertune::inline v0::k8s
