// Domains of listed values: definitions.
#pragma once

#include <hypertune/space/choices.hpp>

namespace hypertune::inline v0::detail {

double shortest_double(float x) {
  const std::string text = detail::format("{}", x);
  double result = static_cast<double>(x);
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

}  // namespace hypertune::inline v0::detail
