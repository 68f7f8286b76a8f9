// JobGuard: cancels jobs of Slurm if this program dies, while its machine lives.
#pragma once

#include <hypertune/process/subprocess.hpp>

#include <cstdint>
#include <mutex>
#include <string>

namespace hypertune::inline v0::slurm {

/// A shell that reads which jobs there are, and cancels those that are left when its input ends before it was told so.
/// It cannot be relied on: it may be killed together with this program. Thread-safe.
class JobGuard {
 public:
  JobGuard() = default;
  JobGuard(const JobGuard&) = delete;
  JobGuard& operator=(const JobGuard&) = delete;
  /// The shell ends without cancelling anything.
  ~JobGuard();

  void add(std::uint64_t id) { tell("+ " + std::to_string(id)); }
  void remove(std::uint64_t id) { tell("- " + std::to_string(id)); }

 private:
  void tell(const std::string& line);

  std::mutex mutex_;
  process::Subprocess shell_;
};

}  // namespace hypertune::inline v0::slurm
