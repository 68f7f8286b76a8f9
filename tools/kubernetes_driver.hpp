// A sweep's driver in a Kubernetes cluster: submit, attach, down, and commands that read its record.
#pragma once

#include "cluster_support.hpp"

#include <hypertune/error.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// `hypertune submit --kubernetes`.
int submit_to_kubernetes(const ClusterArguments& arguments);
/// A submitted sweep. The name of its Job is determined by the file and `set`.
struct SubmittedSweep {
  std::string file;
  std::vector<std::string> set = {};  ///< as given to `submit`
  std::string volume = {};            ///< the record's claim; empty: the one its Job names, or made for it
};

/// Adds the flag --kubernetes with the help text `what`, and the option --set. Returns the flag.
CLI::Option* add_submitted(CLI::App& command, bool& kubernetes, std::vector<std::string>& set, const char* what);

/// `hypertune attach --kubernetes`.
int attach_to_kubernetes(const SubmittedSweep& which);
/// `hypertune down --kubernetes`. `volume`: delete the record of the experiment too.
int down_on_kubernetes(const SubmittedSweep& which, bool volume);
/// Runs `hypertune WORDS…` next to the experiment of a submitted sweep, which is in the folder "experiment".
int inspect_on_kubernetes(const SubmittedSweep& which, const std::vector<std::string>& words);

/// Whether this is the driver of a Kubernetes Job, or runs next to its record: there nobody resumes it by hand.
bool belongs_to_job();

/// To be called when a driver begins: see k8s::begin_own_job(). Does nothing elsewhere.
void begin_as_driver();
/// To be called when a driver has failed by itself and must not be started again: see k8s::end_own_job(). Does nothing
/// elsewhere.
void end_as_driver();

/// For a driver in the cluster whose experiment still has another driver, perhaps on a lost node: prints that once,
/// waits a moment, and returns true to try again. Returns false elsewhere.
bool wait_as_driver(const Error& busy);

}  // namespace hypertune::inline v0::command
