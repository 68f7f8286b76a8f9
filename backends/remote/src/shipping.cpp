// Shipping programs to hosts, addressed by content.
#include "host_failures.hpp"
#include "versions.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/remote/shipping.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::remote {
namespace detail {

// $1: the program, $2: its size, $3: whether to check its libraries, $4 and $5: for prune(). Prints "absent", "noexec",
// or "there" and the output of ldd.
constexpr std::string_view program_script = R"sh(
folder=${1%/*}
if [ ! -f "$1" ] || [ "$(($(wc -c < "$1")))" -ne "$2" ]; then echo absent; exit 0; fi
touch -- "$folder"
if [ ! -x "$1" ]; then echo "noexec"; exit 0; fi
echo there
if [ "$3" = 1 ] && command -v ldd >/dev/null; then ldd "$1" 2>&1; fi
prune "${folder%/*}" "$4" "$5"
exit 0
)sh";

HashedFile hash_file(const std::filesystem::path& path) {
  const auto file = hypertune::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY);
  if (!file) fail_local("read", path, errno);
  hypertune::detail::ContentHash hash;
  hypertune::detail::ReadBuffer buffer;
  HashedFile result;
  for (;;) {
    const ssize_t n = hypertune::detail::read_some(file.get(), buffer.data(), hypertune::detail::ReadBuffer::size);
    if (n < 0) fail_local("read", path, errno);
    if (n == 0) break;
    hash.add(buffer.data(), static_cast<std::size_t>(n));
    result.size += static_cast<std::uint64_t>(n);
  }
  result.hash = hash.hex();
  return result;
}

std::string prune_minutes(const ShipOptions& options) {
  return std::to_string(static_cast<long long>(std::clamp(options.keep_for, 86400.0, 1e9) / 60));
}
std::string prune_keep(const ShipOptions& options) { return std::to_string(std::max(1, options.keep)); }

// Whether a host with architecture `host` can run programs for `program`, both as in `uname -m`.
bool runs_on(std::string_view program, std::string_view host) {
  if (program == host || host.empty()) return true;
  const auto is_x86 = [](std::string_view name) {
    return name == "x86" || (name.size() == 4 && name.front() == 'i' && name.ends_with("86"));
  };
  if (program == "i686") return is_x86(host) || host == "x86_64";
  if (program == "arm") return host.starts_with("arm") || host == "aarch64";
  if (program == "aarch64") return host == "arm64";
  return false;
}

// Returns the architecture of a program; throws if the host cannot run it.
std::string check_architecture(const HostShell& shell, const std::filesystem::path& program) {
  const auto architecture = program_architecture(program);
  if (!architecture.empty() && !runs_on(architecture, shell.facts.architecture))
    throw HostError(HostProblem::architecture,
                    fmt::format("{} is {}, but '{}' is built for {}: build it for that machine, or leave the host "
                                "out",
                                shell.title, shell.facts.architecture, program.string(), architecture));
  return architecture;
}

// Whether a line of the script's output begins with `word`; the output of start-up files may precede it.
bool says(const std::string& out, std::string_view word) {
  return out.starts_with(word) || out.find("\n" + std::string(word)) != std::string::npos;
}

// Checks the output of program_script for a program that should exist.
void check_seen(const HostShell& shell, const std::filesystem::path& program, const std::string& remote,
                const std::string& out) {
  if (says(out, "noexec\n"))
    throw HostError(HostProblem::no_execute,
                    fmt::format("{}: nothing may be executed in '{}' (is it mounted noexec?): choose another "
                                "folder for programs",
                                shell.title, std::filesystem::path(remote).parent_path().string()));
  if (!says(out, "there\n"))
    throw HostError(HostProblem::other, fmt::format("{}: '{}' is not there as it was sent", shell.title, remote));
  if (const auto missing = missing_libraries(out); !missing.empty())
    throw HostError(HostProblem::missing_library,
                    fmt::format("{} lacks what '{}' is linked with: {}; install it there, or link it statically",
                                shell.title, program.string(), fmt::join(missing, ", ")));
}

}  // namespace detail

std::string program_architecture(const std::filesystem::path& program) {
  const auto file = hypertune::detail::open_at(AT_FDCWD, program.c_str(), O_RDONLY);
  std::array<unsigned char, 20> head{};
  if (!file || hypertune::detail::read_some(file.get(), reinterpret_cast<char*>(head.data()), head.size()) !=
                   static_cast<ssize_t>(head.size()))
    return {};
  if (head[0] != 0x7f || head[1] != 'E' || head[2] != 'L' || head[3] != 'F') return {};
  const bool wide = head[4] == 2, little = head[5] == 1;
  const unsigned machine = little ? head[18] | head[19] << 8U : head[19] | head[18] << 8U;
  switch (machine) {
    case 3: return "i686";
    case 62: return "x86_64";
    case 40: return "arm";
    case 183: return "aarch64";
    case 243: return wide ? "riscv64" : "riscv32";
    case 21: return little ? "ppc64le" : "ppc64";
    case 22: return wide ? "s390x" : "s390";
    case 258: return "loongarch64";
    default: return fmt::format("machine {}", machine);
  }
}

std::vector<std::string> missing_libraries(std::string_view output) {
  std::vector<std::string> missing;
  const auto add = [&](std::string name) {
    if (!name.empty() && std::find(missing.begin(), missing.end(), name) == missing.end())
      missing.push_back(std::move(name));
  };
  while (!output.empty()) {
    auto line = hypertune::detail::take_until(output, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (const auto at = line.find(" => not found"); at != std::string_view::npos) {
      add(std::string(line.substr(0, at)));
    } else if (const auto version = line.find(": version `"); version != std::string_view::npos) {
      // "/app: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /app)"
      const auto begin = version + 11, quote = std::min(line.find('\'', begin), line.size());
      const auto slash = line.rfind('/', version);
      const auto library =
          slash == std::string_view::npos ? line.substr(0, version) : line.substr(slash + 1, version - slash - 1);
      add(fmt::format("{} of {}", line.substr(begin, quote - begin), library));
    } else if (constexpr std::string_view musl = "Error loading shared library "; line.starts_with(musl)) {
      line.remove_prefix(musl.size());
      add(std::string(line.substr(0, std::min(line.find(':'), line.size()))));
    }
  }
  return missing;
}

Shipped ship_program(const HostShell& shell, const std::filesystem::path& program, const ShipOptions& options) {
  const auto architecture = detail::check_architecture(shell, program);
  const auto content = detail::hash_file(program);
  Shipped shipped;
  shipped.hash = content.hash;
  auto name = program.filename().string();
  std::error_code ignored;
  if (program == "/proc/self/exe") name = std::filesystem::read_symlink(program, ignored).filename().string();
  if (name.ends_with(" (deleted)")) name.resize(name.size() - 10);
  shipped.path = fmt::format("{}/bin/{}/{}", shell.absolute(options.directory), content.hash, name);
  const auto look = [&] {
    return shell.must(
        fmt::format("look at '{}'", shipped.path),
        std::string(detail::prune_script) + std::string(detail::program_script),
        {shipped.path, std::to_string(content.size), options.check_libraries && !architecture.empty() ? "1" : "0",
         detail::prune_keep(options), detail::prune_minutes(options)});
  };
  auto seen = look();
  if (detail::says(seen.out, "absent\n")) {
    auto transfer = options.transfer;
    transfer.mode = 0700;
    upload(shell, program, shipped.path, transfer);
    shipped.sent = true;
    shipped.bytes = content.size;
    seen = look();
  }
  detail::check_seen(shell, program, shipped.path, seen.out);
  return shipped;
}

void check_program(const HostShell& shell, const std::filesystem::path& local, const std::string& remote) {
  const auto architecture = detail::check_architecture(shell, local);
  if (architecture.empty()) return;
  const auto path = shell.absolute(remote);
  const auto seen = shell.must(fmt::format("look at '{}'", path), R"sh(
if [ ! -f "$1" ]; then echo absent; elif [ ! -x "$1" ]; then echo noexec; else
  echo there
  if command -v ldd >/dev/null; then ldd "$1" 2>&1; fi
fi
exit 0
)sh",
                               {path});
  detail::check_seen(shell, local, path, seen.out);
}

Shipped ship_self(const HostShell& shell, const ShipOptions& options) {
  return ship_program(shell, "/proc/self/exe", options);
}

}  // namespace hypertune::inline v0::remote
