#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/percent.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/detail/view/query.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::view {

namespace {

constexpr std::size_t max_target = 65536, max_parameters = 100;

// `text` with %xx decoded, and with spaces for '+' if `plus`.
std::string decoded(std::string text, bool plus) {
  if (plus) std::replace(text.begin(), text.end(), '+', ' ');
  auto out = detail::percent_decoded(text);
  if (!out) fail(Errc::input, "the request's address has a '%' without two hexadecimal digits after it");
  return *std::move(out);
}

}  // namespace

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(detail::take_until(text, at));
  return parts;
}

Query::Query(std::string_view target) {
  if (target.size() > max_target)
    fail(Errc::input, "the request's address has {} bytes: at most {}", target.size(), max_target);
  target = target.substr(0, target.find('#'));
  if (!target.starts_with('/')) fail(Errc::input, "the request's address does not begin with '/'");
  const auto question = std::min(target.find('?'), target.size());
  path_ = decoded(std::string(target.substr(0, question)), false);
  if (question == target.size()) return;
  for (const auto& pair : split(target.substr(question + 1), '&')) {
    if (all_.size() == max_parameters) fail(Errc::input, "the request has more than {} parameters", max_parameters);
    const auto equal = std::min(pair.find('='), pair.size());
    all_.emplace_back(decoded(pair.substr(0, equal), true),
                      decoded(pair.substr(std::min(equal + 1, pair.size())), true));
  }
}

const std::string& Query::text(std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : all_)
    if (key == name) return value;
  return none;
}
std::string Query::text(std::string_view name, std::string_view otherwise) const {
  const auto& found = text(name);
  return found.empty() ? std::string(otherwise) : found;
}

std::int64_t Query::whole(std::string_view name, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
  const auto& found = text(name);
  if (found.empty()) return otherwise;
  const auto number = detail::parse_number<std::int64_t>(found);
  if (!number || *number < least || *number > most)
    fail(Errc::input, "'{}' must be a whole number from {} to {}, not '{}'", name, least, most, found.substr(0, 100));
  return *number;
}

std::optional<double> Query::real(std::string_view name) const {
  const auto& found = text(name);
  if (found.empty()) return std::nullopt;
  const auto number = detail::parse_number<double>(found);
  if (!number || !std::isfinite(*number))
    fail(Errc::input, "'{}' must be a number, not '{}'", name, found.substr(0, 100));
  return number;
}

std::string Query::word(std::string_view name, std::initializer_list<std::string_view> words) const {
  const auto& found = text(name);
  if (found.empty()) return std::string(*words.begin());
  if (std::find(words.begin(), words.end(), found) == words.end())
    fail(Errc::input, "'{}' must be one of {}, not '{}'", name, fmt::join(words, ", "), found.substr(0, 100));
  return found;
}

}  // namespace hypertune::inline v0::view
