// Target: the URLs and ranges of requests to a CheckpointServer.
#include "target.hpp"

#include "folder_text.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/percent.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>

#include <limits>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

template <class Number>
std::optional<Number> number(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<Number>(text);
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
  std::string_view path = take_until(text, '?'), query = text;
  Target target;
  const auto trial = number<TrialId>(take_until(path, '/'));
  if (!trial || take_until(path, '/') != "checkpoints") return std::nullopt;
  target.info.trial = *trial;
  if (path.empty()) return query.empty() ? std::optional(target) : std::nullopt;
  target.info.digest = take_until(path, '/');
  bool known = false;
  for (const auto& [name, what] : names)
    if (path == name) {
      target.what = what;
      known = true;
    }
  while (!query.empty()) {
    std::string_view part = take_until(query, '&');
    const std::string_view key = take_until(part, '=');
    const auto value = percent_decoded(part);
    if (!value || percent_encoded(*value) != part) return std::nullopt;
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
  std::string text = detail::format("/v1/trials/{}/checkpoints", target.info.trial);
  if (target.what == Target::What::list) return text;
  text += '/' + target.info.digest;
  for (const auto& [name, what] : names)
    if (target.what == what && !name.empty()) text += '/' + std::string(name);
  return text + "?name=" + percent_encoded(target.info.name) + (target.deep ? "&deep=1" : "");
}

std::optional<ByteRange> parse_range(std::string_view text, std::uint64_t total) {
  if (!text.starts_with("bytes=")) return std::nullopt;
  text.remove_prefix(6);
  const auto first = number<std::uint64_t>(take_until(text, '-'));
  const auto last = number<std::uint64_t>(text);
  if (!first || !last || *first > *last || *last >= total) return std::nullopt;
  return ByteRange{*first, *last + 1};
}

std::string info_line(const CheckpointInfo& info) {
  return detail::format("{} {} {} {}\n", info.steps, info.bytes, info.digest, info.name);
}

std::optional<CheckpointInfo> parse_info_line(std::string_view line, TrialId trial) {
  const auto steps = number<int>(take_until(line, ' '));
  const auto bytes = number<std::uint64_t>(take_until(line, ' '));
  CheckpointInfo info;
  info.trial = trial;
  info.digest = take_until(line, ' ');
  info.name = line;
  if (!steps || !bytes || !sound(info)) return std::nullopt;
  info.steps = *steps;
  info.bytes = *bytes;
  return info;
}

}  // namespace hypertune::inline v0::detail
