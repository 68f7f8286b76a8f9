// What a problem is: parameters as any library can take them, and a value to minimise.
#pragma once

#include <hypertune/space/space.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace quality {

namespace ht = hypertune;

/// A parameter as any library can take it.
struct Parameter {
  enum class Kind : std::uint8_t { real, log_real, integer, choice };
  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;
  std::vector<std::string> options = {};
  std::string parent = {}, value = {};  // exists only where `parent` is `value`
};

struct Problem {
  std::string name;
  double optimum = 0;  // 0 where it is not known: then regret is the value itself
  std::vector<Parameter> parameters;
  std::function<double(const ht::Params&)> value;
  bool further = false;  // of further.hpp
  double noise = 0;      // standard deviation of what is added to the values that searchers see; regret knows none
};

inline ht::Space<> space_of(const Problem& problem) {
  std::vector<ht::Dim<>> dims;
  for (const auto& p : problem.parameters) {
    const auto dim = [&] {
      switch (p.kind) {
        case Parameter::Kind::log_real: return ht::dim(p.name, ht::log_uniform(p.low, p.high));
        case Parameter::Kind::integer: return ht::dim(p.name, ht::integer(std::int64_t(p.low), std::int64_t(p.high)));
        case Parameter::Kind::choice: return ht::dim(p.name, ht::choice(p.options));
        default: return ht::dim(p.name, ht::uniform(p.low, p.high));
      }
    }();
    dims.push_back(p.parent.empty() ? dim : dim.when(p.parent, p.value));
  }
  return ht::Space<>(std::move(dims), {});
}

inline std::vector<Parameter> cube(int dimensions, double low, double high) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < dimensions; ++i)
    parameters.push_back({.name = "x" + std::to_string(i), .low = low, .high = high});
  return parameters;
}

inline std::vector<double> numbers(const ht::Params& params) {
  std::vector<double> x;
  for (const auto& [name, value] : params) x.push_back(std::get<double>(value));
  return x;
}

template <class F>
Problem continuous(std::string name, double optimum, int dimensions, double low, double high, F f) {
  return {std::move(name), optimum, cube(dimensions, low, high), [f](const ht::Params& p) { return f(numbers(p)); }};
}

}  // namespace quality
