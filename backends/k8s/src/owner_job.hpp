// OwnerJob: an object that takes an experiment's pods along when nobody keeps it alive any more.
#pragma once

#include "pod_manifest.hpp"

#include <hypertune/k8s/client.hpp>

#include <boost/json/fwd.hpp>

#include <optional>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// Outside of the cluster nothing of ours is there to own pods, and what owns nothing is left behind when a program is
/// killed. So they are owned by a Job without pods of its own (`parallelism: 0`) that has a deadline
/// (`activeDeadlineSeconds`), which is moved on as long as the program lives. When it does not, Kubernetes ends the Job
/// by itself, deletes it (`ttlSecondsAfterFinished`), and then what it owns. Who suspends it means its workers. Not
/// thread-safe.
class OwnerJob {
 public:
  /// For how long it lasts without its driver.
  static constexpr Seconds lasts = 300;
  /// How often it is looked at.
  static constexpr Seconds looks_every = 5;

  /// `experiment`: the value of the label.
  OwnerJob(Client client, std::string name, std::string experiment, std::string image);

  /// Makes it, or takes up the one that is there. An ApiError where that may not be.
  void make(const std::stop_token& stop = {});
  const std::optional<Owner>& owner() const { return owner_; }  ///< empty: it is not made yet
  /// Looks at it and moves its deadline on, where that is due. False: it is gone, or about to go.
  bool keep(Seconds now, const std::stop_token& stop = {});
  /// Somebody has suspended it.
  bool suspended() const { return suspended_; }
  const std::string& name() const { return name_; }
  /// Deletes it, and with it, in the background, what it owns. Bounded.
  void remove();

 private:
  std::string path() const;
  bool take(const boost::json::value& job, Seconds now);

  Client client_;
  std::string name_, experiment_, image_;
  std::optional<Owner> owner_ = {};
  Seconds made_at_ = 0;  // on our clock
  Seconds base_ = 0;     // its deadline then
  Seconds due_ = 0;
  Seconds look_at_ = 0;
  bool suspended_ = false;
  bool heeds_ = true;  // that it is suspended
};

}  // namespace hypertune::inline v0::k8s
