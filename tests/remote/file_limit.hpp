// A limit of open files that is nearly reached.
#pragma once

#include "support/sanitizers.hpp"

#include <fcntl.h>
#include <sys/resource.h>

namespace hypertune::inline v0::test {

/// UndefinedBehaviorSanitizer, which comes with AddressSanitizer here, needs a pipe for its checks.
inline constexpr bool can_do_without_files = !hypertune_test::address_sanitizer;

/// While it lives, this process may open only so many more files. The limit of before comes back with its end.
class FileLimit {
 public:
  explicit FileLimit(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    for (limit.rlim_cur = 0; limit.rlim_cur < before_.rlim_cur; ++limit.rlim_cur)
      if (::fcntl(static_cast<int>(limit.rlim_cur), F_GETFD) < 0 && --more < 0) break;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace hypertune::inline v0::test
