// Mounting local folders on hosts, as versions named by content.
#include "host_failures.hpp"
#include "tar_stream.hpp"
#include "versions.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/files/folder_walk.hpp>
#include <hypertune/remote/shipping.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {

/// A file, link or empty folder below the mounted one. A mounted file is the only entry, with an empty name.
struct MountEntry {
  TarMember member;
  std::string hash;  // of the content, or of the target of a link; zeros for a folder
};

std::vector<MountEntry> scan_mount(const FileMount& mount) {
  std::vector<MountEntry> entries;
  const auto add = [&](const std::string& name, const struct stat& info) {
    auto& [member, hash] = entries.emplace_back(member_of(mount.local, name, info), std::string(32, '0'));
    if (member.type == '0') {
      auto content = hash_file(member.source);
      hash = std::move(content.hash);
      member.size = content.size;
      member.mode &= 0777U;
    } else {
      if (member.type == '2') hash = hypertune::detail::ContentHash::of(member.text);
      member.mode = member.type == '2' ? 0777 : 0755;
    }
  };
  struct stat info{};
  if (::stat(mount.local.c_str(), &info) != 0) fail_local("read", mount.local, errno);  // it may be a link
  if (S_ISREG(info.st_mode)) add("", info);
  if (!S_ISDIR(info.st_mode)) return entries;
  const auto found = [&] {
    try {
      return walk_folder(mount.local, {.exclude = mount.exclude});
    } catch (const Error& error) { throw HostError(HostProblem::local_file, error.what()); }
  }();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& name = found[i].path;
    const bool filled = i + 1 < found.size() && found[i + 1].path.starts_with(name + "/");
    if (!found[i].is_folder() || !filled) add(name, found[i].info);  // only empty folders need an entry
  }
  return entries;
}

// A version's folder contains `tree` (the mounted files), `files` (the names of the files in it, each followed by a
// NUL), `manifest` (the names with type, mode and hash), `source` (where they came from) and `stamp` (a checksum of
// sizes and times after the transfer, to detect files that were changed later).
constexpr std::string_view mount_functions = R"sh(
stamp() (
  cd -- "$1" || exit 1
  if [ -d tree ]; then cd tree && xargs -0 stat -c '%s %Y %n' -- < ../files; else stat -c '%s %Y' tree; fi 2>&1 | { cksum 2>/dev/null || md5sum; }
)
sound() { [ -e "$1/tree" ] && [ -f "$1/stamp" ] && [ "$(stamp "$1")" = "$(cat "$1/stamp")" ]; }
)sh";

// $1: the folder of all versions, $2: the wanted hash, $3: the source. Prints whether this version exists, or else the
// hash and the manifest of the latest version of the source.
constexpr std::string_view mount_look_script = R"sh(
if sound "$1/$2"; then touch -- "$1/$2"; printf '\nhypertune-mount there\n'; exit 0; fi
cd -- "$1" 2>/dev/null || { printf '\nhypertune-mount none\n'; exit 0; }
ls -1t | while IFS= read -r version; do
  [ -f "$version/source" ] && [ "$(cat "$version/source")" = "$3" ] && sound "$version" || continue
  printf '\nhypertune-mount %s\n' "$version"
  cat -- "$version/manifest"
  exit 0
done
)sh";

// $1: the folder of all versions, $2: the new hash, $3: the version to start from (or ""), $4: the total number of
// files, $5: makes names unique. The input is a tar archive: `files`, `manifest`, `source`, `gone` (names not to take
// from the old version), `over` (new files), `complete`. Exits with 42 if the old version cannot be used.
constexpr std::string_view mount_build_script = R"sh(
umask 022
new=$1/.new-$5
mkdir -p -- "$new" || exit 1
delete() { find "$1" -type d ! -perm -0700 -exec chmod u+rwx {} \; 2>/dev/null; rm -rf -- "$1"; }
trap 'delete "$new"' EXIT
trap 'exit 1' HUP INT TERM
(cd -- "$new" && tar xpf -) || exit 1
[ -f "$new/complete" ] || { echo "not all of it arrived" >&2; exit 1; }
if [ -n "$3" ]; then
  mkdir "$new/tree" || exit 1
  (cd -- "$1/$3/tree" && xargs -0 sh -c 'cp -al --parents -- "$@" "$0"' "$new/tree" < ../files) >/dev/null 2>&1 || exit 42
  (cd -- "$new/tree" && xargs -0 rm -rf -- < ../gone && find . -mindepth 1 -depth -type d -empty -delete) || exit 1
  if [ -d "$new/over" ]; then cp -al -- "$new/over/." "$new/tree/" 2>/dev/null || exit 42; rm -rf -- "$new/over"; fi
