// Copying files to and from hosts.
#include "host_failures.hpp"
#include "tar_stream.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/remote/host_files.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {

// $1: the file, $2: its size, $3: its mode, $4: makes the temporary name unique. The size is checked, because cat
// cannot tell a broken connection from the end of the input.
constexpr std::string_view receive_script = R"sh(
target=$1
dir=${target%/*}
[ -n "$dir" ] || dir=/
mkdir -p -- "$dir" || exit 1
if [ -d "$target" ]; then echo "'$target' is a folder" >&2; exit 1; fi
part="$dir/.hypertune-part-$4"
trap 'rm -f -- "$part"' EXIT
trap 'exit 1' HUP INT TERM
cat > "$part" || exit 1
size=$(wc -c < "$part") || exit 1
if [ "$size" -ne "$2" ]; then echo "$((size)) of $2 bytes arrived" >&2; exit 1; fi
chmod "$3" "$part" || exit 1
sync -- "$part" 2>/dev/null || :
mv -f -- "$part" "$target" || exit 1
trap - EXIT
)sh";

constexpr std::string_view send_script = R"sh(
if [ -d "$1" ]; then echo "'$1' is a folder" >&2; exit 1; fi
size=$(wc -c < "$1") || exit 1
mode=$(stat -c %a -- "$1" 2>/dev/null || echo 644)
printf '%s %s\n' "$((size))" "$mode"
exec cat -- "$1"
)sh";

// $1: the folder, $2: empty, or the number of members of the archive plus one. An archive that is cut between two
// members looks complete, so the unpacked ones are counted, and one is added if tar succeeds.
constexpr std::string_view unpack_script = R"sh(
umask 022
mkdir -p "$1" || exit 1
[ -n "$2" ] || exec tar -C "$1" -xof -
arrived=$({ tar -C "$1" -xovf - && echo; } | wc -l)
[ "$arrived" -eq "$2" ] || { echo "not all of it arrived"; exit 1; }
)sh";

constexpr int max_attempts = 5;  // to send an input that may be cut

// Throws if the script fails. `begin` returns a reader of all bytes from the start; called for each attempt.
static void send(const HostShell& shell, const std::string& path, std::uint64_t size, unsigned mode,
                 const std::function<std::function<std::string_view()>()>& begin, const TransferOptions& options) {
  for (int attempt = 1;; ++attempt) {
    const auto result = shell.run(receive_script, {path, std::to_string(size), fmt::format("{:o}", mode), nonce()},
                                  {.input = begin(), .deadline = options.deadline, .stall = options.stall});
    if (result.ok()) return;
    const bool cut = shell.input_may_be_cut && result.err.find(" bytes arrived") != std::string::npos;
    if (!cut || attempt == max_attempts) throw host_error(shell.title, fmt::format("write '{}'", path), result);
  }
}

}  // namespace detail

void upload_text(const HostShell& shell, std::string_view bytes, const std::string& remote,
                 const TransferOptions& options) {
  detail::send(
      shell, shell.absolute(remote), bytes.size(), options.mode < 0 ? 0644 : static_cast<unsigned>(options.mode),
      [&] { return [rest = bytes]() mutable { return std::exchange(rest, {}); }; }, options);
}

void upload(const HostShell& shell, const std::filesystem::path& local, const std::string& remote,
            const TransferOptions& options) {
  const auto path = shell.absolute(remote);
  const auto file = hypertune::detail::open_at(AT_FDCWD, local.c_str(), O_RDONLY);
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) detail::fail_local("read", local, errno);
  if (!S_ISREG(info.st_mode))
    throw HostError(HostProblem::local_file, fmt::format("cannot send '{}': it is no ordinary file", local.string()));
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::uint64_t sent = 0;
  hypertune::detail::ReadBuffer buffer;
  const auto next = [&]() -> std::string_view {
    const auto want = std::min<std::uint64_t>(hypertune::detail::ReadBuffer::size, size - sent);
    if (want == 0) return {};
    const ssize_t n = hypertune::detail::read_some(file.get(), buffer.data(), want);
    if (n < 0) detail::fail_local("read", local, errno);
    if (n == 0)
      throw HostError(HostProblem::local_file,
                      fmt::format("cannot send '{}': it became shorter meanwhile", local.string()));
    sent += static_cast<std::uint64_t>(n);
    return {buffer.data(), static_cast<std::size_t>(n)};
  };
  const auto mode =
      static_cast<unsigned>(options.mode < 0 ? info.st_mode & 0777U : static_cast<unsigned>(options.mode));
  const auto begin = [&] {
    sent = 0;
    ::lseek(file.get(), 0, SEEK_SET);
    return next;
  };
  detail::send(shell, path, size, mode, begin, options);
}

void upload_folder(const HostShell& shell, const std::filesystem::path& local, const std::vector<std::string>& paths,
                   const std::string& remote, const std::stop_token& stop) {
  constexpr double a_day = 24 * 3600;
  const auto count = shell.input_may_be_cut ? std::to_string(paths.size() + 1) : "";
  for (int attempt = 1;; ++attempt) {
    std::vector<detail::TarMember> members;
    for (const auto& path : paths) {
      struct stat info{};
      if (::lstat((local / path).c_str(), &info) != 0) detail::fail_local("read", local / path, errno);
      members.push_back(detail::member_of(local, path, info));
    }
    detail::TarStream archive(std::move(members));
    const auto result = shell.run(detail::unpack_script, {shell.absolute(remote), count},
                                  {.input = [&] { return archive.next(); }, .deadline = a_day, .stop = stop});
    if (result.ok()) return;
    if (count.empty() || attempt == detail::max_attempts)
      throw detail::host_error(shell.title, fmt::format("copy '{}' to '{}'", local.string(), remote), result);
  }
}

void download(const HostShell& shell, const std::string& remote, const std::filesystem::path& local,
              const TransferOptions& options) {
  const auto path = shell.absolute(remote);
  const auto folder = local.has_parent_path() ? local.parent_path() : std::filesystem::path(".");
  std::error_code made;
  std::filesystem::create_directories(folder, made);
  const auto part = folder / (".hypertune-part-" + detail::nonce());
  auto file = hypertune::detail::open_at(AT_FDCWD, part.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file) detail::fail_local("write", part, errno);
  struct Remove {
    ~Remove() { ::unlink(path.c_str()); }
    std::filesystem::path path;
  } remove{part};
  std::string head;  // the first line: size and mode
  bool begun = false;
  std::uint64_t size = 0, arrived = 0;
  unsigned mode = 0644;
  int error = 0;
  const auto write = [&](std::string_view bytes) {
    arrived += bytes.size();
    if (error == 0) error = hypertune::detail::write_all(file.get(), bytes);
    return error == 0;
  };
  ShellOptions run{.deadline = options.deadline, .stall = options.stall, .max_output = SIZE_MAX};
  run.take_out = [&](std::string_view bytes) {
    if (begun) return write(bytes);
    head += bytes;
    const auto end = head.find('\n');
    if (end == std::string::npos) return head.size() < 4096;
    const char* stop = head.data() + end;
    const auto number = std::from_chars(head.data(), stop, size);
    if (number.ec != std::errc() || number.ptr == stop) return false;
    std::from_chars(number.ptr + 1, stop, mode, 8);
    begun = true;
    return write(std::string_view(head).substr(end + 1));
  };
  RunResult result;
  try {
    result = shell.run(detail::send_script, {path}, run);
  } catch (const std::exception&) {
    if (error == 0) throw;
  }
  if (error != 0) detail::fail_local("write", local, error);
  if (!result.ok()) throw detail::host_error(shell.title, fmt::format("read '{}'", path), result);
  if (!begun || arrived != size)
    throw HostError(HostProblem::other, fmt::format("{}: '{}' changed while it was read ({} of {} bytes)", shell.title,
                                                    path, arrived, size));
  if (::fchmod(file.get(), options.mode < 0 ? mode & 0777U : static_cast<unsigned>(options.mode)) != 0 ||
      ::fsync(file.get()) != 0 || ::rename(part.c_str(), local.c_str()) != 0)
    detail::fail_local("write", local, errno);
}

}  // namespace hypertune::inline v0::remote
