// Options of the command that take a count.
#pragma once

#include <hypertune/detail/parse_number.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace hypertune::inline v0::command {

/// Refuses what is no whole number from 0. CLI::NonNegativeNumber says so with an upper bound of 310 digits.
inline CLI::Validator count() {
  return CLI::Validator(
      [](std::string& text) {
        const auto number = detail::parse_number<int>(text);
        return number && *number >= 0 ? std::string() : "it takes a whole number from 0, not '" + text + "'";
      },
      "NONNEGATIVE");
}

}  // namespace hypertune::inline v0::command
