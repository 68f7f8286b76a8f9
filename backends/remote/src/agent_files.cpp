// Preparing an agent on a host.
#include "host_failures.hpp"

#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/runtime.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {
namespace {

// The folder is private, unless the disk is shared with other users. Files that trials make have the user's umask,
// except that on a shared disk the driver's user must be able to move them.
constexpr std::string_view start_script = R"sh(own=$(umask)
umask "$1"
mkdir -p -- "$2" && cd -- "$2" || exit 1
umask "$own"
if [ "$1" = 007 ]; then umask g=rwx; fi
shift 2
exec "$@")sh";

// Checked now, because a missing program would make every trial fail.
void check_needs(const HostShell& shell, const std::vector<std::string>& needs, const std::string& folder) {
  if (needs.empty()) return;
  std::vector<std::string> words{folder};
  words.insert(words.end(), needs.begin(), needs.end());
  const auto seen = shell.must(fmt::format("use the folder '{}'", folder), R"sh(
mkdir -p -- "$1" && cd -- "$1" || exit 1
shift
for program do
  command -v -- "$program" >/dev/null || { printf '\nhypertune-missing %s\n' "$program"; exit 0; }
done
)sh",
                               words);
  const std::string mark = "\nhypertune-missing ";
  const auto at = seen.out.find(mark);
  if (at == std::string::npos) return;
  const auto program = detail::last_line(seen.out.substr(at + mark.size()));
  const bool path = program.find('/') != std::string::npos;
  throw HostError(HostProblem::missing_program,
                  fmt::format("{}: there is no program '{}' {}: {}", shell.title, program,
                              path ? fmt::format("that may be run in '{}'", folder) : "in its PATH",
                              path ? "bring it there with file_mounts" : "install it there, or name it by its path"));
}

}  // namespace

std::vector<std::string> prepare_agent(const HostShell& shell, const AgentFiles& files, const HostOptions& limits) {
  const auto shipped =
      files.program.empty() ? ship_self(shell, files.ship) : ship_program(shell, files.program, files.ship);
  const auto folder = shell.absolute(files.directory);
  for (auto mount : files.mounts) {
    if (!mount.remote.starts_with('/') && !mount.remote.starts_with('~')) mount.remote = folder + "/" + mount.remote;
    const auto mounted = mount_files(shell, mount, files.ship);
    for (const auto& program : files.programs)
      if (program == mount.local) check_program(shell, program, mounted.remote);
  }
  check_needs(shell, files.needs, folder);
  std::vector<std::string> words{
      "sh", "-c", std::string(start_script), "hypertune", files.shared ? "007" : "077", folder, shipped.path};
  words.insert(words.end(), files.arguments.begin(), files.arguments.end());
  words.insert(words.end(), {"--hypertune-agent", agent_limits_text(limits)});
  return words;
}

}  // namespace hypertune::inline v0::remote
