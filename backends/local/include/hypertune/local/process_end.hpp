// How a worker's process ended, as a cause that a person understands.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace hypertune::inline v0::local {

/// The cause of an end that the trial did not announce. `status` is wait(2)'s. Faults of the program itself are the
/// user's; a signal from elsewhere is the infrastructure's doing.
Cause cause_of_status(int status, const std::string& who = "the trial's process");

/// The cause with what was said last. That is why a program ended that has failed by itself; one that a signal from
/// outside has ended was saying something else.
void add_last_words(Cause& cause, const std::string& words, const char* before);

/// Whether what a program said as it failed tells of a peer that is gone, which may be the reason of its failure: in
/// the words of strerror(3), Python, Gloo, NCCL (ncclRemoteError) and PyTorch's stores, in any case.
bool speaks_of_lost_connection(std::string text);

/// The last line that is not empty of what was appended to `log`, of which `limit` bytes are kept, after its first
/// `from` bytes; at most 300 characters of it.
std::string last_line(const std::filesystem::path& log, std::uint64_t from, std::uint64_t limit = 0);

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/process_end.hpp>
#endif