else
  if [ -e "$new/over" ]; then mv -- "$new/over" "$new/tree" || exit 1; else mkdir "$new/tree" || exit 1; fi
fi
rm -f -- "$new/complete" "$new/gone"
count=$(find "$new/tree" -type f -print0 | tr -cd '\000' | wc -c)
if [ "$((count))" -ne "$4" ]; then [ -n "$3" ] && exit 42; echo "$((count)) of $4 files arrived" >&2; exit 1; fi
stamp "$new" > "$new/stamp" || exit 1
if [ -e "$1/$2" ]; then
  sound "$1/$2" && exit 0
  mv -- "$1/$2" "$1/.gone-$2-$5" && delete "$1/.gone-$2-$5"
fi
mv -- "$new" "$1/$2" 2>/dev/null || { sound "$1/$2" || { echo "cannot make '$1/$2'" >&2; exit 1; }; }
)sh";

// $1: the folder of all versions, $2: the hash, $3: the path of the link, $4: makes names unique, $5 and $6: for
// prune().
constexpr std::string_view mount_link_script = R"sh(
dir=${3%/*}
mkdir -p -- "${dir:-/}" || exit 1
if [ -L "$3" ]; then
  case $(readlink "$3") in
    */mounts/*/tree) ;;
    *) echo "'$3' is a symbolic link that is no file mount: move it away, or mount to another place" >&2; exit 1;;
  esac
elif [ -d "$3" ]; then
  rmdir -- "$3" 2>/dev/null || { echo "'$3' is there already and is no file mount: move it away, or mount to another place" >&2; exit 1; }
elif [ -e "$3" ]; then
  echo "'$3' is there already and is no file mount: move it away, or mount to another place" >&2; exit 1
fi
if [ "$(readlink "$3" 2>/dev/null)" != "$1/$2/tree" ]; then
  new=$dir/.hypertune-link-$4
  ln -s -- "$1/$2/tree" "$new" || exit 1
  mv -fT -- "$new" "$3" 2>/dev/null || { rm -f -- "$3"; mv -- "$new" "$3"; } || { rm -f -- "$new"; exit 1; }
fi
prune "$1" "$5" "$6"
exit 0
)sh";

// One entry, ended by NUL: type, mode, hash, name.
std::string manifest_line(const MountEntry& entry) {
  const auto& member = entry.member;
  return fmt::format("{} {:04o} {} {}", member.type, member.mode, entry.hash, member.name) + '\0';
}

// Parses an earlier manifest: the part before the name, by name.
std::map<std::string, std::string, std::less<>> read_manifest(std::string_view text) {
  std::map<std::string, std::string, std::less<>> entries;
  while (!text.empty()) {
    const auto end = text.find('\0');
    if (end == std::string_view::npos) break;
    const auto line = text.substr(0, end);
    text.remove_prefix(end + 1);
    constexpr std::size_t name_at = 2 + 5 + 33;
    if (line.size() >= name_at) entries.emplace(line.substr(name_at), line.substr(0, name_at));
  }
  return entries;
}

std::string source_name(const FileMount& mount) {
  std::array<char, 256> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  std::error_code ignored;
  const auto path = std::filesystem::weakly_canonical(mount.local, ignored);
  std::string text = fmt::format("{}:{}", machine.data(), path.string());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace detail

Mounted mount_files(const HostShell& shell, const FileMount& mount, const ShipOptions& options) {
  const auto entries = detail::scan_mount(mount);
  std::string manifest, files;
  Mounted mounted;
  mounted.remote = shell.absolute(mount.remote);
  while (mounted.remote.size() > 1 && mounted.remote.back() == '/') mounted.remote.pop_back();
  if (mounted.remote == "/" || mounted.remote == shell.absolute("~"))
    fail(Errc::usage, "{}: '{}' cannot be a file mount: mount to a folder of its own below it", shell.title,
         mount.remote);
  for (const auto& entry : entries) {
    manifest += detail::manifest_line(entry);
    if (entry.member.type != '0') continue;
    ++mounted.files;
    files += entry.member.name + '\0';
  }
  const bool single = entries.size() == 1 && entries.front().member.name.empty();
  if (single) files.clear();
  mounted.hash = hypertune::detail::ContentHash::of(manifest);
  const auto versions = shell.absolute(options.directory) + "/mounts";
  const auto source = detail::source_name(mount);
  const auto functions = std::string(detail::mount_functions);

  const auto seen = shell.must(fmt::format("look at '{}'", versions),
                               functions + std::string(detail::mount_look_script), {versions, mounted.hash, source});
  constexpr std::string_view mark = "\nhypertune-mount ";
  std::string base;
  std::map<std::string, std::string, std::less<>> old;
  if (const auto at = seen.out.find(mark); at != std::string::npos) {
    const auto begin = at + mark.size(), end = std::min(seen.out.find('\n', begin), seen.out.size());
    base = seen.out.substr(begin, end - begin);
    if (base != "there")
      old = detail::read_manifest(std::string_view(seen.out).substr(std::min(end + 1, seen.out.size())));
  }
  const bool there = base == "there";
  if (!hypertune::detail::ContentHash::well_formed(base) || single || old.contains("")) base.clear();

  // Sends what the version `from` lacks; false if the host could not build on it.
  const auto build = [&](const std::string& from) {
    std::vector<detail::TarMember> members;
    std::string gone;
    mounted.sent = 0;
    const auto add_text = [&](const char* name, const std::string& text) {
      members.push_back({.type = '0', .name = name, .text = text});
    };
    add_text("files", files);
    add_text("manifest", manifest);
    add_text("source", source + "\n");
    std::map<std::string, bool, std::less<>> kept;
    for (const auto& entry : entries) {
      const auto line = detail::manifest_line(entry);
      auto member = entry.member;
      const auto before = from.empty() ? old.end() : old.find(member.name);
      const bool same = before != old.end() && member.type == '0' &&
                        std::string_view(line).substr(0, before->second.size()) == before->second;
      if (same) {
        kept.emplace(member.name, true);
        continue;
      }
      member.name = member.name.empty() ? "over" : "over/" + member.name;
      if (member.type == '0') ++mounted.sent;
      members.push_back(std::move(member));
    }
    if (!from.empty())
      for (const auto& [name, head] : old)
        if (head.starts_with('0') && !kept.contains(name)) gone += name + '\0';
    add_text("gone", gone);
    add_text("complete", "");
    detail::TarStream archive(std::move(members));
    std::uint64_t bytes = 0;
    const auto result = shell.run(functions + std::string(detail::mount_build_script),
                                  {versions, mounted.hash, from, std::to_string(mounted.files), detail::nonce()},
                                  {.input =
                                       [&] {
                                         const auto piece = archive.next();
                                         bytes += piece.size();
                                         return piece;
                                       },
                                   .deadline = options.transfer.deadline,
                                   .stall = options.transfer.stall});
    if (!result.ok()) {
      const auto error = detail::host_error(shell.title, fmt::format("bring '{}' there", mount.local.string()), result);
      if (!from.empty() && error.problem() == HostProblem::other) return false;
      throw error;
    }
    mounted.bytes += bytes;
    return true;
  };
  if (!there && (base.empty() || !build(base))) build("");
  shell.must(fmt::format("mount '{}' as '{}'", mount.local.string(), mounted.remote),
             std::string(detail::prune_script) + std::string(detail::mount_link_script),
             {versions, mounted.hash, mounted.remote, detail::nonce(), detail::prune_keep(options),
              detail::prune_minutes(options)});
  return mounted;
}

}  // namespace hypertune::inline v0::remote
