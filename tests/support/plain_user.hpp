// What may be done without the rights of root, which no folder refuses anything.
#pragma once

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>

namespace hypertune::inline v0::test {

/// Whether `run()`, in a process of its own, returns true and throws nothing. If this process is root's, the other one is
/// nobody's, and owns `folder`, below which it may write.
template <class F>
bool as_plain_user(const std::filesystem::path& folder, F run) {
  constexpr uid_t nobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root && ::chown(folder.c_str(), nobody, nobody) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    bool done = !root || (::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0);
    try {
      done = done && run();
    } catch (const std::exception&) { done = false; }
    ::_exit(done ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace hypertune::inline v0::test
