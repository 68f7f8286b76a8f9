// Files to and from machines.
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/fingerprint.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/ssh/output_mark.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace hypertune::inline v0::cluster {

namespace detail {

[[noreturn]] static void fail_transfer(const ssh::SshConnection& connection, const std::string& doing,
                                       const ProgramResult& result) {
  if (const auto lost = connection.lost()) throw ssh::SshError(*lost);
  fail(Errc::io, "host '{}': cannot {}: {}", connection.host(), doing, result.why());
}

}  // namespace detail

FileSet scan_files(const std::filesystem::path& local, const FolderRules& rules) {
  FileSet files;
  files.root = local;
  struct stat info{};
  if (::stat(local.c_str(), &info) != 0)
    fail(Errc::input, "there is no file or folder '{}': {}", local.string(), std::strerror(errno));
  files.folder = S_ISDIR(info.st_mode);
  detail::Fingerprint print;
  const auto add = [&](const struct stat& file) {
    files.bytes += static_cast<std::uint64_t>(file.st_size);
    print.add(fmt::format("{} {} {} {:o}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_mode));
  };
  if (!files.folder) add(info);
  for (const auto& entry : files.folder ? walk_folder(local, rules) : std::vector<FolderEntry>()) {
    files.paths.push_back(entry.path);
    print.add(entry.path);
    if (!entry.is_folder()) add(entry.info);
  }
  files.fingerprint = print.text();
  return files;
}

void push_files(const ssh::SshConnection& connection, const FileSet& files, const std::string& remote,
                const std::stop_token& stop) {
  if (!files.folder) {
    std::string target = remote;
    const auto name = files.root.filename().string();
    if (remote.ends_with('/') ||
        connection.script("[ -d \"$1\" ]", {connection.absolute(remote)}, {.deadline = 30}).ok())
      target += (remote.ends_with('/') ? "" : "/") + name;
    connection.upload(files.root, target);
    return;
  }
  detail::TemporaryFile list, status;
  std::string names;
  for (const auto& path : files.paths) (names += "./" + path) += '\0';
  list.write(names);
  // What the packing says comes by a file: the exit code is that of the other end.
  ProgramCall call;
  call.arguments = {"sh",
                    "-c",
                    "list=$1 root=$2 status=$3; shift 3\n"
                    "{ tar -C \"$root\" --null --no-recursion -T \"$list\" -cf - 2>\"$status\"; "
                    "echo \"exit $?\" >>\"$status\"; } | \"$@\"",
                    "hypertune",
                    list.path().string(),
                    files.root.string(),
                    status.path().string()};
  const auto there = connection.command({"sh", "-c", "umask 022; mkdir -p \"$1\" && exec tar -C \"$1\" -xof -",
                                         "hypertune", connection.absolute(remote)});
  call.arguments.insert(call.arguments.end(), there.begin(), there.end());
  call.timeout = 24 * 3600;
  call.stop = stop;
  const auto result = run_program(call);
  const auto doing = fmt::format("copy '{}' to '{}'", files.root.string(), remote);
  if (!result.ok()) detail::fail_transfer(connection, doing, result);
  const auto said = detail::read_file(status.path()).value_or("");
  if (!said.ends_with("exit 0\n") && !said.ends_with("exit 1\n"))  // 1: a file changed while it was read
    fail(Errc::io, "cannot {}: {}", doing, said.substr(0, std::min<std::size_t>(said.find('\n'), 300)));
}

std::size_t pull_files(const ssh::SshConnection& connection, const std::string& remote,
                       const std::filesystem::path& local, const std::vector<std::string>& exclude,
                       const std::string& newer_than, const std::stop_token& stop) {
  const auto path = connection.absolute(remote);
  const auto kind = connection.script("if [ -d \"$1\" ]; then echo folder; elif [ -e \"$1\" ]; then echo file; fi",
                                      {path}, {.deadline = 60});
  if (kind.out.find("file") != std::string::npos) {
    auto target = local;
    if (std::filesystem::is_directory(local) || local.filename().empty())
      target /= std::filesystem::path(path).filename();
    connection.download(path, target);
    return 1;
  }
  if (kind.out.find("folder") == std::string::npos)
    fail(Errc::input, "host '{}': there is no file or folder '{}'", connection.host(), remote);
  std::error_code error;
  std::filesystem::create_directories(local, error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", local.string(), error.message());
  // The other end's archive is not trusted: tar keeps names below the folder and sets no owners.
  std::vector<std::string> there{
      "sh",
      "-c",
      ssh::OutputMark::before(
          "cd \"$1\" && newer=$2 && shift 2 && if [ -n \"$newer\" ]; then find . ! -type d -newer \"$newer\" -print0 | "
          "tar \"$@\" --null --no-recursion -T - -cf -; else exec tar \"$@\" -cf - .; fi"),
      "hypertune",
      path,
      newer_than.empty() ? "" : connection.absolute(newer_than)};
  for (const auto& pattern : exclude) {
    const ExcludePattern parsed(pattern);
    if (!parsed.negated) there.push_back("--exclude=" + (parsed.anchored ? "./" + parsed.glob : parsed.glob));
  }
  ProgramCall call;
  // `read` takes no byte too much: what follows the mark is tar's.
  call.arguments = {"sh", "-c",
                    "root=$1 status=$2 mark=$3; shift 3; { \"$@\"; echo \"exit $?\" >\"$status\"; } | {\n"
                    "while IFS= read -r line; do [ \"$line\" = \"$mark\" ] && "
                    "exec tar -C \"$root\" --no-same-owner -xvf -; done; exit 1; }",
                    "hypertune", local.string()};
  detail::TemporaryFile status;
  call.arguments.push_back(status.path().string());
  call.arguments.emplace_back(ssh::OutputMark::line);
  const auto command = connection.command(there);
  call.arguments.insert(call.arguments.end(), command.begin(), command.end());
  call.timeout = 24 * 3600;
  call.stop = stop;
  call.max_output = std::size_t{64} << 20U;
  const auto result = run_program(call);
  const auto doing = fmt::format("copy '{}' to '{}'", remote, local.string());
  const auto end = detail::read_file(status.path()).value_or("");
  const bool sent = end == "exit 0\n" || end == "exit 1\n";
  if (!result.ok() || !sent) {
    if (!sent && result.ok() && connection.alive())
      fail(Errc::io, "host '{}': cannot {}: {}", connection.host(), doing, result.why());
    detail::fail_transfer(connection, doing, result);
  }
  std::size_t count = 0;
  std::string_view rest = result.output;
  while (!rest.empty()) {
    const auto line_end = std::min(rest.find('\n'), rest.size());
    if (line_end > 0 && rest[line_end - 1] != '/') ++count;
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
  }
  return count;
}

}  // namespace hypertune::inline v0::cluster
