#include <hypertune/error.hpp>
#include <hypertune/show/view/query.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hypertune::inline v0::view {

namespace {

constexpr std::size_t max_target = 65536, max_parameters = 100;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_decoded(std::string_view text, bool plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1, low = high < 0 ? -1 : digit(text[i + 2]);
      if (low < 0) fail(Errc::input, "the request's address has a '%' without two hexadecimal digits after it");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find(at), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Query::Query(std::string_view target) {
  if (target.size() > max_target)
    fail(Errc::input, "the request's address has {} bytes: at most {}", target.size(), max_target);
  target = target.substr(0, target.find('#'));
  if (!target.starts_with('/')) fail(Errc::input, "the request's address does not begin with '/'");
  const auto question = std::min(target.find('?'), target.size());
  path_ = percent_decoded(target.substr(0, question), false);
  if (question == target.size()) return;
  for (const auto& pair : split(target.substr(question + 1), '&')) {
    if (all_.size() == max_parameters) fail(Errc::input, "the request has more than {} parameters", max_parameters);
    const auto equal = std::min(pair.find('='), pair.size());
    std::string name = percent_decoded(std::string_view(pair).substr(0, equal), true);
    std::string value =
        equal == pair.size() ? std::string() : percent_decoded(std::string_view(pair).substr(equal + 1), true);
    all_.emplace_back(std::move(name), std::move(value));
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
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), number);
  if (error != std::errc() || end != found.data() + found.size() || number < least || number > most)
    fail(Errc::input, "'{}' must be a whole number from {} to {}, not '{}'", name, least, most, found.substr(0, 100));
  return number;
}

std::optional<double> Query::real(std::string_view name) const {
  const auto& found = text(name);
  if (found.empty()) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), number);
  if (error != std::errc() || end != found.data() + found.size() || !std::isfinite(number))
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
