// Running the commands of CLUSTER.yaml on a machine.
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

// Ends processes that an earlier command left running. The file $1 contains its process group. The kill of busybox does
// not accept `--`.
constexpr std::string_view end_script = R"sh(group=$(cat "$1" 2>/dev/null) || exit 0
rm -f "$1"
kill -TERM "-$group" 2>/dev/null || exit 0
i=0
while kill -0 "-$group" 2>/dev/null && [ $i -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
kill -KILL "-$group" 2>/dev/null
exit 0)sh";

// $1: the line that ends the command; $2: the file for its process group; $3: empty if the end of the input is not
// reported. An incomplete command is not run. This process leads a process group, since sshd and container runtimes
// start it so. If its standard input ends before the script, the caller is gone, and the group is killed.
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
    int code = 0;
    std::string out, err;
    const auto take = [&](std::string& into) {
      return [&](std::string_view said) {
        if (log) log(said);
        into += said;
        if (into.size() > 2 * kept) into.erase(0, into.size() - kept);  // only the last lines are shown
        return true;
      };
    };
    for (int attempt = 1; attempt == 1 || (!watched && code == cut_short && attempt <= most); ++attempt) {
      try {
        code = shell
                   .run(hidden_script, {std::string(script_end), noted, watched ? "watched" : ""},
                        {.input = process::whole(text),
                         .hold_input = true,
                         .take_out = take(out),
                         .take_err = take(err),
                         .deadline = timeout,
                         .max_output = SIZE_MAX,
                         .stop = stop})
                   .exit;
      } catch (const Error&) {
        try {
          if (!watched) end_last();
        } catch (const Error&) {  // the next call tries again
        }
        throw;
      }
    }
    // The command may contain secrets, so the message only gives its place in the file.
    if (code != 0) fail(Errc::io, "{}: {}[{}] {}", shell.title, title, i, why_failed(code, out, err));
  }
}

}  // namespace hypertune::inline v0::cluster
