// Domains: which values one parameter may take, and how likely they are a priori.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/space/detail/grammar.hpp>
#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
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

/// The common part of numeric domains: T is double or std::int64_t.
template <class T>
class Number {
 public:
  using value_type = T;

  Number(std::string_view word, DomainInfo info) : word_(word), info_(info) {
    info_.kind = std::same_as<T, double> ? DomainKind::real : DomainKind::integer;
  }

  const DomainInfo& info() const { return info_; }
  T value(double coordinate) const { return static_cast<T>(coordinate); }
  double coordinate(T value) const { return static_cast<double>(value); }
  const std::string& problem() const { return problem_; }

  std::string grammar() const {
    const auto text = [&](double x) { return number_text(x); };
    std::string result = detail::format("{}: [{}, {}]", word_, text(info_.lower), text(info_.upper));
    if (info_.quantum > 0 && !(std::same_as<T, std::int64_t> && info_.quantum == 1))
      result += detail::format(", quantum: {}", text(info_.quantum));
    return result;
  }

 protected:
  /// Puts the bounds on the lattice and counts its points; notes mistakes.
  void normalise() {
    if (!problem_.empty()) return;
    if (std::isnan(info_.lower) || std::isnan(info_.upper)) return note("a bound is NaN: give a number");
    if (info_.lower > info_.upper)
      return note("the lower bound {} is above the upper bound {}: swap them", info_.lower, info_.upper);
    if (info_.mean && !(std::isfinite(*info_.mean) && std::isfinite(*info_.sd) && *info_.sd > 0))
      return note("the mean {} and the standard deviation {} must be finite, and the latter above zero", *info_.mean,
                  *info_.sd);
    if (!info_.mean && (std::isinf(info_.lower) || std::isinf(info_.upper)))
      return note("a bound is infinite: only normal and log_normal may be unbounded");
    if (info_.log && !info_.mean && info_.lower <= 0)
      return note("the lower bound of {} is {}, whose logarithm does not exist: it must be above zero", word_,
                  info_.lower);
    if (info_.quantum == 0) {
      if (info_.lower == info_.upper) info_.options = 1;
      return;
    }
    const double ratio = (info_.upper - info_.lower) / info_.quantum;
    if (!(ratio < Lattice::max_count / 2))
      return note("there are more than 2^52 values in [{}, {}] at a quantum of {}: take a larger quantum", info_.lower,
                  info_.upper, info_.quantum);
    const Lattice lattice(info_.lower, info_.upper, info_.quantum);
    info_.upper = lattice.upper();
    info_.options = static_cast<std::size_t>(lattice.count());
  }

  void set_quantum(double quantum) {
    if (!(quantum > 0 && std::isfinite(quantum)))
      return note("the quantum is {}: it must be a number above zero", quantum);
    if (std::same_as<T, std::int64_t> && quantum != std::trunc(quantum))
      return note("the quantum of whole numbers is {}: it must be a whole number", quantum);
    if (std::same_as<T, std::int64_t> && quantum > 0x1p53)
      return note("the quantum of whole numbers must be at most 2^53, not {}", quantum);
    info_.quantum = quantum;
  }

  template <class... Args>
  void note(detail::FormatText<Args...> format, Args&&... args) {
    if (problem_.empty()) problem_ = detail::format(format, std::forward<Args>(args)...);
  }

  std::string word_;  // in the YAML grammar
  DomainInfo info_;
  std::string problem_;
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
    require_exact(lower, upper);
    if (std::same_as<T, std::int64_t> && (lower != std::trunc(lower) || upper != std::trunc(upper)))
      this->note("the bounds [{}, {}] must be whole numbers", lower, upper);
    if (quantum) this->set_quantum(*quantum);
    this->normalise();
  }
  /// Bounds that a double may not hold are noted as they are.
  template <std::same_as<std::int64_t> Whole>
  Uniform(std::string_view word, Whole lower, Whole upper, bool log, Whole quantum)
    requires std::same_as<T, std::int64_t>
      : detail::Number<T>(word, {.lower = static_cast<double>(lower), .upper = static_cast<double>(upper), .log = log}),
        upper_(static_cast<double>(upper)) {
    require_exact(lower, upper);
    if (quantum > whole_limit) this->note("the quantum of whole numbers must be at most 2^53, not {}", quantum);
    this->set_quantum(static_cast<double>(quantum));
    this->normalise();
  }

  /// The same with only the values lower, lower + q, lower + 2q, …
  Uniform quantum(double q) const { return Uniform(this->word_, this->info_.lower, upper_, this->info_.log, q); }

 private:
  static constexpr std::int64_t whole_limit = std::int64_t{1} << 53;

  template <class Bound>
  void require_exact(Bound lower, Bound upper) {
    const auto beyond = [](Bound x) {
      return x > static_cast<Bound>(whole_limit) || x < -static_cast<Bound>(whole_limit);
    };
    if (std::same_as<T, std::int64_t> && (beyond(lower) || beyond(upper)))
      this->note("whole numbers must lie within ±2^53, not in [{}, {}]", lower, upper);
  }

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
