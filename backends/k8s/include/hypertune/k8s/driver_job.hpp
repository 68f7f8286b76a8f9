// DriverJob: a sweep's driver as a Job of Kubernetes, which continues in a new pod when its pod is lost.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/files/file_mount.hpp>
#include <hypertune/trial/trial.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Meant for designated initialisers.
struct DriverJobOptions {
  KubernetesOptions workers = {};  ///< of the sweep's workers: the driver's pod has the same image and namespace
  std::string name = {};           ///< of the sweep; the name of the Job is derived from it
  std::string service_account = "hypertune-driver";
  std::string volume = {};         ///< an existing PersistentVolumeClaim; empty: one is made for the Job
  std::string storage_class = {};  ///< of the claim that is made; empty: the cluster's default
  std::uint64_t storage = std::uint64_t{10} << 30U;  ///< bytes of the claim that is made
  double cpus = 0.5;                                 ///< of the driver's pod
  std::uint64_t memory = std::uint64_t{512} << 20U;
  Seconds ttl = -1;      ///< `ttlSecondsAfterFinished`; negative: it is kept until it is deleted
  Seconds deadline = 0;  ///< `activeDeadlineSeconds`; 0: none
  bool suspend = false;  ///< `suspend`
};

/// Files of this machine that are copied into the driver's pod before it begins, with their paths in the Job's folder.
struct DriverFiles {
  std::filesystem::path program = {};  ///< the hypertune command; empty: this program
  std::vector<FileMount> files = {};
  std::vector<std::string> arguments = {};  ///< of `hypertune run`, from the Job's folder
};

/// Set in a driver's pod: the name of its Job.
inline constexpr std::string_view job_variable = "HYPERTUNE_DRIVER_JOB";
/// Set instead of it in the processes that DriverJob::run_with_record() runs.
inline constexpr std::string_view record_access_variable = "HYPERTUNE_BESIDE_DRIVER";

/// Called in the pod of a DriverJob when its driver begins: from now on a new pod replaces one that is lost. Until then
/// the Job fails with its first pod, which has not driven anything yet. Does nothing elsewhere; prints failures on
/// standard error.
void begin_own_job() noexcept;
/// Called likewise when the driver is about to exit with a failure of its own: no further pod is to be tried.
void end_own_job() noexcept;

struct DriverJobState {
  enum class Phase : std::uint8_t { none, suspended, waiting, running, done, failed };
  Phase phase = Phase::none;
  std::string pod;       ///< the newest one
  std::string sentence;  ///< what it waits for, or how it ended
};

/// Where the record of a driver in the cluster is.
struct DriverRecord {
  std::string claim;   ///< a PersistentVolumeClaim
  bool there = false;  ///< the claim exists, or nobody can tell
  bool made = false;   ///< the claim was made for the Job
};

/// Every function that blocks can be stopped by its stop token. Errors are ApiError and Error.
class DriverJob {
 public:
  explicit DriverJob(DriverJobOptions options);
  ~DriverJob();
  DriverJob(DriverJob&&) noexcept;
  DriverJob& operator=(DriverJob&&) noexcept;

  const std::string& name() const;
  const std::string& name_space() const;
  /// Makes the Job (replacing a finished one of this name), waits for its pod, copies the files, and waits until the
  /// driver has begun or the Job has ended; state() tells which. `waits` is told why it has not begun yet. Error of
  /// kind `busy` if a Job of this name is running; one whose files were never delivered is replaced. Error of kind
  /// `usage` if a finished one has its record on another claim. Returns false if it was stopped. If it was stopped, or
  /// failed, before all files were there, nothing is left in the cluster.
  bool submit(const DriverFiles& files, const std::function<void(const std::string&)>& waits,
              const std::stop_token& stop = {});
  /// Whether submit() has made the claim of the record, which means that the record is new.
  bool made_claim() const;
  DriverJobState state(const std::stop_token& stop = {}) const;
  DriverRecord record(const std::stop_token& stop = {}) const;
  /// Passes on what the driver prints, across its pods, until the Job has ended. Returns the final state.
  DriverJobState follow(const std::function<void(std::string_view line)>& print,
                        const std::function<void(const std::string&)>& says, const std::stop_token& stop = {});
  /// Runs `hypertune` with these arguments in the parent folder of the experiment (`experiment`): in the driver's pod,
  /// or, if there is none, in a pod made for this. `out` and `err` receive its standard output and error. Returns its
  /// exit code.
  int run_with_record(const std::vector<std::string>& arguments, const std::function<bool(std::string_view)>& out,
                      const std::function<bool(std::string_view)>& err, const std::stop_token& stop = {});
  /// Deletes the Job and everything that belongs to it, and waits until it is gone. The volume's claim is deleted only
  /// if `volume` is true and it was made for the Job (DriverRecord::made). Returns false if there was nothing to
  /// delete.
  bool remove(bool volume, const std::stop_token& stop = {});

  /// The experiment's folder, relative to the folder in which run_with_record() runs.
  static constexpr const char* experiment = "experiment";

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
