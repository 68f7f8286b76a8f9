// HostShell and HostFacts.
#include "host_failures.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/whole.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {

const std::string_view facts_script = R"sh(printf 'hypertune-facts\n'
echo "system=$(uname -s)"
echo "architecture=$(uname -m)"
echo "name=$(uname -n)"
echo "user=$(id -un 2>/dev/null || echo "$LOGNAME")"
echo "home=$HOME"
echo "boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
echo "cpus=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
echo "time=$(date +%s)"
echo "end=1"
)sh";

static double number_of(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? value : 0;
}

bool read_facts(std::string_view text, double now, HostFacts& facts) {
  // The output of the account's start-up files comes first and is skipped.
  constexpr std::string_view begin = "hypertune-facts\n";
  bool complete = false;
  const auto mark = text.find(begin);
  if (mark == std::string_view::npos) return false;
  text.remove_prefix(mark + begin.size());
  while (!text.empty()) {
    auto line = hypertune::detail::take_until(text, '\n');
    const auto key = hypertune::detail::take_until(line, '=');
    const std::string value(line);
    if (key == "system") facts.system = value;
    if (key == "architecture") facts.architecture = value;
    if (key == "name") facts.name = value;
    if (key == "user") facts.user = value;
    if (key == "home") facts.home = value;
    if (key == "boot") facts.boot = value;
    if (key == "cpus") facts.cpus = hypertune::detail::whole_within(number_of(value), 1, 1'000'000);
    if (key == "time" && !value.empty()) facts.clock_ahead = number_of(value) + 0.5 - now;  // whole seconds
    if (key == "end") complete = true;
  }
  if (facts.home.empty() || facts.home.front() != '/') facts.home = "/";
  return complete;
}

std::optional<RunResult> measure_facts(HostFacts& facts, const std::function<RunResult()>& run) {
  const auto wall = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const double before = wall(), steady = hypertune::detail::steady_seconds();
  RunResult result = run();
  facts.round_trip = hypertune::detail::steady_seconds() - steady;
  if (read_facts(result.out, (before + wall()) / 2, facts)) return std::nullopt;
  return result;
}

std::string absolute_path(const std::string& path, const std::string& home, const std::string& title) {
  if (path.starts_with('/')) return path;
  const std::string begin = home == "/" ? "" : home;
  if (path.empty() || path == "~") return begin.empty() ? "/" : begin;
  if (path.starts_with("~/")) return begin + path.substr(1);
  if (path.front() == '~')
    fail(Errc::usage, "{}: '{}' is no path that is known: write the folder of another account in full", title, path);
  return begin + "/" + path;
}

}  // namespace detail

RunResult HostShell::must(std::string_view doing, std::string_view script, const std::vector<std::string>& arguments,
                          const ShellOptions& options) const {
  auto result = run(script, arguments, options);
  if (!result.ok()) throw detail::host_error(title, doing, result);
  return result;
}

std::string HostShell::absolute(const std::string& path) const {
  return detail::absolute_path(path, facts.home, title);
}

std::vector<std::string> script_arguments(std::string_view script, const std::vector<std::string>& arguments) {
  // New files and folders of scripts must not be readable by other users.
  constexpr std::string_view begin = R"sh(login_umask=$(umask) login_locale=${LC_ALL-}
as_login() {
  umask "$login_umask"
  if [ -n "$login_locale" ]; then LC_ALL=$login_locale; else unset LC_ALL; fi
}
LC_ALL=C; export LC_ALL
umask 077
)sh";
  std::vector<std::string> all{"sh", "-c", std::string(begin) + std::string(script), "hypertune"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

HostFacts ask_facts(const HostShell& shell, Seconds deadline) {
  HostFacts facts;
  const auto run = [&] { return shell.run(detail::facts_script, {}, {.deadline = deadline}); };
  if (const auto incomplete = detail::measure_facts(facts, run)) {
    const auto said = detail::last_line(incomplete->err.empty() ? incomplete->out : incomplete->err);
    throw HostError(
        detail::host_error(shell.title, "run a script of sh", *incomplete).problem(),
        fmt::format("{}: no script of sh runs there{}", shell.title, said.empty() ? "" : " (" + said + ")"));
  }
  return facts;
}

}  // namespace hypertune::inline v0::remote
