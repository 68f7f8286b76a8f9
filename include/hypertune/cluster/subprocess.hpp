// Programs of providers: those of one cluster hold its lock, and why one has failed.
#pragma once

#include <hypertune/process/subprocess.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::cluster {

/// Options for a program that holds a lock on `lock` while it runs, even if the process that started it dies (see
/// wait_for_calls()).
process::SpawnOptions holding(const std::filesystem::path& lock);

/// Why a program has failed, in one line: its exit code (128 + a signal), and the last lines of its output.
std::string why_failed(int code, std::string_view out, std::string_view err);
std::string why_failed(const process::Collected& ended);

/// The process that has the lock of holding(); 0: none.
int lock_holder(const std::filesystem::path& lock);

/// Waits until no program that was started with this lock runs any more. After `seconds`, throws an error of kind
/// `busy` that names the program.
void wait_for_calls(const std::filesystem::path& lock, double seconds);

}  // namespace hypertune::inline v0::cluster
