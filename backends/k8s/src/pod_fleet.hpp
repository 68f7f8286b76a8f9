// PodFleet: the pods of one experiment, made, watched and deleted.
#pragma once

#include "owner_job.hpp"
#include "pod_ledger.hpp"
#include "pod_manifest.hpp"

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/waiting_lines.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

struct FleetPlan {
  std::string name;                  ///< what objects' names begin with
  std::string experiment;            ///< value of the label: the same for each run of the experiment, and for no other
  std::vector<std::string> command;  ///< of the container; empty: the image's
  std::optional<Owner> owner = {};   ///< empty: an OwnerJob
  std::string driver = {}, secret = {};  ///< see PodPlan
};

/// Thread-safe. All that blocks is ended by its stop token, and bounded where it has none.
class PodFleet {
 public:
  PodFleet(Client client, KubernetesOptions options, FleetPlan plan, std::shared_ptr<remote::Notices> notices);
  PodFleet(const PodFleet&) = delete;
  PodFleet& operator=(const PodFleet&) = delete;

  Client client() const { return client_; }
  const std::string& container() const { return container_; }

  /// A pod of the worker's that runs: the one that it has, or a new one. Waits for as long as it takes. Throws
  /// remote::DialError for what will not pass by itself, or is to be tried again.
  /// `chosen` is told which one it is before it is waited for.
  PodState acquire(const std::string& worker, const std::stop_token& stop,
                   const std::function<void(const std::string& pod)>& chosen = {});
  /// Whether a pod has ended by itself, as is known within a moment of a call that failed, and why.
  std::optional<remote::DialError> own_end(const std::string& pod, const std::stop_token& stop, Seconds moment = 1);
  /// What it said last, for messages: empty, or with log_ends_with before it.
  std::string last_words(const std::string& pod, const std::stop_token& stop);
  /// Nothing is to be run in the pod again. `node_in_doubt`: nor on its node, for a while.
  void discard(const std::string& pod, bool node_in_doubt);
  /// It runs, as its connection tells before its node does.
  void started(const std::string& pod);
  /// The worker is not needed any more: its pod goes.
  void release(const std::string& worker);

  /// A worker that is in acquire().
  struct Waiting {
    std::string worker, word, sentence;
    bool hopeless = false;  ///< it will not come about by itself
  };
  /// Why those that are in acquire() wait.
  std::vector<Waiting> waiting() const;
  /// Whether the cluster does not answer, and why; empty: it does.
  std::string trouble() const;
  /// Deletes what is of no use, and all while the owner is suspended, and keeps the owner alive. May block. Returns
  /// pods in use that are about to be taken away, or have been: each once.
  std::vector<PodState> look(const std::stop_token& stop);
  /// Deletes all. Bounded.
  void finish();

 private:
  void happened(const WatchEvent& event);
  void begun(const WatchEvent& event);
  std::string make_pod(const std::string& worker, const std::stop_token& stop);
  void show_driver(const std::string& pod, const std::stop_token& stop);
  void remove_pod(const std::string& pod, const std::stop_token& stop);
  std::string pods_path() const;
  std::optional<Owner> owner(const std::stop_token& stop);
  remote::DialError end_error(const PodState& end, const std::stop_token& stop);
  void keep_owner(const std::stop_token& stop);
  void heed_owner();
  void pause(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Seconds seconds) const;

  Client client_;
  KubernetesOptions options_;
  FleetPlan plan_;
  std::shared_ptr<remote::Notices> notices_;
  std::string container_, template_;
  std::mutex owner_mutex_;  // held while the owner is asked for
  std::optional<OwnerJob> owner_job_;
  bool without_owner_ = false;
  std::mutex words_mutex_;  // held while they are asked for
  std::map<std::string, std::string> words_;

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::uint64_t changes_ = 0;
  PodLedger ledger_;
  bool synced_ = false;
  std::string trouble_;
  std::string suspended_;                   // the owner's name, where it is; no pods are to be there then
  std::map<std::string, Waiting> waiting_;  // of those in acquire(), by worker
  bool blind_ = false;                      // events may not be watched
  Watch begins_;
  Watch watch_;  // last: it ends first
};

}  // namespace hypertune::inline v0::k8s
