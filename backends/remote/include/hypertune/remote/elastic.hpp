// ElasticExecutor: one experiment at a time on workers that come and go with its queue of trials.
#pragma once

#include <hypertune/config/worker_count.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/remote/dialer.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/notices.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::remote {

/// One that may be asked for.
struct ElasticWorker {
  std::string name;  ///< of the host; the same each time, so that the Tuner knows it again
  Resources total;   ///< what it has, as far as that is known before it is there
  AnyDialer dialer;
};

/// The workers that an experiment may have. None is asked for before a trial needs it.
struct ElasticPlan {
  std::vector<ElasticWorker> workers = {};  ///< at least one
  int min = 1;                              ///< so many are there even where no trial needs them
  Seconds idle = 60;                        ///< one without a trial is ended after so long
  /// For so long those of a trial's workers that are there are held while the others find no room: see GroupHold.
  Seconds group_patience = 300;
  bool keep_all = false;  ///< they are there anyway: all are used, and none is ended
  RemoteOptions remote = {};
  std::string asked = "has been asked for";  ///< why a worker is not there yet, until more is known
  std::string kind = "worker";               ///< what they are, where a trial needs more than any of them has
  /// By "cpus", "gpus" and "memory", the option that says how much of it a worker has; what it lacks cannot be chosen.
  std::map<std::string, std::string> options = {};
};

/// What a backend sees of its workers while an experiment runs, and may say of them.
class ElasticWorkers {
 public:
  virtual ~ElasticWorkers() = default;
  /// Of the workers that there have been.
  virtual std::vector<HostAccount> accounts() const = 0;
  /// Why a worker that is waited for is not there, or that it never will be: see HostPool.
  virtual void explain(const std::string& worker, std::string why) = 0;
  virtual void refuse(const std::string& worker, std::string why) = 0;
  /// Those that wait for what others have, all of them: what is there of a trial's workers meanwhile is held in vain.
  virtual void lack_room(const std::vector<std::string>& workers) = 0;
  /// The worker is about to be taken away by whoever runs it: its trials save and go on elsewhere, and it is dialled
  /// again as long as it is needed.
  virtual void give_notice(const std::string& worker, std::string why, Seconds left) = 0;
};

/// What a backend does for an experiment beside dialling; each may be empty.
struct ElasticHooks {
  /// Called again and again on a thread of the experiment's, after so many seconds as it returns; may block until
  /// `stop` is called.
  std::function<Seconds(ElasticWorkers&)> look = {};
  /// look() is to return soon. Any thread.
  std::function<void()> stop = {};
  /// The worker has been told to leave, as nothing needs it, or as it has done all that it was to do
  /// (RemoteOptions::reuse). Not to block.
  std::function<void(const std::string& worker)> ended = {};
  /// All streams have ended. `unfinished`: trials waited or ran when it was told to end, so that the experiment may be
  /// resumed. Blocks for a bounded time.
  std::function<void(bool unfinished)> finish = {};
};

struct ElasticExperiment {
  ElasticPlan plan;
  ElasticHooks hooks;
  std::shared_ptr<Notices> notices;
};

/// There are as many workers as the queue of trials asks for, and they end when they were idle for some time, and with
/// the run. The experiment begins while they are waited for, and says what they wait for. Copies are the same executor.
class ElasticExecutor {
 public:
  /// Called for each experiment, before anything is asked for; what it throws is thrown to the user.
  using Make = std::function<ElasticExperiment(const Workload&)>;
  /// `name`: of the executor.
  ElasticExecutor(std::string name, Make make);

  std::vector<Host> hosts() const;
  Seconds now() const;
  void start(ExecutorStart start);
  void perform(Command command);
  void wait(Seconds deadline);
  void notify();
  void shutdown();
  std::string name() const;
  static constexpr bool runs_gangs = true;

  void prepare(const Workload& workload);
  void trial_ended(TrialId trial);
  void teardown();

  /// Of the workers that there have been. Any thread.
  std::vector<HostAccount> accounts() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

static_assert(Executor<ElasticExecutor>);

}  // namespace hypertune::inline v0::remote
