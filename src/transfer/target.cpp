// Target: the URLs and ranges of requests to a CheckpointServer.
#include <hypertune/checkpoint/content_hash.hpp>
#include <hypertune/checkpoint/transfer/impl/folder_text.hpp>
#include <hypertune/checkpoint/transfer/impl/target.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <charconv>
#include <limits>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

bool unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!unreserved(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const auto high = digits.find(text[i + 1]), low = digits.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Returns the part before the first `separator`, and removes both from `text`.
std::string_view cut(std::string_view& text, char separator) {
  const auto at = text.find(separator);
  const auto part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || text.front() == '-')
    return std::nullopt;
  return value;
}

bool sound(const CheckpointInfo& info) {
  try {
    require_checkpoint_info(info);
    return true;
  } catch (const Error&) { return false; }
}

constexpr std::pair<std::string_view, Target::What> names[] = {{"", Target::What::status},
                                                               {"manifest", Target::What::manifest},
                                                               {"chunks", Target::What::chunks},
                                                               {"data", Target::What::data}};

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  if (text.size() > 2048 || !text.starts_with("/v1/trials/")) return std::nullopt;
  text.remove_prefix(11);
  std::string_view path = cut(text, '?'), query = text;
  Target target;
  const auto trial = number<TrialId>(cut(path, '/'));
  if (!trial || cut(path, '/') != "checkpoints") return std::nullopt;
  target.info.trial = *trial;
  if (path.empty()) return query.empty() ? std::optional(target) : std::nullopt;
  target.info.digest = cut(path, '/');
  bool known = false;
  for (const auto& [name, what] : names)
    if (path == name) {
      target.what = what;
      known = true;
    }
  while (!query.empty()) {
    std::string_view part = cut(query, '&');
    const std::string_view key = cut(part, '=');
    const auto value = decoded(part);
    if (!value) return std::nullopt;
    if (key == "name")
      target.info.name = *value;
    else if (key == "deep" && *value == "1")
      target.deep = true;
    else
      return std::nullopt;
  }
  return known && sound(target.info) ? std::optional(target) : std::nullopt;
}

std::string to_string(const Target& target) {
  std::string text = format("/v1/trials/{}/checkpoints", target.info.trial);
  if (target.what == Target::What::list) return text;
  text += '/' + target.info.digest;
  for (const auto& [name, what] : names)
    if (target.what == what && !name.empty()) text += '/' + std::string(name);
  return text + "?name=" + encoded(target.info.name) + (target.deep ? "&deep=1" : "");
}

std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t total) {
  if (!text.starts_with("bytes=")) return std::nullopt;
  text.remove_prefix(6);
  const auto first = number<std::uint64_t>(cut(text, '-'));
  const auto last = number<std::uint64_t>(text);
  if (!first || !last || *first > *last || *last >= total) return std::nullopt;
  return ByteRange{*first, *last + 1};
}

std::string info_line(const CheckpointInfo& info) {
  return format("{} {} {} {}\n", info.steps, info.bytes, info.digest, info.name);
}

std::optional<CheckpointInfo> parse_info_line(std::string_view line, TrialId trial) {
  const auto steps = number<int>(cut(line, ' '));
  const auto bytes = number<std::uint64_t>(cut(line, ' '));
  CheckpointInfo info;
  info.trial = trial;
  info.digest = cut(line, ' ');
  info.name = line;
  if (!steps || !bytes || !sound(info)) return std::nullopt;
  info.steps = *steps;
  info.bytes = *bytes;
  return info;
}

}  // namespace hypertune::inline v0::detail
