// Content-Encoding: gzip, by Beast's zlib.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

std::string gzipped(std::string_view text);
/// nullopt: not gzip, damaged, or larger than `most`. Accepts only gzip data without a file name, as `gzip -n` writes
/// it.
std::optional<std::string> gunzipped(std::string_view bytes, std::size_t most);

}  // namespace hypertune::inline v0::dashboard
