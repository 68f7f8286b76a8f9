// Script: runs JavaScript in QuickJS. A script can reach the outside only by one function, ask().
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::plot {

/// One engine; scripts share its global state. Errors of kind `io` if a script fails, or takes too long or too much
/// memory. To be used by one thread.
class Script {
 public:
  /// The text of a module by its path ("/charts/base.js"); nullopt: no such module.
  using Modules = std::function<std::optional<std::string>(std::string_view path)>;
  /// Implements a script's `ask(text)`. An exception ends the script, and call() throws it again.
  using Ask = std::function<std::string(const std::string& text)>;

  Script(Modules modules, Ask ask, std::chrono::seconds patience = std::chrono::seconds(120));
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script();

  /// Runs a script that is not a module. `name` is used in messages.
  void run(const std::string& source, const char* name);
  /// Runs a module, and returns the text that it has stored in the global `answer`. If it throws an Error whose name is
  /// Problem, throws an Error of kind `input` with its message.
  std::string call(const std::string& module, const char* name);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace hypertune::inline v0::plot
