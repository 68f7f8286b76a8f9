// ContentIds: the ids of checkpoints' contents, with which hosts can verify a checkpoint from another host.
#pragma once

#include <hypertune/trial/checkpoint.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

namespace hypertune::inline v0::remote::detail {

/// Computes one id at a time, because that reads all of a checkpoint. Must be used on one thread, except stop().
class ContentIds {
 public:
  using Job = std::function<void()>;
  struct Parts {
    std::function<void(Job)> elsewhere;  ///< runs a job on another thread, which it may block; may throw
    std::function<void(Job)> here;       ///< runs a job on this object's thread; called on the other one
    /// May throw: the checkpoint has been dropped, or the run ends.
    std::function<std::string(const CheckpointInfo&, std::stop_token)> compute;
  };
  static constexpr std::size_t max_known = 4096;

  explicit ContentIds(Parts parts) : parts_(std::move(parts)) {}

  /// Has the id of this checkpoint computed, unless it is known or too many others wait: without an id, hosts trust
  /// each other.
  void want(const CheckpointInfo& info) {
    if (ids_.contains(info.digest) || waiting_.size() >= max_known || !wanted_.insert(info.digest).second) return;
    waiting_.push_back(info);
    next();
  }
  /// The id of the checkpoint with this digest; empty if it is not known.
  std::string of(const std::string& digest) const {
    const auto found = ids_.find(digest);
    return found == ids_.end() ? std::string() : found->second;
  }
  /// Computes no more.
  void stop() { stop_.request_stop(); }
  /// For the next experiment, when no job runs.
  void reset() {
    ids_.clear();
    waiting_.clear();
    wanted_.clear();
    computing_ = false;
    stop_ = {};
  }

 private:
  void next() {
    if (computing_ || waiting_.empty() || stop_.stop_requested()) return;
    const CheckpointInfo info = std::move(waiting_.front());
    waiting_.pop_front();
    try {
      parts_.elsewhere([this, info, stop = stop_.get_token()] {
        std::optional<std::string> id;
        try {
          id = parts_.compute(info, stop);
        } catch (const std::exception&) {}
        parts_.here([this, digest = info.digest, id] { computed(digest, id); });
      });
      computing_ = true;
    } catch (const std::exception&) { wanted_.erase(info.digest); }
  }
  void computed(const std::string& digest, const std::optional<std::string>& id) {
    if (id) {
      if (ids_.size() >= max_known) ids_.erase(ids_.begin());
      ids_[digest] = *id;
    }
    wanted_.erase(digest);
    computing_ = false;
    next();
  }

  const Parts parts_;
  std::map<std::string, std::string> ids_;  // by digest
  std::deque<CheckpointInfo> waiting_;
  std::set<std::string> wanted_;  // digests of waiting_ and of the running computation
  bool computing_ = false;
  std::stop_source stop_;
};

}  // namespace hypertune::inline v0::remote::detail
