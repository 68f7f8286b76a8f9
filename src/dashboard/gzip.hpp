// Content-Encoding: gzip, by Beast's own zlib.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

std::string gzipped(std::string_view text);
/// nullopt: it is none, or is damaged, or larger than `most`. Of one without a name, as gzip -n writes it.
std::optional<std::string> gunzipped(std::string_view bytes, std::size_t most);

}  // namespace hypertune::inline v0::dashboard
