// Reading JSON of other programs. Functions return defaults for values of the wrong type.
#pragma once

#include <hypertune/cluster/machine.hpp>
#include <hypertune/detail/json_read.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hypertune::inline v0::cluster::detail {

namespace json = boost::json;

using hypertune::detail::array_in;
using hypertune::detail::each_object;
using hypertune::detail::flag_in;
using hypertune::detail::number_in;
using hypertune::detail::object_in;
using hypertune::detail::parse_json;

inline std::string text_of(const json::object& object, std::string_view key) {
  return std::string(hypertune::detail::text_in(object, key));
}

/// Converts an external number of units of 2^`shift` bytes to bytes; 0 if it is negative or too large.
inline std::uint64_t bytes_of(double count, unsigned shift) {
  return count > 0 && count < 0x1p43 ? static_cast<std::uint64_t>(count) << shift : 0;
}

/// Whether the text can be used as a name in a command line: not an option, no spaces, quotes or unprintable
/// characters.
inline bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= 255 && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > 0x20 && c != 0x7f && c != '\'' && c != '"' && c != '`' && c != '$' && c != ';' && c != '\\';
         });
}

inline std::string excerpt(std::string_view text, std::size_t most = 120) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= 0x20) text.remove_prefix(1);
  std::string out(text.substr(0, most));
  if (text.size() > most) out += "…";
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace hypertune::inline v0::cluster::detail
