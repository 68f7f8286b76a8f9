// The workers of a trial as one of them sees them: its place among them, and how they find each other.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// A collective, or the forming of a group, did not come to its end. `ranks`: which of its generation are lost or late,
/// as far as known.
class GroupError : public Error {
 public:
  enum class Kind : std::uint8_t {
    changed,  ///< a new generation is to be formed, or the attempt is to end: nobody's fault
    lost,     ///< ranks are gone
    late,     ///< ranks have not taken part within the limit
    failed,   ///< what carries the collectives has failed
  };
  GroupError(Kind kind, const std::string& message, std::vector<int> ranks = {})
      : Error(Errc::group, message), kind_(kind), ranks_(std::move(ranks)) {}
  Kind kind() const noexcept { return kind_; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  Kind kind_;
  std::vector<int> ranks_;
};

/// The place of one worker among those that train with it, in one generation.
struct GroupPlace {
  std::uint32_t generation = 0;
  int rank = 0;                           ///< from 0
  std::vector<std::string> hosts = {{}};  ///< where each rank is, by rank
  std::string network = {};               ///< by which hosts reach each other, as "10.1.0.0/16"; empty: none is named

  int size() const { return static_cast<int>(hosts.size()); }
  const std::string& host() const { return hosts.at(static_cast<std::size_t>(rank)); }
  /// Among those on the same host.
  int local_rank() const { return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host())); }
  int local_size() const { return static_cast<int>(std::count(hosts.begin(), hosts.end(), host())); }
  bool on_one_host() const { return local_size() == size(); }
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

/// Where the ranks of one generation leave what others need to find them. Thread-safe.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits for somebody to set it; nullopt: nobody did within so many seconds. Throws a GroupError of kind `changed` or
  /// `lost` as soon as the generation is over.
  virtual std::optional<std::string> wait(const std::string& key, Seconds seconds) = 0;
};

}  // namespace hypertune::inline v0
