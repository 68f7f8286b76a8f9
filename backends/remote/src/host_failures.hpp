// The one clear line about a script on a host, or a file here, that failed.
#pragma once

#include <hypertune/remote/host_error.hpp>
#include <hypertune/remote/run_result.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

/// "host 'a': cannot make the folder 'x': No space left on device; …"
HostError host_error(const std::string& title, std::string_view doing, const RunResult& result);

/// Of a file of this machine.
[[noreturn]] void fail_local(std::string_view doing, const std::filesystem::path& path, int error);

/// For names of unfinished things: no two alike.
std::string nonce();

}  // namespace hypertune::inline v0::remote::detail
