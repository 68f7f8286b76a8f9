// Domains: definitions.
#pragma once

#include <hypertune/space/domain.hpp>

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
  if (log && info_.upper <= 0) return note("the upper bound of log_normal is {}: it must be above zero", info_.upper);
  if (log) info_.lower = std::max(info_.lower, 0.0);
  const auto map = [&](double x) { return log ? std::log(x) : x; };
  const auto unmap = [&](double x) { return log ? std::exp(x) : x; };
  const double z1 = (map(info_.lower) - mean) / sd;
  const double z2 = (map(info_.upper) - mean) / sd;
  if (z1 > 8 || z2 < -8)
    return note("the bounds [{}, {}] leave nothing of a normal prior with mean {} and standard deviation {}: move one",
                lower_given_, upper_given_, mean, sd);
  if (quantum_given_) {  // multiples of the quantum, as far as the prior reaches
    const double q = info_.quantum;
    const double reach = detail::normal_reach + std::max({0.0, z1, -z2});
    info_.lower = std::ceil(std::max(info_.lower, unmap(mean - reach * sd)) / q - 1e-9) * q + 0.0;  // no -0
    info_.upper = std::floor(std::min(info_.upper, unmap(mean + reach * sd)) / q + 1e-9) * q + 0.0;
    if (log && info_.lower <= 0) info_.lower = q;
    if (info_.lower > info_.upper)
      return note(
          "no multiple of the quantum {} lies within the bounds and six standard deviations: take a smaller one", q);
  }
}

}  // namespace hypertune::inline v0
