// OwnerJob: an object whose deletion removes an experiment's pods when their driver is gone.
#pragma once

#include "pod_manifest.hpp"

#include <hypertune/k8s/client.hpp>

#include <boost/json/fwd.hpp>

#include <optional>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// A driver outside of the cluster has no object there that could own its pods, and pods without an owner are left
/// behind when it is killed. So a Job without pods of its own (`parallelism: 0`) owns them. It has a deadline
/// (`activeDeadlineSeconds`) that the driver keeps moving into the future. When the driver is gone, Kubernetes ends the
/// Job, deletes it (`ttlSecondsAfterFinished`), and then what it owns. A user who suspends the Job suspends the
/// workers. Not thread-safe.
class OwnerJob {
 public:
  /// Seconds that it lasts without its driver.
  static constexpr Seconds lasts = 300;
  /// Seconds between two looks at it.
  static constexpr Seconds looks_every = 5;

  /// `experiment`: the value of the label.
  OwnerJob(Client client, std::string name, std::string experiment, std::string image);

  /// Makes it, or takes over an existing one. Throws ApiError if that is not allowed.
  void make(const std::stop_token& stop = {});
  const std::optional<Owner>& owner() const { return owner_; }  ///< empty: it is not made yet
  /// Reads it and moves its deadline, if that is due. False: it is gone, or being deleted.
  bool keep(Seconds now, const std::stop_token& stop = {});
  /// Whether the Job is suspended.
  bool suspended() const { return suspended_; }
  const std::string& name() const { return name_; }
  /// Deletes it, and in the background what it owns. Takes a limited time.
  void remove();

 private:
  std::string path() const;
  bool take(const boost::json::value& job, Seconds now);

  Client client_;
  std::string name_, experiment_, image_;
  std::optional<Owner> owner_ = {};
  Seconds made_at_ = 0;  // on this process's clock
  Seconds base_ = 0;     // its deadline at that time
  Seconds due_ = 0;
  Seconds look_at_ = 0;
  bool suspended_ = false;
  bool follows_suspension_ = true;  // whether a suspension of it counts
};

}  // namespace hypertune::inline v0::k8s
