// Small files, read whole.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace hypertune::inline v0::detail {

/// All bytes of a file; nullopt if it cannot be opened or read (a folder can be opened, but not read).
inline std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  // Not by istreambuf_iterator, which throws when reading fails.
  std::string bytes;
  std::array<char, std::size_t{16} << 10U> part;
  while (in.read(part.data(), part.size()) || in.gcount() > 0)
    bytes.append(part.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return std::nullopt;
  return bytes;
}

}  // namespace hypertune::inline v0::detail
