// DriverJob: a sweep's driver as a Job of Kubernetes, which goes on where it was when its pod is lost.
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
  KubernetesOptions workers = {};  ///< of the sweep: the driver's pod has the same image, and is in the same namespace
  std::string name = {};           ///< of the sweep; the Job's is made of it
  std::string service_account = "hypertune-driver";
  std::string volume = {};         ///< a PersistentVolumeClaim that is there; empty: one is made for the Job
  std::string storage_class = {};  ///< of that; empty: the cluster's default
  std::uint64_t storage = std::uint64_t{10} << 30U;  ///< its bytes
  double cpus = 0.5;                                 ///< of the driver's pod
  std::uint64_t memory = std::uint64_t{512} << 20U;
  Seconds ttl = -1;      ///< `ttlSecondsAfterFinished`; negative: it stays until it is deleted
  Seconds deadline = 0;  ///< `activeDeadlineSeconds`; 0: none
  bool suspend = false;  ///< `suspend`
};

/// What the driver's pod gets before it begins: files of this machine, by their places below the Job's folder.
struct DriverFiles {
  std::filesystem::path program = {};  ///< hypertune; empty: this program
  std::vector<FileMount> files = {};
  std::vector<std::string> arguments = {};  ///< of `hypertune run`, from the Job's folder
};

/// In a driver's pod, the name of its Job.
inline constexpr std::string_view job_variable = "HYPERTUNE_DRIVER_JOB";
/// In its place, what DriverJob::run_beside() runs.
inline constexpr std::string_view beside_variable = "HYPERTUNE_BESIDE_DRIVER";

/// Within the pod of a DriverJob, whose driver begins: from now on another pod takes the place of one that is lost.
/// Until then the Job fails with its first pod, which has never driven anything. Does nothing elsewhere, and says on
/// standard error what goes wrong.
void begin_own_job() noexcept;
/// Likewise, of one that is about to end by itself with a failure: no further pod is to be tried.
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
  bool there = false;  ///< it is there, or nobody can say
  bool made = false;   ///< it was made for the Job
};

/// All that blocks is ended by its stop token. Errors are ApiError and Error.
class DriverJob {
 public:
  explicit DriverJob(DriverJobOptions options);
  ~DriverJob();
  DriverJob(DriverJob&&) noexcept;
  DriverJob& operator=(DriverJob&&) noexcept;

  const std::string& name() const;
  const std::string& name_space() const;
  /// Makes the Job (a finished one of this name makes way), waits for its pod, brings the files, and waits until the
  /// driver has begun or the Job has ended, which state() then says. `waits`: told why it is not there yet. Error of
  /// kind `busy` where one of this name is under way; one to which nobody has brought its files makes way. Error of
  /// kind `usage` where a finished one has its record on another claim. False: it was stopped. Where it was, or has
  /// failed, before all files were there, nothing is left.
  bool submit(const DriverFiles& files, const std::function<void(const std::string&)>& waits,
              const std::stop_token& stop = {});
  /// Whether submit() has made the claim of the record, so that a new one begins.
  bool made_claim() const;
  DriverJobState state(const std::stop_token& stop = {}) const;
  DriverRecord record(const std::stop_token& stop = {}) const;
  /// Hands on what the driver prints, across its pods, until the Job has ended. Returns that state.
  DriverJobState follow(const std::function<void(std::string_view line)>& print,
                        const std::function<void(const std::string&)>& says, const std::stop_token& stop = {});
  /// Runs `hypertune` with these arguments where the experiment's folder (`experiment`) is, in the driver's pod or,
  /// where that is not there, in one made for it. `out` and `err` take what it writes to its two streams. Its exit
  /// code.
  int run_beside(const std::vector<std::string>& arguments, const std::function<bool(std::string_view)>& out,
                 const std::function<bool(std::string_view)>& err, const std::stop_token& stop = {});
  /// Deletes the Job and all that belongs to it, and waits until nothing of it is left; the volume's claim stays unless
  /// `volume` is true and it was made for the Job (DriverRecord::made). False: there was nothing.
  bool remove(bool volume, const std::stop_token& stop = {});

  /// Folder of the experiment, from the folder in which run_beside() runs.
  static constexpr const char* experiment = "experiment";

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hypertune::inline v0::k8s
