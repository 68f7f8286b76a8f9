// Describes the end of a worker's process as a Cause with a readable text.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace hypertune::inline v0::local {

/// The cause of an unexpected end. `status` is that of wait(2). Exit codes and faults of the program (SIGSEGV …) count
/// as the user's; other signals count as the infrastructure's.
Cause cause_of_status(int status, const std::string& who = "the trial's process");

/// Adds the last output to the text of a cause. For a failure of the program itself the output is introduced by
/// `before`, as it probably tells the reason; otherwise only as the end of the log.
void append_last_output(Cause& cause, const std::string& words, const char* before);

/// Whether the last output of a failed program mentions a lost peer, which may be the reason for its failure. Knows the
/// messages of strerror(3), Python, Gloo, NCCL (ncclRemoteError) and PyTorch's stores; ignores case.
bool mentions_lost_connection(std::string text);

/// The last non-empty line of `log` after its first `from` bytes, at most 300 bytes of it. `limit`: the log's limit, as
/// in BoundedLog.
std::string last_line(const std::filesystem::path& log, std::uint64_t from, std::uint64_t limit = 0);

}  // namespace hypertune::inline v0::local
