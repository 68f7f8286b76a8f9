// Files that contain secrets: only their owner may read them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// Error of kind `usage` if others may read it or it is longer than `max_size`, `io` if it cannot be read.
std::string read_private_file(const std::filesystem::path& path, std::size_t max_size);

/// Writes a new file that has mode 0600 from the beginning.
void write_private_file(const std::filesystem::path& path, std::string_view text);

/// The text for an errno.
std::string error_text(int error);

}  // namespace hypertune::inline v0::detail
