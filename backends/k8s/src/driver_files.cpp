// The files that a driver in the cluster gets before it begins.
#include "driver_files.hpp"

#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/shipping.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <random>

namespace hypertune::inline v0::k8s {

std::string new_submission() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void copy_files(remote::HostShell& shell, const DriverFiles& files, bool program, const std::string& folder,
                const std::string& submission) {
  shell.facts = remote::ask_facts(shell);
  // The files of an earlier submission may be there. Without `ready` the driver does not begin with a mixture.
  shell.must("make way for the files", R"sh(cd -- "$1" && rm -f ready)sh", {folder});
  if (program) {
    const auto path = files.program.empty() ? std::filesystem::read_symlink("/proc/self/exe") : files.program;
    remote::upload(shell, path, folder + "/hypertune");
    remote::check_program(shell, path, folder + "/hypertune");
  }
  for (const auto& file : files.files) {
    auto mount = file;
    mount.remote = folder + "/" + mount.remote;
    if (std::filesystem::is_directory(mount.local))
      remote::mount_files(shell, mount, {.directory = folder + "/cache"});
    else
      remote::upload(shell, mount.local, mount.remote);
  }
  std::string arguments;
  for (const auto& word : files.arguments) arguments += word + "\n";
  remote::upload_text(shell, arguments, folder + "/arguments");
  shell.must("begin", R"sh(cd -- "$1" && printf '%s\n' "$2" >ready.new && mv -f ready.new ready)sh",
             {folder, submission});
}

FilesState files_state(const remote::HostShell& shell, const std::string& folder) {
  // While files are being copied, something in the folder changes all the time.
  const auto said = shell
                        .must("look for the driver's files", R"sh(cd -- "$1" || exit 1
is=
[ ! -e ready ] || IFS= read -r is <ready || :
if [ "$is" = "${HYPERTUNE_SUBMISSION-}" ]; then echo all; exit 0; fi
: >looking
sleep 10
if [ -n "$(find . -path ./experiment -prune -o ! -name looking ! -name waiting -newer looking -print 2>/dev/null)" ]
then echo underway; else echo nothing; fi)sh",
                              {folder})
                        .out;
  return said.starts_with("all")        ? FilesState::all
         : said.starts_with("underway") ? FilesState::underway
                                        : FilesState::nothing;
}

}  // namespace hypertune::inline v0::k8s
