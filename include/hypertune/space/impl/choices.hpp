// Domains of listed values: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/choices.hpp>
#include <hypertune/space/detail/grammar.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail {

double shortest_double(float x) {
  const std::string text = detail::format("{}", x);
  double result = static_cast<double>(x);
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

std::string mistake_in(const std::vector<Value>& options) {
  std::set<std::pair<std::string, bool>> seen;  // text, and whether it is a string; 1 and 1.0 differ
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Value& value = options[i];
    if (const auto* x = std::get_if<double>(&value); x != nullptr && !std::isfinite(*x))
      return detail::format("option {} is {}: every number must be finite", i + 1, *x);
    if (!seen.emplace(to_string(value), std::holds_alternative<std::string>(value)).second)
      return detail::format("option '{}' is given twice: remove one", to_string(value));
  }
  return {};
}

std::string options_grammar(const std::string& word, const std::vector<Value>& options) {
  return detail::format("{}: {}", word, word == "constant" ? value_text(options.at(0)) : list_text(options));
}

std::string wrong_number_of_names(std::size_t names, std::size_t options) {
  return detail::format("{} names are given for {} options: give one for each", names, options);
}

void refuse_derived(const std::string& value) {
  fail(Errc::space, "a derived parameter is {}: whole numbers that are computed must lie within ±2^53", value);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Choices<bool> boolean() { return {"boolean", DomainKind::categorical, std::vector<bool>{false, true}}; }

}  // namespace hypertune::inline v0
