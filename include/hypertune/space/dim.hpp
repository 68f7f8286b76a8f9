// A dimension of a space: a name, a domain, the member of the user's struct that it sets, and conditions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/space/choices.hpp>
#include <hypertune/space/detail/draft.hpp>
#include <hypertune/space/detail/grammar.hpp>
#include <hypertune/space/domain.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

template <class D>
DimensionDraft make_draft(std::string_view name, const D& domain) {
  using T = typename D::value_type;
  DimensionDraft draft;
  draft.name = name;
  draft.info = domain.info();
  if constexpr (requires { std::string(domain.problem()); }) draft.problem = domain.problem();
  if (!draft.problem.empty()) return draft;

  const DomainInfo& info = draft.info;
  if (info.kind == DomainKind::real || info.kind == DomainKind::integer) {
    draft.put_on_lattice();
  } else if (info.kind != DomainKind::derived) {
    for (std::size_t i = 0; i < info.options; ++i) {
      if constexpr (requires { Value(domain.outside(i)); })
        draft.options.push_back(domain.outside(i));
      else if constexpr (requires { std::string(domain.text(i)); })
        draft.options.emplace_back(std::string(domain.text(i)));
      else if constexpr (requires { to_value(domain.value(0.0)); })
        draft.options.push_back(to_value(domain.value(static_cast<double>(i))));
      else
        draft.problem = "its options are neither numbers nor strings: give its domain a member text(option)";
    }
  }
  if constexpr (std::same_as<T, bool>)
    draft.type = ValueType::boolean;
  else if constexpr (std::is_integral_v<T>)
    draft.type = ValueType::integer;

  if constexpr (requires { std::string(domain.grammar()); })
    draft.grammar = domain.grammar();
  else
    draft.grammar = "custom: [" + number_text(info.lower) + ", " + number_text(info.upper) + "]";
  if constexpr (requires { domain.from_unit(0.5), domain.to_unit(0.5); }) {
    draft.from_unit = [domain](double u) { return static_cast<double>(domain.from_unit(u)); };
    draft.to_unit = [domain](double x) { return static_cast<double>(domain.to_unit(x)); };
  }
  if constexpr (requires(Rng& rng) { domain.draw(Params(), rng); })
    draft.derive = [domain](const Params& earlier, Rng& rng) { return domain.draw(earlier, rng); };
  if constexpr (requires { D::formula; }) draft.formula = D::formula;
  return draft;
}

template <class M>
struct Member {
  using type = M;
  static constexpr bool optional = false;
};
template <class M>
struct Member<std::optional<M>> {
  using type = M;
  static constexpr bool optional = true;
};

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

/// Identifies a member within its struct. In the C++ ABI of g++ and clang a pointer to a data member is an offset.
template <class Config, class M>
std::ptrdiff_t offset_of(M Config::* member) {
  static_assert(sizeof member == sizeof(std::ptrdiff_t));
  return std::bit_cast<std::ptrdiff_t>(member);
}

/// Compile-time check that values of type V can be stored in a member of type M.
template <class V, class M>
constexpr void check_member() {
  if constexpr (std::same_as<V, bool> || std::same_as<M, bool>)
    static_assert(std::same_as<V, M>,
                  "hypertune: a domain of true and false needs a bool member, and a bool member such a domain");
  else if constexpr (std::is_floating_point_v<V>)
    static_assert(std::is_floating_point_v<M>,
                  "hypertune: this domain draws real numbers, but the member is not a float or double: change the "
                  "member's type, or use integer() or log_int()");
  else if constexpr (std::is_integral_v<V>)
    static_assert(is_number<M>, "hypertune: this domain draws whole numbers, but the member is not a number");
  else
    static_assert(std::convertible_to<V, M> && std::convertible_to<M, V>,
                  "hypertune: the options are of a type that does not convert to the member's type and back");
}

/// For a domain without options: checks that the whole numbers between its bounds fit the type M.
template <class M>
void check_bounds(DimensionDraft& draft) {
  if constexpr (std::is_integral_v<M> && !std::same_as<M, bool>) {
    const double low = draft.info.lower;
    const double high = draft.info.upper;
    const double limit = std::ldexp(1.0, std::numeric_limits<M>::digits);
    if (low < (std::is_signed_v<M> ? -limit : 0.0) || high >= limit) draft.refuse_range(low, high);
  }
}

/// Checks that every whole number of the domain fits the type M; if not, `problem` says so. `value(i)` is an option.
template <class M, class Option>
void check_range(DimensionDraft& draft, const Option& value) {
  using V = std::invoke_result_t<Option, std::size_t>;
  if (draft.info.kind == DomainKind::derived || !draft.problem.empty()) return;
  if constexpr (std::is_integral_v<V> && is_number<V>) {
    if (draft.options.empty()) return check_bounds<M>(draft);
    V low = value(0), high = low;
    bool fits = true;
    for (std::size_t i = 0; i < draft.options.size(); ++i) {
      const V option = value(i);
      low = std::min(low, option);
      high = std::max(high, option);
      const Value plain = to_value(option);
      const auto* whole = std::get_if<std::int64_t>(&plain);  // else it is above all of that type
      fits = fits && (whole != nullptr ? converted_exactly<M>(*whole).has_value()
                                       : std::is_unsigned_v<M> && sizeof(M) == sizeof(V));
    }
    if (!fits) draft.refuse_range(std::to_string(low), std::to_string(high));
  }
}

}  // namespace detail

