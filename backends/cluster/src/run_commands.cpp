// Commands of CLUSTER.yaml on a machine.
#include "run_commands.hpp"

#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace hypertune::inline v0::cluster {
namespace {

constexpr std::string_view script_end = ": the end of this command";

// What was cut short is not run. This process is the leader of a group, as sshd and container runtimes make it: when
// its standard input ends before the script does, nobody is there any more who asked for it, and the group ends.
constexpr std::string_view hidden_script = R"sh(as_login
cd 2>/dev/null || :
hypertune_script= hypertune_line=
while IFS= read -r hypertune_line && [ "$hypertune_line" != "$1" ]; do
  hypertune_script="$hypertune_script$hypertune_line
"
done
[ "$hypertune_line" = "$1" ] || exit 1
exec 3<&0 </dev/null
( while read -r hypertune_line; do :; done
  trap '' TERM
  kill -s TERM -- "-$$"; sleep 5; kill -s KILL -- "-$$" ) <&3 >/dev/null 2>&1 &
hypertune_watch=$!
exec 3<&-
export hypertune_script
if command -v bash >/dev/null 2>&1; then hypertune_shell=bash; else hypertune_shell=sh; fi
$hypertune_shell -lc 's=$hypertune_script; unset hypertune_script; eval "$s"'
hypertune_code=$?
exec 2>/dev/null
kill "$hypertune_watch"
exit "$hypertune_code")sh";

}  // namespace

void run_commands(const remote::HostShell& shell, const std::string& title, const std::vector<std::string>& commands,
                  const std::function<void(std::string_view)>& log, const std::stop_token& stop, double timeout) {
  constexpr std::size_t kept = std::size_t{1} << 16U;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto text = fmt::format("{}\n{}\n", commands[i], script_end);
    std::string_view input = text;
    ProgramResult result;
    const auto take = [&](std::string& into) {
      return [&](std::string_view said) {
        if (log) log(said);
        into += said;
        if (into.size() > 2 * kept) into.erase(0, into.size() - kept);  // its last lines are told
        return true;
      };
    };
    result.code = shell
                      .run(hidden_script, {std::string(script_end)},
                           {.input = [&] { return std::exchange(input, {}); },
                            .hold_input = true,
                            .take_out = take(result.output),
                            .take_err = take(result.errors),
                            .deadline = timeout,
                            .max_output = SIZE_MAX,
                            .stop = stop})
                      .exit;
    // The command itself may hold what no log should: its place in the file is enough.
    if (!result.ok()) fail(Errc::io, "{}: {}[{}] {}", shell.title, title, i, result.why());
  }
}

}  // namespace hypertune::inline v0::cluster
