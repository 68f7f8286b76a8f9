// Script: JavaScript with no way to the outside but one question, by QuickJS.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::plot {

/// One engine: what runs in it sees what ran before. Errors of kind `io` where a script has a fault, takes too long or
/// too much memory. One thread.
class Script {
 public:
  /// The text of a module by its path ("/charts/base.js"); nullopt: there is none.
  using Modules = std::function<std::optional<std::string>(std::string_view path)>;
  /// What `ask(text)` of a script returns. What it throws ends the script, and is thrown on by call().
  using Ask = std::function<std::string(const std::string& text)>;

  Script(Modules modules, Ask ask, std::chrono::seconds patience = std::chrono::seconds(120));
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script();

  /// Runs a script that is no module. `name` is for messages.
  void run(const std::string& source, const char* name);
  /// Runs a module, and returns the global text `answer` that it has set. Error of kind `input` where it throws an
  /// Error whose name is Problem: that is its message.
  std::string call(const std::string& module, const char* name);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace hypertune::inline v0::plot
