// Copying files to and from machines.
#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/detail/no_sigpipe.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/host_files.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace hypertune::inline v0::cluster {

namespace {

/// A local tar process that unpacks an archive from a host. It dies with this process.
class LocalTar {
 public:
  explicit LocalTar(const std::filesystem::path& folder)
      // The archive is not trusted: tar rejects paths outside the folder and does not set owners.
      : program_({"tar", "-C", folder.string(), "--no-same-owner", "-xvf", "-"},
                 process::SpawnOptions{
                     .in = process::Stream::pipe, .out = listed_.descriptor(), .err = said_.descriptor()}) {}

  /// Gives tar bytes to unpack; false if it accepts no more.
  bool take(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(program_.in.get(), bytes.data(), bytes.size());
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EINTR) return false;
    }
    return true;
  }
  /// Waits for tar to end. Returns an empty string, or its first error message.
  std::string end() {
    program_.in = {};
    const int code = process::exit_code(program_.wait());
    if (code == 0) return {};
    const auto said = detail::read_file(said_.path()).value_or("");
    return said.empty() ? fmt::format("tar ended with exit code {}", code)
                        : said.substr(0, std::min<std::size_t>(said.find('\n'), 300));
  }
  /// The names of the unpacked files, one per line.
  std::string listed() const { return detail::read_file(listed_.path()).value_or(""); }

 private:
  const hypertune::detail::NoSigpipe no_signal_;  // for writing to a tar that has ended
  detail::TemporaryFile said_, listed_;
  process::Subprocess program_;
};

constexpr double a_day = 24 * 3600;

}  // namespace

FileSet scan_files(const std::filesystem::path& local, const FolderRules& rules) {
  FileSet files;
  files.root = local;
  struct stat info{};
  if (::stat(local.c_str(), &info) != 0)
    fail(Errc::input, "there is no file or folder '{}': {}", local.string(), std::strerror(errno));
  files.folder = S_ISDIR(info.st_mode);
  std::string listing;
  const auto add = [&](const struct stat& file) {
    files.bytes += static_cast<std::uint64_t>(file.st_size);
    listing += fmt::format("{} {} {} {:o}\n", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec, file.st_mode);
  };
  if (!files.folder) add(info);
  for (const auto& entry : files.folder ? walk_folder(local, rules) : std::vector<FolderEntry>()) {
    files.paths.push_back(entry.path);
    listing += entry.path + '\0';
    if (!entry.is_folder()) add(entry.info);
  }
  files.fingerprint = hypertune::detail::ContentHash::of(listing);
  return files;
}

void push_files(const remote::HostShell& shell, const FileSet& files, const std::string& remote,
                const std::stop_token& stop) {
  if (files.folder) return remote::upload_folder(shell, files.root, files.paths, remote, stop);
  std::string target = remote;
  if (remote.ends_with('/') || shell.run("[ -d \"$1\" ]", {shell.absolute(remote)}, {.deadline = 30}).ok())
    target += (remote.ends_with('/') ? "" : "/") + files.root.filename().string();
  remote::upload(shell, files.root, target);
}

std::size_t pull_files(const remote::HostShell& shell, const std::string& remote, const std::filesystem::path& local,
                       const std::vector<std::string>& exclude, const std::string& newer_than,
                       const std::stop_token& stop) {
  const auto path = shell.absolute(remote);
  const auto kind =
      shell.run("if [ -d \"$1\" ]; then echo folder; elif [ -e \"$1\" ]; then echo file; fi", {path}, {.deadline = 60});
  if (kind.out.find("file") != std::string::npos) {
    auto target = local;
    if (std::filesystem::is_directory(local) || local.filename().empty())
      target /= std::filesystem::path(path).filename();
    remote::download(shell, path, target);
    return 1;
  }
  if (kind.out.find("folder") == std::string::npos)
    fail(Errc::input, "{}: there is no file or folder '{}'", shell.title, remote);
  std::error_code error;
  std::filesystem::create_directories(local, error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", local.string(), error.message());
  std::vector<std::string> there{path, newer_than.empty() ? "" : shell.absolute(newer_than)};
  for (const auto& pattern : exclude) {
    const ExcludePattern parsed(pattern);
    if (!parsed.negated) there.push_back("--exclude=" + (parsed.anchored ? "./" + parsed.glob : parsed.glob));
  }
  LocalTar tar(local);
  const auto doing = fmt::format("copy '{}' to '{}'", remote, local.string());
  bool taken = true;
  remote::RunResult result;
  try {
    // Exit code 1: a file changed while it was read.
    result = shell.run(
        "cd \"$1\" && newer=$2 && shift 2 && { if [ -n \"$newer\" ]; then find . ! -type d -newer \"$newer\" -print0 | "
        "tar \"$@\" --null --no-recursion -T - -cf -; else tar \"$@\" -cf - .; fi; code=$?; [ \"$code\" -ne 1 ] || "
        "exit 0; exit \"$code\"; }",
        there,
        {.take_out = [&](std::string_view bytes) { return taken = tar.take(bytes); },
         .deadline = a_day,
         .max_output = SIZE_MAX,
         .stop = stop});
  } catch (const Error&) {
    if (taken) throw;
  }
  if (const auto wrong = tar.end(); !wrong.empty() || !taken) fail(Errc::io, "cannot {}: {}", doing, wrong);
  if (!result.ok()) fail(Errc::io, "{}: cannot {}: {}", shell.title, doing, why_failed(result.exit, {}, result.err));
  std::size_t count = 0;
  const auto listed = tar.listed();
  std::string_view rest = listed;
  while (!rest.empty()) {
    const auto line_end = std::min(rest.find('\n'), rest.size());
    if (line_end > 0 && rest[line_end - 1] != '/') ++count;
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
  }
  return count;
}

}  // namespace hypertune::inline v0::cluster
