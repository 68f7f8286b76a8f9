// Domains: which values one parameter may take, and how likely they are a priori.
#pragma once

#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// A Domain defines which values a parameter may take. Searchers see coordinates: a number's own value, or the index of
/// an option. A minimal domain, as a user may write one:
/// ```cpp
/// struct Angle {  // degrees, all equally likely
///   using value_type = double;
///   ht::DomainInfo info() const { return {.kind = ht::DomainKind::real, .lower = 0, .upper = 360}; }
///   double value(double coordinate) const { return coordinate; }
///   double coordinate(double value) const { return value; }  // NaN for a value outside the domain
/// };
/// ```
/// It may also have `double from_unit(double u) const` with its inverse `to_unit(coordinate)`, for a prior that
/// DomainInfo cannot express (both monotone; discrete ones must return valid coordinates); `std::string problem()
/// const`, the mistake in its arguments, if any, which the space reports with the parameter's name; `std::string
/// text(std::size_t option) const`, the text of an option whose value is neither a number nor a string; and
/// `std::string grammar() const`, its form in YAML. All are called from several threads and must not change anything.
template <class D>
concept Domain = std::copy_constructible<D> && requires(const D& domain, double coordinate) {
  typename D::value_type;
  { domain.info() } -> std::convertible_to<DomainInfo>;
  { domain.value(coordinate) } -> std::convertible_to<typename D::value_type>;
  { domain.coordinate(std::declval<const typename D::value_type&>()) } -> std::convertible_to<double>;
};

namespace detail {

/// The common part of numeric domains.
class NumericDomain {
 public:
  const DomainInfo& info() const { return info_; }
  const std::string& problem() const { return problem_; }
  std::string grammar() const;

 protected:
  NumericDomain(std::string_view word, const DomainInfo& info, DomainKind kind);
  /// Checks the arguments of numbers between bounds, and puts them on a lattice.
  void between_bounds(std::optional<double> quantum);
  /// … of whole numbers, which are noted as they are even if no double holds them.
  void between_whole(std::int64_t lower, std::int64_t upper, std::int64_t quantum);
  /// Puts the bounds on the lattice and counts its points; notes mistakes.
  void normalise();
  void set_quantum(double quantum);
  /// Keeps the first mistake.
  void note(std::string problem);
  bool whole() const { return info_.kind == DomainKind::integer; }

  std::string word_;  // in the YAML grammar
  DomainInfo info_;
  std::string problem_;
};

/// … of numbers of one type: T is double or std::int64_t.
template <class T>
class Number : public NumericDomain {
 public:
  using value_type = T;

  Number(std::string_view word, const DomainInfo& info)
      : NumericDomain(word, info, std::same_as<T, double> ? DomainKind::real : DomainKind::integer) {}

  T value(double coordinate) const { return static_cast<T>(coordinate); }
  double coordinate(T value) const { return static_cast<double>(value); }
};

/// Quantised normal priors are limited to this many standard deviations: farther out, cells cannot be told apart.
inline constexpr double normal_reach = 6;

}  // namespace detail

/// Numbers between bounds: uniform, log_uniform, integer, log_int.
template <class T>
class Uniform : public detail::Number<T> {
 public:
  Uniform(std::string_view word, double lower, double upper, bool log, std::optional<double> quantum = {})
      : detail::Number<T>(word, {.lower = lower, .upper = upper, .log = log}), upper_(upper) {
    this->between_bounds(quantum);
  }
  /// Bounds that a double may not hold are noted as they are.
  template <std::same_as<std::int64_t> Whole>
  Uniform(std::string_view word, Whole lower, Whole upper, bool log, Whole quantum)
    requires std::same_as<T, std::int64_t>
      : detail::Number<T>(word, {.lower = static_cast<double>(lower), .upper = static_cast<double>(upper), .log = log}),
        upper_(static_cast<double>(upper)) {
    this->between_whole(lower, upper, quantum);
  }

  /// The same with only the values lower, lower + q, lower + 2q, …
  Uniform quantum(double q) const { return Uniform(this->word_, this->info_.lower, upper_, this->info_.log, q); }

 private:
  double upper_;  // as given, before it was put on a lattice
};

/// Numbers around a mean: normal, log_normal.
class Normal : public detail::Number<double> {
 public:
  Normal(std::string_view word, double mean, double sd, bool log, std::optional<double> quantum = {},
         double lower = -std::numeric_limits<double>::infinity(),
         double upper = std::numeric_limits<double>::infinity());

  /// The same within [lower, upper]; the prior is truncated there and does not pile up at the bounds.
  Normal truncated(double lower, double upper) const {
    return Normal(word_, *info_.mean, *info_.sd, info_.log, quantum_given_, lower, upper);
  }
  /// The same with only multiples of `q`, within six standard deviations.
  Normal quantum(double q) const {
    return Normal(word_, *info_.mean, *info_.sd, info_.log, q, lower_given_, upper_given_);
  }

  std::string grammar() const;

 private:
  /// Restricts the bounds to where the prior reaches.
  void restrict();

  double lower_given_, upper_given_;
  std::optional<double> quantum_given_;
};

/// Real numbers, all in [lower, upper] equally likely.
inline Uniform<double> uniform(double lower, double upper) { return {"uniform", lower, upper, false}; }
/// lower, lower + quantum, … up to upper, equally likely.
inline Uniform<double> quantized(double lower, double upper, double quantum) {
  return uniform(lower, upper).quantum(quantum);
}
/// Real numbers whose logarithm is uniform; lower must be above zero.
inline Uniform<double> log_uniform(double lower, double upper) { return {"log_uniform", lower, upper, true}; }
inline Uniform<double> quantized_log(double lower, double upper, double quantum) {
  return log_uniform(lower, upper).quantum(quantum);
}
/// Real numbers around `mean`; `.truncated(lower, upper)` bounds them.
inline Normal normal(double mean, double sd) { return {"normal", mean, sd, false}; }
inline Normal quantized_normal(double mean, double sd, double quantum) { return normal(mean, sd).quantum(quantum); }
/// Positive numbers whose (natural) logarithm has this mean and standard deviation.
inline Normal log_normal(double mean, double sd) { return {"log_normal", mean, sd, true}; }

/// Whole numbers in [lower, upper], both included, equally likely; within ±2^53. With a quantum: lower, lower +
/// quantum, …
inline Uniform<std::int64_t> integer(std::int64_t lower, std::int64_t upper, std::int64_t quantum = 1) {
  return {"integer", lower, upper, false, quantum};
}
/// Whole numbers in [lower, upper], both included, uniform in the logarithm; lower must be above zero.
inline Uniform<std::int64_t> log_int(std::int64_t lower, std::int64_t upper, std::int64_t quantum = 1) {
  return {"log_int", lower, upper, true, quantum};
}

}  // namespace hypertune::inline v0

#include <hypertune/space/choices.hpp>  // choice, ordinal, discrete, boolean, grid, constant, derived
