// What Slurm's commands print when they fail: what it means for further attempts, and its cause as one line.
#pragma once

#include <hypertune/remote/dialer.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::slurm {

/// What the standard error of a failed sbatch, or of an srun that ended before the agent's first message, means for
/// further attempts.
remote::FailureClass classify_srun(std::string_view said);

/// The cause that the standard error of such a command gives, as one line. A limit is explained.
std::string reason_of_srun(std::string_view said);

/// Error of kind `usage` if SLURM_CONF names a file that does not exist: Slurm's commands would look for it for a
/// minute.
void require_configuration();

}  // namespace hypertune::inline v0::slurm
