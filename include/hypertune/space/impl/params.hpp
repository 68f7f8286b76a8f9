// The values of one configuration outside the program: definitions.
#pragma once

#include <hypertune/space/params.hpp>

namespace hypertune::inline v0 {

namespace detail {

std::string real_text(double value) {
  std::string text = detail::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  const auto* whole_a = std::get_if<std::int64_t>(&a);
  const auto* whole_b = std::get_if<std::int64_t>(&b);
  if (whole_a != nullptr && whole_b != nullptr) return *whole_a <=> *whole_b;
  const auto* real_a = std::get_if<double>(&a);
  const auto* real_b = std::get_if<double>(&b);
  if (real_a != nullptr && real_b != nullptr) return *real_a <=> *real_b;
  if (whole_a != nullptr && real_b != nullptr) {
    if (std::isnan(*real_b)) return std::partial_ordering::unordered;
    if (*real_b >= 0x1p63) return std::partial_ordering::less;
    if (*real_b < -0x1p63) return std::partial_ordering::greater;
    const double floor = std::floor(*real_b);
    const auto order = *whole_a <=> static_cast<std::int64_t>(floor);
    return order == 0 && floor < *real_b ? std::partial_ordering::less : std::partial_ordering(order);
  }
  if (real_a != nullptr && whole_b != nullptr) return 0 <=> compare_numbers(b, a);
  return std::partial_ordering::unordered;
}

void refuse_parameter(std::string_view name, const Value* value, const char* why) {
  if (value == nullptr) fail(Errc::usage, "parameter '{}' is not in this configuration", name);
  const bool flag = std::holds_alternative<bool>(*value);
  const std::string text = flag ? (std::get<bool>(*value) ? "true" : "false")
                                : visit([](const auto& v) { return detail::format("{}", v); }, *value);
  fail(Errc::usage, "parameter '{}' = {} {}", name, text, why);
}

}  // namespace detail

std::string to_string(const Value& value) {
  return detail::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>)
          return detail::real_text(v);
        else
          return detail::format("{}", v);
      },
      value);
}

Params::Params() noexcept = default;
Params::Params(std::initializer_list<Entry> entries) : entries_(entries) {}
Params::Params(const Params& other) = default;
Params::Params(Params&& other) noexcept = default;
Params& Params::operator=(const Params& other) = default;
Params& Params::operator=(Params&& other) noexcept = default;
Params::~Params() = default;

void Params::add(std::string name, Value value) { entries_.emplace_back(std::move(name), std::move(value)); }

void Params::reserve(std::size_t n) { entries_.reserve(n); }

bool operator==(const Params& a, const Params& b) { return a.entries_ == b.entries_; }

const Value* Params::find(std::string_view name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

void Params::set(std::string name, Value value) {
  for (auto& entry : entries_)
    if (entry.first == name) {
      entry.second = std::move(value);
      return;
    }
  entries_.emplace_back(std::move(name), std::move(value));
}

std::string to_string(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params) text += (text.empty() ? "" : " ") + name + '=' + to_string(value);
  return text;
}

}  // namespace hypertune::inline v0
