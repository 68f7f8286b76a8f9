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

constexpr int cut_short = 75;  // EX_TEMPFAIL

// Ends what an earlier command has left running: its group is in the file $1. The kill of busybox takes no `--`.
constexpr std::string_view end_script = R"sh(group=$(cat "$1" 2>/dev/null) || exit 0
rm -f "$1"
kill -TERM "-$group" 2>/dev/null || exit 0
i=0
while kill -0 "-$group" 2>/dev/null && [ $i -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
kill -KILL "-$group" 2>/dev/null
exit 0)sh";

// $1 ends the command, $2 is where its group is noted, $3 is empty where the end of the input says nothing. What was
// cut short is not run. This process is the leader of a group, as sshd and container runtimes make it: when its
// standard input ends before the script does, nobody is there any more who asked for it, and the group ends.
constexpr std::string_view hidden_script = R"sh([ -z "$2" ] || echo $$ >"$2" || exit 1
as_login
cd 2>/dev/null || :
hypertune_script= hypertune_line=
while IFS= read -r hypertune_line && [ "$hypertune_line" != "$1" ]; do
  hypertune_script="$hypertune_script$hypertune_line
"
done
[ "$hypertune_line" = "$1" ] || exit 75
exec 3<&0 </dev/null
hypertune_watch=
[ -z "$3" ] || { ( while read -r hypertune_line; do :; done
  trap '' TERM
  kill -TERM "-$$"; sleep 5; kill -KILL "-$$" ) <&3 >/dev/null 2>&1 &
hypertune_watch=$!; }
exec 3<&-
export hypertune_script
if command -v bash >/dev/null 2>&1; then hypertune_shell=bash; else hypertune_shell=sh; fi
$hypertune_shell -lc 's=$hypertune_script; unset hypertune_script; eval "$s"'
hypertune_code=$?
exec 2>/dev/null
[ -z "$2" ] || rm -f "$2"
[ -z "$hypertune_watch" ] || kill "$hypertune_watch"
exit "$hypertune_code")sh";

}  // namespace

void run_commands(const remote::HostShell& shell, const std::string& folder, const std::string& title,
                  const std::vector<std::string>& commands, const std::function<void(std::string_view)>& log,
                  const std::stop_token& stop, double timeout) {
  constexpr std::size_t kept = std::size_t{1} << 16U;
  constexpr int most = 5;
  const bool watched = !shell.input_may_be_cut;
  const auto noted = watched ? std::string() : shell.absolute(folder) + "/command";
  const auto end_last = [&] { shell.run(end_script, {noted}, {.deadline = 30}); };
  if (!watched) end_last();
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto text = fmt::format("{}\n{}\n", commands[i], script_end);
    ProgramResult result;
    const auto take = [&](std::string& into) {
      return [&](std::string_view said) {
        if (log) log(said);
        into += said;
        if (into.size() > 2 * kept) into.erase(0, into.size() - kept);  // its last lines are told
        return true;
      };
    };
    for (int attempt = 1; attempt == 1 || (!watched && result.code == cut_short && attempt <= most); ++attempt) {
      std::string_view input = text;
      try {
        result.code = shell
                          .run(hidden_script, {std::string(script_end), noted, watched ? "watched" : ""},
                               {.input = [&] { return std::exchange(input, {}); },
                                .hold_input = true,
                                .take_out = take(result.output),
                                .take_err = take(result.errors),
                                .deadline = timeout,
                                .max_output = SIZE_MAX,
                                .stop = stop})
                          .exit;
      } catch (const Error&) {
        try {
          if (!watched) end_last();
        } catch (const Error&) {  // the next one does that
        }
        throw;
      }
    }
    // The command itself may hold what no log should: its place in the file is enough.
    if (!result.ok()) fail(Errc::io, "{}: {}[{}] {}", shell.title, title, i, result.why());
  }
}

}  // namespace hypertune::inline v0::cluster
