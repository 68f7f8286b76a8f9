// Programs of providers.
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace hypertune::inline v0::cluster {
namespace detail {

using SteadyClock = std::chrono::steady_clock;

static double seconds_since(SteadyClock::time_point then) {
  return std::chrono::duration<double>(SteadyClock::now() - then).count();
}

static struct flock lock_of(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// Runs in the program's process, so that the process owns the lock. The lock is kept over exec and released when the
// process ends; child processes do not inherit it. Until the lock is taken, the program dies with its parent.
static int take_lock(const char* path) {
  const int fd = ::open(path, O_RDWR | O_CREAT, 0600);  // stays open over exec
  const int high = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD, 200);
  if (high >= 0) ::close(fd);
  struct flock shared = lock_of(F_RDLCK);
  if (high < 0 || ::fcntl(high, F_SETLK, &shared) != 0) return errno;
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  return 0;
}

}  // namespace detail

process::SpawnOptions holding(const std::filesystem::path& lock) {
  return {.death_signal = SIGKILL, .prepare = [path = lock.string()] { return detail::take_lock(path.c_str()); }};
}

static std::string with_last_lines(const std::string& text, std::string_view out, std::string_view err) {
  std::string_view said = err.find_first_not_of(" \r\n\t") != std::string::npos ? err : out;
  while (!said.empty() && std::strchr(" \r\n\t", said.back()) != nullptr) said.remove_suffix(1);
  std::string last;
  for (int line = 0; line < 3 && !said.empty(); ++line) {
    const auto at = said.rfind('\n');
    const auto text_line = said.substr(at == std::string_view::npos ? 0 : at + 1);
    if (!text_line.empty()) last = std::string(text_line.substr(0, 300)) + (last.empty() ? "" : " | ") + last;
    said = at == std::string_view::npos ? std::string_view() : said.substr(0, at);
    while (!said.empty() && std::strchr("\r\n", said.back()) != nullptr) said.remove_suffix(1);
  }
  std::erase_if(last, [](unsigned char c) { return c < 0x20; });
  return last.empty() ? text : text + ": " + last;
}

std::string why_failed(int code, std::string_view out, std::string_view err) {
  return with_last_lines(
      code > 128 ? fmt::format("was killed by signal {}", code - 128) : fmt::format("ended with exit code {}", code),
      out, err);
}
std::string why_failed(const process::Collected& ended) {
  if (ended.late) return with_last_lines("took too long and was ended", ended.out, ended.err);
  if (ended.stopped) return with_last_lines("was interrupted", ended.out, ended.err);
  return why_failed(ended.code(), ended.out, ended.err);
}

int lock_holder(const std::filesystem::path& lock) {
  const auto fd = hypertune::detail::open_at(AT_FDCWD, lock.c_str(), O_RDWR);
  if (!fd) return 0;
  struct flock wanted = detail::lock_of(F_WRLCK);
  if (::fcntl(fd.get(), F_GETLK, &wanted) != 0 || wanted.l_type == F_UNLCK) return 0;
  return std::max<int>(wanted.l_pid, 1);
}

void wait_for_calls(const std::filesystem::path& lock, double seconds) {
  const auto begin = detail::SteadyClock::now();
  for (;;) {
    const int pid = lock_holder(lock);
    if (pid == 0) return;
    if (detail::seconds_since(begin) > seconds)
      fail(Errc::busy,
           "a provider's program that was begun earlier (process {}) still runs: wait for it, or end it and repeat",
           pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // waiting for a record lock has no timeout
  }
}

}  // namespace hypertune::inline v0::cluster
