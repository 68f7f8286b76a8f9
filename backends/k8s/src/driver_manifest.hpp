// The Kubernetes objects of a driver in the cluster. No I/O.
#pragma once

#include <hypertune/k8s/driver_job.hpp>

#include <boost/json/object.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// Where the volume is mounted in the driver's pod; the Job's folder is on it.
inline constexpr std::string_view volume_folder = "/var/lib/hypertune";
inline constexpr std::string_view job_label = "hypertune/job";

/// An annotation of the Job: the id of its submission.
inline constexpr std::string_view submission_annotation = "hypertune/submission";
/// An annotation of the Job that its driver sets when it begins.
inline constexpr std::string_view begun_annotation = "hypertune/begun";
/// How many seconds a driver waits for its files while nobody copies any.
inline constexpr int files_patience = 600;

/// The script of the driver's container. It waits for the files of its submission (`ready` names it), then starts the
/// sweep or resumes it. If nothing has arrived for `patience` seconds, or hypertune does not start in this image, it
/// exits with code 1 and writes the reason to its termination message.
std::string driver_script(int patience = files_patience, const std::string& termination_log = "/dev/termination-log");

boost::json::object driver_job_manifest(const DriverJobOptions& options, const std::string& name,
                                        const std::string& claim, const std::string& submission);
boost::json::object claim_manifest(const DriverJobOptions& options, const std::string& name);
/// A pod that mounts the volume, and ends by itself after `seconds`.
boost::json::object reader_pod_manifest(const DriverJobOptions& options, const std::string& name,
                                        const std::string& pod, const std::string& claim, int seconds);

}  // namespace hypertune::inline v0::k8s
