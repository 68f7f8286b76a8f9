// The files that a driver in the cluster gets before it begins.
#pragma once

#include <hypertune/k8s/driver_job.hpp>
#include <hypertune/remote/host_shell.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0::k8s {

/// A unique id for each submission: the driver begins only when the files with its id are there.
std::string new_submission();

/// Copies the files to the folder, and then lets the driver of this submission begin. `program`: copy hypertune, too.
void copy_files(remote::HostShell& shell, const DriverFiles& files, bool program, const std::string& folder,
                const std::string& submission);

enum class FilesState : std::uint8_t { all, underway, nothing };
/// Whether the driver in whose container this shell runs has its files. `underway`: they are being copied at the
/// moment; to find that out takes ten seconds.
FilesState files_state(const remote::HostShell& shell, const std::string& folder);

}  // namespace hypertune::inline v0::k8s
