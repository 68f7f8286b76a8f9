// Errors about a failed script on a host or a local file, as one line.
#pragma once

#include <hypertune/remote/host_error.hpp>
#include <hypertune/remote/run_result.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

/// "host 'a': cannot make the folder 'x': No space left on device; …"
HostError host_error(const std::string& title, std::string_view doing, const RunResult& result);

/// Throws a HostError about a local file.
[[noreturn]] void fail_local(std::string_view doing, const std::filesystem::path& path, int error);

/// A unique text for temporary names.
std::string nonce();

}  // namespace hypertune::inline v0::remote::detail
