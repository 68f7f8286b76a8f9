// PodFleet: the pods of one experiment, made, watched and deleted.
#pragma once

#include "owner_job.hpp"
#include "pod_manifest.hpp"
#include "pod_table.hpp"

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/waiting_lines.hpp>

#include <boost/json/fwd.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Trials of several pods whose pods the scheduler places all or none, by PodGroups: those of worker-1 to worker-`pods`
/// are one, the next as many another.
struct Gang {
  int pods = 1;     ///< of a trial, at most
  int least = 1;    ///< … at least; 1: there are no groups
  int workers = 0;  ///< how many there may be

  /// The number of the worker's group, from 1; 0: it has none, since too few pods are left for one.
  int group_of(std::string_view worker) const;
};

/// Whether Kubernetes has PodGroups (scheduling.k8s.io/v1beta1, since 1.37 where a cluster enables them).
bool knows_pod_groups(Client client, const std::stop_token& stop = {});

struct FleetPlan {
  std::string name;                      ///< prefix of the objects' names
  std::string experiment;                ///< label value: the same in each run of the experiment, unlike any other's
  std::vector<std::string> command;      ///< of the container; empty: the image's
  std::optional<Owner> owner = {};       ///< empty: an OwnerJob
  std::string driver = {}, secret = {};  ///< see PodPlan
  Gang gang = {};
};

/// Thread-safe. Functions that block are ended by their stop token; those without one take a limited time.
class PodFleet {
 public:
  PodFleet(Client client, KubernetesOptions options, FleetPlan plan, std::shared_ptr<remote::Notices> notices);
  PodFleet(const PodFleet&) = delete;
  PodFleet& operator=(const PodFleet&) = delete;

  Client client() const { return client_; }
  const std::string& container() const { return container_; }

  /// Returns a running pod of the worker, the present one or a new one. Waits without a time limit. Throws
  /// remote::DialError if waiting will not help, or the call is to be repeated. `chosen` is told the pod's name before
  /// the wait for it.
  PodState acquire(const std::string& worker, const std::stop_token& stop,
                   const std::function<void(const std::string& pod)>& chosen = {});
  /// The error of a pod that has ended by itself, if that becomes known within `moment` seconds after a call failed.
  std::optional<remote::DialError> find_end_error(const std::string& pod, const std::stop_token& stop,
                                                  Seconds moment = 1);
  /// The end of its log, for messages: empty, or with log_ends_with before it.
  std::string log_tail(const std::string& pod, const std::stop_token& stop);
  /// Do not run anything in this pod again. `node_in_doubt`: nor in new pods on its node, for a while.
  void discard(const std::string& pod, bool node_in_doubt);
  /// To be called when its connection shows that the pod runs, which is before its node reports it.
  void started(const std::string& pod);
  /// A process in the worker's pod was killed because its memory was used up. Returns what is done about it, for
  /// messages; empty: nothing, as workers have the most already. Does not block.
  std::string give_more_memory(const std::string& worker);
  /// Whether its pod runs, with less memory than it is to get.
  bool gets_memory(const std::string& worker) const;
  /// The worker is not needed any more: its pod will be deleted.
  void release(const std::string& worker);

  /// A worker that waits in acquire().
  struct Waiting {
    std::string worker, word, sentence;
    bool cannot_start = false;  ///< waiting does not help
  };
  /// The workers that wait in acquire(), and for what.
  std::vector<Waiting> waiting() const;
  /// Why the API server does not answer; empty: it does.
  std::string trouble() const;
  /// Deletes useless pods (all of them while the owner is suspended), and keeps the owner alive. May block. Returns the
  /// pods in use that are being taken away, or have been; each is returned once.
  std::vector<PodState> reconcile(const std::stop_token& stop);
  /// Deletes everything. Takes a limited time.
  void finish();

 private:
  void on_pod_event(const WatchEvent& event);
  void on_started_event(const WatchEvent& event);
  std::string make_pod(const std::string& worker, const std::stop_token& stop);
  void make_objects(PodPlan& pod, const std::stop_token& stop);
  bool raise_memory(std::uint64_t above);
  void resize(const PodState& pod, const std::stop_token& stop);
  void make_object(const char* api, std::string_view kind, std::string_view kinds, const std::string& name,
                   boost::json::object spec, const std::optional<Owner>& owner, const std::stop_token& stop);
  void show_driver(const std::string& pod, const std::stop_token& stop);
  void remove_pod(const std::string& pod, const std::stop_token& stop);
  std::string pods_path() const;
  std::optional<Owner> owner(const std::stop_token& stop);
  remote::DialError end_error(const PodState& end, const std::stop_token& stop);
  void keep_owner(const std::stop_token& stop);
  void apply_suspension();
  void pause(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Seconds seconds) const;

  Client client_;
  KubernetesOptions options_;
  FleetPlan plan_;
  std::shared_ptr<remote::Notices> notices_;
  std::string container_, template_;
  std::mutex owner_mutex_;  // held during calls about the owner
  std::optional<OwnerJob> owner_job_;
  bool without_owner_ = false;
  std::string refused_;         // what was last refused to reconcile(), which alone uses it
  std::mutex log_tails_mutex_;  // held while a log is read
  std::map<std::string, std::string> log_tails_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::uint64_t changes_ = 0;
  PodTable pods_;
  bool synced_ = false;
  std::string trouble_;
  std::string suspended_;                         // the suspended owner's name; if set, there must be no pods
  std::map<std::string, Waiting> waiting_;        // of those in acquire(), by worker
  std::uint64_t memory_ = 0;                      // of a worker now
  std::map<std::string, std::uint64_t> resized_;  // by pod: the memory that it was to get
  std::set<std::string> objects_;                 // paths of objects that were made beside the pods
  bool cannot_watch_events_ = false;              // the account may not watch events
  Watch started_events_;
  Watch watch_;  // last, so that it ends first
};

}  // namespace hypertune::inline v0::k8s
