// Domains: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/space/detail/grammar.hpp>
#include <hypertune/space/detail/lattice.hpp>
#include <hypertune/space/domain.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::detail {

NumericDomain::NumericDomain(std::string_view word, const DomainInfo& info, DomainKind kind)
    : word_(word), info_(info) {
  info_.kind = kind;
}

std::string NumericDomain::grammar() const {
  const auto text = [&](double x) { return number_text(x); };
  std::string result = detail::format("{}: [{}, {}]", word_, text(info_.lower), text(info_.upper));
  if (info_.quantum > 0 && !(whole() && info_.quantum == 1))
    result += detail::format(", quantum: {}", text(info_.quantum));
  return result;
}

void NumericDomain::between_bounds(std::optional<double> quantum) {
  constexpr double whole_limit = 0x1p53;
  const double lower = info_.lower, upper = info_.upper;
  if (whole() && (std::fabs(lower) > whole_limit || std::fabs(upper) > whole_limit))
    note(detail::format("whole numbers must lie within ±2^53, not in [{}, {}]", lower, upper));
  if (whole() && (lower != std::trunc(lower) || upper != std::trunc(upper)))
    note(detail::format("the bounds [{}, {}] must be whole numbers", lower, upper));
  if (quantum) set_quantum(*quantum);
  normalise();
}

void NumericDomain::normalise() {
  if (!problem_.empty()) return;
  if (std::isnan(info_.lower) || std::isnan(info_.upper)) return note("a bound is NaN: give a number");
  if (info_.lower > info_.upper)
    return note(detail::format("the lower bound {} is above the upper bound {}: swap them", info_.lower, info_.upper));
  if (info_.mean && !(std::isfinite(*info_.mean) && std::isfinite(*info_.sd) && *info_.sd > 0))
    return note(detail::format("the mean {} and the standard deviation {} must be finite, and the latter above zero",
                               *info_.mean, *info_.sd));
  if (!info_.mean && (std::isinf(info_.lower) || std::isinf(info_.upper)))
    return note("a bound is infinite: only normal and log_normal may be unbounded");
  if (info_.log && !info_.mean && info_.lower <= 0)
    return note(detail::format("the lower bound of {} is {}, whose logarithm does not exist: it must be above zero",
                               word_, info_.lower));
  if (info_.quantum == 0) {
    if (info_.lower == info_.upper) info_.options = 1;
    return;
  }
  const double ratio = (info_.upper - info_.lower) / info_.quantum;
  if (!(ratio < Lattice::max_count / 2))
    return note(detail::format("there are more than 2^52 values in [{}, {}] at a quantum of {}: take a larger quantum",
                               info_.lower, info_.upper, info_.quantum));
  const Lattice lattice(info_.lower, info_.upper, info_.quantum);
  info_.upper = lattice.upper();
  info_.options = static_cast<std::size_t>(lattice.count());
}

void NumericDomain::set_quantum(double quantum) {
  if (!(quantum > 0 && std::isfinite(quantum)))
    return note(detail::format("the quantum is {}: it must be a number above zero", quantum));
  if (whole() && quantum != std::trunc(quantum))
    return note(detail::format("the quantum of whole numbers is {}: it must be a whole number", quantum));
  if (whole() && quantum > 0x1p53)
    return note(detail::format("the quantum of whole numbers must be at most 2^53, not {}", quantum));
  info_.quantum = quantum;
}

void NumericDomain::note(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

void NumericDomain::between_whole(std::int64_t lower, std::int64_t upper, std::int64_t quantum) {
  constexpr std::int64_t limit = std::int64_t{1} << 53;
  const auto beyond = [](std::int64_t x) { return x > limit || x < -limit; };
  if (beyond(lower) || beyond(upper))
    note(detail::format("whole numbers must lie within ±2^53, not in [{}, {}]", lower, upper));
  if (quantum > limit) note(detail::format("the quantum of whole numbers must be at most 2^53, not {}", quantum));
  set_quantum(static_cast<double>(quantum));
  normalise();
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Normal::Normal(std::string_view word, double mean, double sd, bool log, std::optional<double> quantum, double lower,
               double upper)
    : Number(word, {.lower = lower, .upper = upper, .log = log, .mean = mean, .sd = sd}),
      lower_given_(lower),
      upper_given_(upper),
      quantum_given_(quantum) {
  if (quantum) set_quantum(*quantum);
  restrict();
  normalise();
}

std::string Normal::grammar() const {
  std::string text =
      detail::format("{}: [{}, {}]", word_, detail::number_text(*info_.mean), detail::number_text(*info_.sd));
  if (quantum_given_) text += detail::format(", quantum: {}", detail::number_text(*quantum_given_));
  if (std::isfinite(lower_given_) || std::isfinite(upper_given_))
    text += detail::format(", bounds: [{}, {}]", detail::number_text(lower_given_), detail::number_text(upper_given_));
  return text;
}

void Normal::restrict() {
  const bool log = info_.log;
  const double mean = *info_.mean;
  const double sd = *info_.sd;
  if (!problem_.empty() || !(sd > 0) || !std::isfinite(sd) || !std::isfinite(mean) || !(info_.lower <= info_.upper))
    return;  // normalise() reports the mistake
  if (log && info_.upper <= 0)
    return note(detail::format("the upper bound of log_normal is {}: it must be above zero", info_.upper));
  if (log) info_.lower = std::max(info_.lower, 0.0);
  const auto map = [&](double x) { return log ? std::log(x) : x; };
  const auto unmap = [&](double x) { return log ? std::exp(x) : x; };
  const double z1 = (map(info_.lower) - mean) / sd;
  const double z2 = (map(info_.upper) - mean) / sd;
  if (z1 > 8 || z2 < -8)
    return note(detail::format(
        "the bounds [{}, {}] leave nothing of a normal prior with mean {} and standard deviation {}: move one",
        lower_given_, upper_given_, mean, sd));
  if (quantum_given_) {  // multiples of the quantum, as far as the prior reaches
    const double q = info_.quantum;
    const double reach = detail::normal_reach + std::max({0.0, z1, -z2});
    info_.lower = std::ceil(std::max(info_.lower, unmap(mean - reach * sd)) / q - 1e-9) * q + 0.0;  // no -0
    info_.upper = std::floor(std::min(info_.upper, unmap(mean + reach * sd)) / q + 1e-9) * q + 0.0;
    if (log && info_.lower <= 0) info_.lower = q;
    if (info_.lower > info_.upper)
      return note(detail::format(
          "no multiple of the quantum {} lies within the bounds and six standard deviations: take a smaller one", q));
  }
}

}  // namespace hypertune::inline v0
