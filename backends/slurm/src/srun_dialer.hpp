// SrunDialer: opens a stream to a worker; the connection is the standard streams of an srun.
#pragma once

#include "srun.hpp"

#include <hypertune/remote/dialer.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::slurm {

/// Jobs whose srun had to be killed, so that they may still exist in Slurm. Thread-safe.
class LeftJobs {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return {names_.begin(), names_.end()};
  }
  void remove(const std::vector<std::string>& names) {
    const std::lock_guard lock(mutex_);
    for (const auto& name : names) names_.erase(name);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> names_;
};

class SrunDialer {
 public:
  using Environment = std::map<std::string, std::optional<std::string>>;

  SrunDialer(std::vector<std::string> arguments, Environment environment, std::string job,
             std::shared_ptr<LeftJobs> left)
      : arguments_(std::move(arguments)),
        environment_(std::move(environment)),
        job_(std::move(job)),
        left_(std::move(left)) {}

  /// Returns at once: the job may wait for an unknown time, but its stream exists already.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;
  std::string explain(const std::string& said) const;

 private:
  std::vector<std::string> arguments_;
  Environment environment_;
  std::string job_;
  std::shared_ptr<LeftJobs> left_;
};

}  // namespace hypertune::inline v0::slurm
