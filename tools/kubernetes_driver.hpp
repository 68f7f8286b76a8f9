// A sweep's driver in a cluster of Kubernetes: submit, attach, down, and what is read beside it.
#pragma once

#include <hypertune/error.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

struct KubernetesSubmission {
  std::string file;                   ///< the sweep's
  std::vector<std::string> set = {};  ///< key=value, in place of the file's
  std::string samples = {};           ///< as of `hypertune run`
  std::string service_account = "hypertune-driver";
  std::string volume = {}, storage_class = {}, storage = "10GiB";
  std::string ttl = {}, deadline = {};  ///< durations; empty: none
  bool detach = false;
};

/// `hypertune submit --kubernetes`.
int submit_to_kubernetes(const KubernetesSubmission& submission);
/// A sweep that was submitted: its Job goes by what the file says, or `set` in its place.
struct SubmittedSweep {
  std::string file;
  std::vector<std::string> set = {};  ///< as of `submit`
  std::string volume = {};            ///< the claim with its record; empty: as its Job says, or the one made for it
};

/// Adds the flag --kubernetes, which means `what`, and --set beside it. Returns the flag.
CLI::Option* add_submitted(CLI::App& command, bool& kubernetes, std::vector<std::string>& set, const char* what);

/// `hypertune attach --kubernetes`.
int attach_to_kubernetes(const SubmittedSweep& which);
/// `hypertune down --kubernetes`. `volume`: the record of the experiment as well.
int down_on_kubernetes(const SubmittedSweep& which, bool volume);
/// `hypertune WORDS…` where the experiment of a sweep that was submitted lies, in the folder "experiment".
int beside_on_kubernetes(const SubmittedSweep& which, const std::vector<std::string>& words);

/// Whether this is the driver of a Job of Kubernetes, or runs beside its record: nobody resumes it by hand there.
bool belongs_to_job();

/// Of a driver that begins: see k8s::begin_own_job(). Nothing elsewhere.
void begin_as_driver();
/// Of a driver that ends by its own doing and is not to be started again: see k8s::end_own_job(). Nothing elsewhere.
void end_as_driver();

/// Of a driver in the cluster whose experiment another one drives still, as one may that has lost its node: says so
/// once, and waits for a moment before it is tried again. False elsewhere: nothing is waited for.
bool wait_as_driver(const Error& busy);

}  // namespace hypertune::inline v0::command
