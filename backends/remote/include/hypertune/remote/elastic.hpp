// ElasticExecutor: runs one experiment at a time on workers that are started and ended as its queue of trials needs.
#pragma once

#include <hypertune/config/pool_size.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/host_source.hpp>
#include <hypertune/remote/notices.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

class DemandTracker;

/// A worker that may be requested.
struct ElasticWorker {
  std::string name;  ///< name of the host; the same in each run, so that the Tuner recognizes it
  Resources total;   ///< its resources, as far as known before it has started
  AnyDialer dialer;
};

/// The workers that an experiment may have. None is requested before a trial needs it.
struct ElasticPlan {
  std::vector<ElasticWorker> workers = {};  ///< at least one
  int min = 1;                              ///< number of workers that are kept even if no trial needs them
  Seconds idle_timeout = 60;                ///< seconds without a trial after which a worker is ended
  /// Seconds for which started workers of a group are held while the others find no room; see PartialGroupRelease.
  Seconds group_timeout = 300;
  bool keep_all = false;  ///< the workers exist anyway: use all, end none
  RemoteOptions remote = {};
  std::string asked = "has been asked for";  ///< why a worker has not started, until more is known
  std::string kind = "worker";               ///< name of a worker in the error for a trial that needs more than any has
  /// For "cpus", "gpus" and "memory": the option that sets how much of it a worker has. A resource without an entry
  /// cannot be set.
  std::map<std::string, std::string> options = {};
};

/// The interface through which a backend observes and controls its workers while an experiment runs.
class ElasticWorkers {
 public:
  virtual ~ElasticWorkers() = default;
  /// The accounts of all workers so far.
  virtual std::vector<HostAccount> accounts() const = 0;
  /// Why an awaited worker has not started, or that it never will; see HostPool.
  virtual void explain(const std::string& worker, std::string why) = 0;
  virtual void refuse(const std::string& worker, std::string why) = 0;
  /// All workers that wait for resources in use by others. Started workers of the same group are then held in vain; see
  /// PartialGroupRelease.
  virtual void set_without_room(const std::vector<std::string>& workers) = 0;
  /// The worker is about to be taken away: its trials save and continue elsewhere. It is dialled again while it is
  /// needed. `left`: seconds until its end.
  virtual void give_notice(const std::string& worker, std::string why, Seconds left) = 0;
};

/// Callbacks of a backend during an experiment, besides dialling; each may be empty.
struct ElasticHooks {
  /// Called before listed workers are connected to; may block until there is one, or throw if there will be none.
  std::function<void()> ready = {};
  /// Called repeatedly on a thread of the experiment; returns the seconds until the next call. May block until `stop`
  /// is called.
  std::function<Seconds(ElasticWorkers&)> poll = {};
  /// Makes poll() return soon. May be called from any thread.
  std::function<void()> stop = {};
  /// The worker was told to leave, because no trial needs it or it has run its one attempt (RemoteOptions::reuse). Must
  /// not block.
  std::function<void(const std::string& worker)> ended = {};
  /// All streams have ended. `unfinished`: see AnyExecutor::teardown(). May block for a bounded time.
  std::function<void(bool unfinished)> finish = {};
};

/// The hosts of a list, which is polled during the run: those that are added are used, removed ones are drained.
struct ListedHosts {
  HostSource hosts = {};
  HostOptions limits = {};  ///< defaults for what the list does not say about a host; its name is ignored
  RemoteOptions remote = {};
  /// Makes the dialer of a host, whose limits are filled in.
  std::function<AnyDialer(const HostOptions&)> dialer = {};
};

struct ElasticExperiment {
  ElasticPlan plan;
  ElasticHooks hooks;
  std::shared_ptr<Notices> notices;
  /// In place of the plan: others start and end the workers. Problems that do not end the run, such as a temporarily
  /// unreadable list, are raised as Notices.
  std::optional<ListedHosts> listed = {};
  /// With it, a backend learns which of the listed workers are needed, and that replaces those that are lost.
  std::shared_ptr<DemandTracker> demand = {};
};

/// Keeps as many workers as the queue of trials needs. Workers end when they were idle for some time, and with the run.
/// The experiment begins while workers are awaited, and reports what they wait for. Copies share one executor.
class ElasticExecutor : public hypertune::detail::ExecutorHandle {
 public:
  /// Called for each experiment, before any worker is requested. Its exceptions are passed to the user.
  using Make = std::function<ElasticExperiment(const Workload&)>;
  /// `name`: name of the executor.
  ElasticExecutor(std::string name, Make make);
  /// The listed workers are there anyway, for all experiments: prepare() is not needed.
  ElasticExecutor(std::string name, ElasticExperiment listed);

  std::string name() const;
  static constexpr bool runs_gangs = true;

  void prepare(const Workload& workload);
  void trial_ended(TrialId trial);
  void teardown(bool unfinished);

  /// The accounts of all workers so far. May be called from any thread.
  std::vector<HostAccount> accounts() const;

 private:
  struct State;
};

static_assert(Executor<ElasticExecutor>);

}  // namespace hypertune::inline v0::remote