/// One dimension, made by dim(). With Config = Params it belongs to a space without a struct.
template <class Config = Params>
class Dim {
 public:
  using Setter = std::function<void(Config&, double)>;
  using Getter = std::function<double(const Config&)>;  // NaN for a value outside the domain

  Dim(detail::DimensionDraft draft, Setter set, Getter get)
      : draft_(std::move(draft)), set_(std::move(set)), get_(std::move(get)) {}

  /// The dimension is active only if parameter `parent` is active and has this value. If there are several conditions,
  /// all must hold. The parent may be declared before or after.
  template <class T>
  Dim when(std::string parent, const T& value) const {
    return with(std::move(parent), std::vector<Value>(1, condition_value(value)));
  }
  /// … has one of these values.
  template <class T>
  Dim when(std::string parent, std::initializer_list<T> values) const {
    return when(std::move(parent), std::vector<T>(values));
  }
  template <class T>
  Dim when(std::string parent, const std::vector<T>& values) const {
    std::vector<Value> all;
    for (const auto& value : values) all.push_back(condition_value(T(value)));
    return with(std::move(parent), std::move(all));
  }
  /// … is a number in [lower, upper].
  Dim when_between(std::string parent, double lower, double upper) const {
    return with(std::move(parent), lower, upper);
  }

  /// States that the best value of a number (or an ordinal) is expected near `value`. `spread` is the standard
  /// deviation of that, as a share of the range (of the logarithm's range if the domain is logarithmic): 0.1 is
  /// confident, 0.25 the default, 0.5 a hint. For a choice it states that the option `value` is good; `spread` is then
  /// the probability that it is the best one (0.75), and without it the option gets four times the probability of any
  /// other. A choice may have priors on several options; the other options share the remaining probability. Searchers
  /// that support priors begin near them and trust them less as results come in, so that a wrong prior only costs some
  /// trials. On a conditional dimension it applies while the dimension is active. Mistakes are reported by the space.
  template <class T>
  Dim prior(const T& value, std::optional<double> spread = std::nullopt) const {
    Dim result = *this;
    result.draft_.add_belief(condition_value(value), spread);
    return result;
  }

  const std::string& name() const { return draft_.name; }

  // For spaces.
  const detail::DimensionDraft& draft() const { return draft_; }
  const Setter& setter() const { return set_; }
  const Getter& getter() const { return get_; }
  template <class... Allowed>
  Dim with(std::string parent, Allowed... allowed) const {
    Dim result = *this;
    result.draft_.add_condition(std::move(parent), std::move(allowed)...);
    return result;
  }

 private:
  template <class T>
  static Value condition_value(const T& value) {
    if constexpr (requires { detail::to_value(value); })
      return detail::to_value(value);
    else {
      static_assert(fmt::is_formattable<T>::value,
                    "hypertune: this value cannot be printed by fmt: give the option's name instead");
      return detail::format("{}", value);
    }
  }

  detail::DimensionDraft draft_;
  Setter set_;
  Getter get_;
};

/// A dimension of a space without a struct: `dim("lr", log_uniform(1e-4, 1e-1))`.
template <Domain D>
Dim<Params> dim(std::string_view name, const D& domain) {
  return {detail::make_draft(name, domain), nullptr, nullptr};
}

/// Exists for its error message: the domain is missing.
template <class D>
  requires(!Domain<D>)
Dim<Params> dim(std::string_view, const D&) {
  static_assert(Domain<D>,
                "hypertune: dim(): the last argument must be a Domain, such as ht::uniform(0.0, 1.0) or "
                "ht::choice({\"a\", \"b\"}); a single value is ht::constant(x)");
  std::terminate();
}
template <class Config, class M, class D>
  requires(!Domain<D>)
Dim<Config> dim(std::string_view name, M Config::*, const D& domain) {
  dim(name, domain);
  std::terminate();
}

/// A dimension that sets a member of the user's struct: `dim("lr", &Config::lr, log_uniform(1e-4, 1e-1))`. The member
/// may be a std::optional, which is empty if the dimension is not active.
template <class Config, class M, Domain D>
Dim<Config> dim(std::string_view name, M Config::* member, const D& domain) {
  using V = typename D::value_type;
  using Kept = typename detail::Member<M>::type;
  detail::check_member<V, Kept>();
  auto draft = detail::make_draft(name, domain);
  detail::check_range<Kept>(draft, [&](std::size_t option) { return V(domain.value(static_cast<double>(option))); });
  draft.member = detail::offset_of(member);
  auto set = [member, domain](Config& config, double coordinate) {
    config.*member = static_cast<Kept>(static_cast<V>(domain.value(coordinate)));
  };
  auto get = [member, domain](const Config& config) -> double {
    const auto coordinate = [&](const Kept& value) -> double {
      if constexpr (std::is_integral_v<V> && std::is_floating_point_v<Kept>)  // 2.5 is not whole, 1e300 too large
        if (!(std::fabs(value) < 9e18) || value != std::trunc(value)) return inactive;
      return static_cast<double>(domain.coordinate(static_cast<V>(value)));
    };
    if constexpr (detail::Member<M>::optional)
      return config.*member ? coordinate(*(config.*member)) : inactive;
    else
      return coordinate(config.*member);
  };
  return {std::move(draft), std::move(set), std::move(get)};
}

}  // namespace hypertune::inline v0
