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
#include <map>
#include <memory>
#include <system_error>

namespace hypertune::cluster {

ExcludePattern exclude_pattern(std::string_view text) {
  ExcludePattern pattern;
  if (text.starts_with('!')) {
    pattern.negated = true;
    text.remove_prefix(1);
  }
  while (text.size() > 1 && text.ends_with('/')) {
    pattern.folders_only = true;
    text.remove_suffix(1);
  }
  if (text.starts_with("**/") && text.find('/', 3) == std::string_view::npos) text.remove_prefix(3);  // any depth
  if (text.starts_with('/')) {
    pattern.anchored = true;
    text.remove_prefix(1);
  } else if (text.find('/') != std::string_view::npos) {
    pattern.anchored = true;
  }
  pattern.glob = text;
  return pattern;
}

namespace detail {

// '*' and '?' stop at '/', "**" does not. Linear in what can match: bounded by the length of both.
static bool glob_matches(std::string_view glob, std::string_view text, int budget = 200'000) {
  struct Matcher {
    int left;
    bool match(std::string_view glob, std::string_view text) {
      while (!glob.empty()) {
        if (--left <= 0) return false;
        if (glob.front() == '*') {
          const bool across = glob.starts_with("**");
          glob.remove_prefix(across ? 2 : 1);
          if (across && glob.starts_with('/') && match(glob.substr(1), text)) return true;  // "**/x" is also "x"
          for (std::size_t skip = 0;; ++skip) {
            if (match(glob, text.substr(skip))) return true;
            if (skip >= text.size() || left <= 0) return false;
            if (!across && text[skip] == '/') return false;
          }
        }
        if (text.empty()) return false;
        if (glob.front() == '[') {
          const auto close = glob.find(']', 2);
          if (close != std::string_view::npos) {
            auto set = glob.substr(1, close - 1);
            const bool inverted = set.front() == '!' || set.front() == '^';
            if (inverted) set.remove_prefix(1);
            bool found = false;
            for (std::size_t i = 0; i < set.size(); ++i) {
              if (i + 2 < set.size() && set[i + 1] == '-') {
                found = found || (set[i] <= text.front() && text.front() <= set[i + 2]);
                i += 2;
              } else {
                found = found || set[i] == text.front();
              }
            }
            if (found == inverted || text.front() == '/') return false;
            glob.remove_prefix(close + 1);
            text.remove_prefix(1);
            continue;
          }
        }
        if (glob.front() == '\\' && glob.size() > 1)
          glob.remove_prefix(1);
        else if (glob.front() == '?' && text.front() != '/') {
          glob.remove_prefix(1);
          text.remove_prefix(1);
          continue;
        }
        if (glob.front() != text.front()) return false;
        glob.remove_prefix(1);
        text.remove_prefix(1);
      }
      return text.empty();
    }
  };
  return Matcher{budget}.match(glob, text);
}

}  // namespace detail

bool excluded(const std::vector<ExcludePattern>& patterns, std::string_view path, bool folder) {
  bool out = false;
  for (const auto& pattern : patterns) {
    if (pattern.folders_only && !folder) continue;
    if (pattern.negated != out) continue;  // would change nothing
    const auto slash = path.rfind('/');
    const auto name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    if (detail::glob_matches(pattern.glob, pattern.anchored ? path : name)) out = !pattern.negated;
  }
  return out;
}

namespace detail {

static std::vector<ExcludePattern> patterns_of(const std::string& text) {
  std::vector<ExcludePattern> patterns;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') patterns.push_back(exclude_pattern(line));
  }
  return patterns;
}

class Scanner {
 public:
  Scanner(FileSet& files, const SyncRules& rules) : files_(files), rules_(rules) {
    for (const auto& text : rules.exclude) global_.push_back(exclude_pattern(text));
  }
  void walk(const std::string& below, int depth) {
    if (depth > 200) fail(Errc::input, "'{}' is nested more than 200 folders deep", files_.root.string());
    const auto folder = below.empty() ? files_.root : files_.root / below;
    bool filtered = false;
    for (const auto& name : rules_.filter)
      if (auto text = read_file(folder / name); text && !std::filesystem::is_directory(folder / name)) {
        if (!filtered) local_.emplace_back(below, std::vector<ExcludePattern>());
        filtered = true;
        auto more = patterns_of(*text);
        local_.back().second.insert(local_.back().second.end(), more.begin(), more.end());
      }
    std::error_code error;
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename().string());
    if (error) fail(Errc::io, "cannot read the folder '{}': {}", folder.string(), error.message());
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
      const std::string path = below.empty() ? name : below + "/" + name;
      struct stat info{};
      if (::lstat((files_.root / path).c_str(), &info) != 0) continue;  // gone meanwhile
      const bool is_folder = S_ISDIR(info.st_mode);
      if (!is_folder && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) continue;  // sockets, devices
      if (left_out(path, is_folder)) continue;
      files_.paths.push_back(path);
      hash_.add(path);
      if (!is_folder) {
        files_.bytes += static_cast<std::uint64_t>(info.st_size);
        hash_.add(fmt::format("{} {} {} {:o}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_mode));
      } else {
        walk(path, depth + 1);
      }
    }
    if (filtered) local_.pop_back();
  }
  std::string fingerprint() const { return hash_.text(); }
  void add(std::string_view text) { hash_.add(text); }

