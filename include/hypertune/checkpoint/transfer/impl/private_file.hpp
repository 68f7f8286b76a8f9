// Files that hold secrets: their owner alone may read them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Error of kind `usage` if others may read it or it is longer than `max_size`, `io` if it cannot be read.
std::string read_private_file(const std::filesystem::path& path, std::size_t max_size);

/// A new file, with mode 0600 from its first moment on.
void write_private_file(const std::filesystem::path& path, std::string_view text);

/// What an errno means.
std::string error_text(int error);

}  // namespace hypertune::inline v0::detail
