// What the programs beside it share: their arguments, options without a display, and the memory they took.
#pragma once

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace peers {

namespace ht = hypertune;

/// Throws what names the argument that is no number.
inline int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    ht::fail(ht::Errc::usage, "'{}' is not a whole number", text);
  return value;
}

/// The wall clock, which the measuring script reads too.
inline double epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline double monotonic() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "threads" or "processes", of `cpus` trials at once.
inline ht::AnyExecutor executor(std::string_view kind, int cpus) {
  if (kind == "threads") return ht::threads(cpus);
  if (kind == "processes") return ht::processes({.pool = cpus});
  ht::fail(ht::Errc::usage, "'{}' is no executor: say threads or processes", kind);
}

/// Most memory that this process ever had resident, in MiB: it shares little, so that this is just above its PSS.
inline double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      double kib = 0;
      status >> kib;
      return kib / 1024;
    }
  return std::numeric_limits<double>::quiet_NaN();
}

struct Config {
  double a = 0;
};

inline ht::Space<Config> space() { return ht::space<Config>(ht::dim("a", &Config::a, ht::uniform(0.0, 1.0))); }

/// "random", as the peers' are asked to search where the engine is measured, or "default".
inline ht::AnySearcher searcher(std::string_view name) {
  if (name == "random") return ht::Random{};
  if (name == "default") return ht::Options().search;
  ht::fail(ht::Errc::usage, "'{}' is no searcher: say random or default", name);
}

/// What every measurement has in common; a user's defaults, but for the display and the searcher.
inline ht::Options options(const std::filesystem::path& output, int samples, std::string_view search = "random") {
  ht::Options o;
  o.search = searcher(search);
  o.metric = "x";
  o.mode = ht::Mode::maximize;
  o.samples = samples;
  o.output = output;
  o.display = ht::Display::quiet;
  return o;
}

/// Runs `body(arguments)`; what it throws becomes one line and the exit status 1.
template <class F>
int run(int argc, char** argv, F body) {
  try {
    return body(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}

}  // namespace peers
