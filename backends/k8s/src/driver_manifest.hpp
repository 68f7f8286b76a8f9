// The objects of a driver in the cluster. No I/O.
#pragma once

#include <hypertune/k8s/driver_job.hpp>

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// Where the volume is in the driver's pod, and there the Job's folder.
inline constexpr std::string_view volume_folder = "/var/lib/hypertune";
inline constexpr std::string_view job_label = "hypertune/job";

/// An annotation of the Job, which says for which submission it is.
inline constexpr std::string_view submission_annotation = "hypertune/submission";
/// Another one, which the driver makes when it begins.
inline constexpr std::string_view begun_annotation = "hypertune/begun";
/// How long a driver waits for its files while nobody brings any.
inline constexpr int files_patience = 600;

/// What the driver's container runs: it waits for the files of its submission (`ready` names it), then runs the sweep,
/// or goes on with it. When for `patience` seconds nothing has come, or hypertune does not start in this image, it ends
/// with exit code 1, and says why in its termination message.
std::string driver_script(int patience = files_patience, const std::string& termination_log = "/dev/termination-log");

boost::json::object driver_job_manifest(const DriverJobOptions& options, const std::string& name,
                                        const std::string& claim, const std::string& submission);
boost::json::object claim_manifest(const DriverJobOptions& options, const std::string& name);
/// A pod that has the volume, and ends by itself after so many seconds.
boost::json::object reader_pod_manifest(const DriverJobOptions& options, const std::string& name,
                                        const std::string& pod, const std::string& claim, int seconds);

}  // namespace hypertune::inline v0::k8s