 private:
  bool left_out(const std::string& path, bool folder) const {
    if (excluded(global_, path, folder)) return true;
    return std::any_of(local_.begin(), local_.end(), [&](const auto& entry) {
      const std::string_view relative = std::string_view(path).substr(entry.first.empty() ? 0 : entry.first.size() + 1);
      return excluded(entry.second, relative, folder);
    });
  }

  FileSet& files_;
  const SyncRules& rules_;
  std::vector<ExcludePattern> global_;
  std::vector<std::pair<std::string, std::vector<ExcludePattern>>> local_;  // by the folder where they stand
  Fingerprint hash_;
};

[[noreturn]] static void fail_transfer(const ssh::SshConnection& connection, const std::string& doing,
                                       const ProgramResult& result) {
  if (const auto lost = connection.lost()) throw ssh::SshError(*lost);
  fail(Errc::io, "host '{}': cannot {}: {}", connection.host(), doing, result.why());
}

}  // namespace detail

FileSet scan_files(const std::filesystem::path& local, const SyncRules& rules) {
  FileSet files;
  files.root = local;
  struct stat info{};
  if (::stat(local.c_str(), &info) != 0)
    fail(Errc::input, "there is no file or folder '{}': {}", local.string(), std::strerror(errno));
  files.folder = S_ISDIR(info.st_mode);
  detail::Scanner scanner(files, rules);
  if (files.folder) {
    scanner.walk("", 0);
  } else {
    files.bytes = static_cast<std::uint64_t>(info.st_size);
    scanner.add(fmt::format("{} {} {} {:o}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_mode));
  }
  files.fingerprint = scanner.fingerprint();
  return files;
}

void push_files(const ssh::SshConnection& connection, const FileSet& files, const std::string& remote,
                const std::function<bool()>& cancelled) {
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
  call.cancelled = cancelled;
  const auto result = run_program(call);
  const auto doing = fmt::format("copy '{}' to '{}'", files.root.string(), remote);
  if (!result.ok()) detail::fail_transfer(connection, doing, result);
  const auto said = detail::read_file(status.path()).value_or("");
  if (!said.ends_with("exit 0\n") && !said.ends_with("exit 1\n"))  // 1: a file changed while it was read
    fail(Errc::io, "cannot {}: {}", doing, said.substr(0, std::min<std::size_t>(said.find('\n'), 300)));
}

std::size_t pull_files(const ssh::SshConnection& connection, const std::string& remote,
                       const std::filesystem::path& local, const std::vector<std::string>& exclude,
                       const std::string& newer_than, const std::function<bool()>& cancelled) {
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
    const auto parsed = exclude_pattern(pattern);
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
  call.cancelled = cancelled;
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

}  // namespace hypertune::cluster
