// Space: a search space with the user's own configuration struct, or with Params.
#pragma once

#include <hypertune/space/choices.hpp>
#include <hypertune/space/detail/build.hpp>
#include <hypertune/space/detail/draft.hpp>
#include <hypertune/space/dim.hpp>
#include <hypertune/space/domain.hpp>
#include <hypertune/space/search_space.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What may vary, and how it becomes a Config. An immutable value, cheap to copy, and thread-safe as long as the user's
/// own predicates and callables are. Every mistake in it is an Error of kind `space` at construction that names the
/// parameter.
template <class Config = Params>
class Space {
 public:
  static constexpr bool dynamic = std::same_as<Config, Params>;
  static_assert(std::default_initializable<Config>,
                "hypertune: the configuration struct must be default-constructible: parameters that are not in the "
                "space, or not active, keep their default");

  /// A condition between parameters, by name.
  struct Rule {
    std::string name;
    std::function<bool(const Config&)> holds;
  };

  explicit Space(std::vector<Dim<Config>> dims, std::vector<Rule> rules = {}) {
    std::vector<detail::DimensionDraft> drafts;
    for (const auto& dim : dims) drafts.push_back(dim.draft());
    auto model = detail::build_model(std::move(drafts));
    auto parts = std::make_shared<Parts>();
    parts->at.resize(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) parts->at[detail::place_of(*model, i)] = i;
    parts->dims = std::move(dims);
    parts->rules = std::move(rules);
    // The parts contain the rules, not the constraints: these own the parts, and there must be no cycle.
    for (const auto& rule : parts->rules)
      detail::add_constraint(*model, rule.name,
                             [parts, holds = rule.holds](const SearchSpace::Model& m, const Point& point) {
                               return holds(config_of(*parts, m, point));
                             });
    parts_ = std::move(parts);
    space_.emplace(std::move(model));
  }

  const SearchSpace& search_space() const& { return *space_; }
  SearchSpace search_space() && { return *space_; }
  operator SearchSpace() const { return *space_; }  // NOLINT: a Space is a SearchSpace with types

  /// The configuration of a point. Members that no active dimension sets keep their default.
  Config config(const Point& point) const { return config_of(*parts_, space_->model(), point); }

  /// The point of a configuration; Error of kind `space` that names the parameter if its value lies outside its domain.
  Point point(const Config& config) const {
    if constexpr (dynamic) {
      return space_->point(config);
    } else {
      const auto& model = space_->model();
      Point point(space_->size());
      for (std::size_t d = 0; d < point.size(); ++d)
        point[d] = space_->active(d, point) ? detail::accepted(model, d, parts_->dims[parts_->at[d]].getter()(config))
                                            : inactive;
      return point;
    }
  }

  /// The space in which `holds(config)` must be true as well; `name` is for messages. A predicate over Params must ask
  /// contains() before it reads a conditional parameter. It must be safe to call from several threads.
  template <std::predicate<const Config&> F>
  Space constraint(std::string name, F holds) const {
    auto rules = parts_->rules;
    rules.push_back({std::move(name), std::move(holds)});
    return Space(parts_->dims, std::move(rules));
  }

  /// The smaller space in which a parameter has one value. Dimensions whose conditions can no longer hold are removed.
  template <class T>
  Space fix(std::string_view name, const T& value) const {
    const auto [place, x, only, gone] = detail::fixed_at(space_->model(), name, detail::to_value(value));
    std::vector<Dim<Config>> dims;
    for (std::size_t i = 0; i < gone.size(); ++i) {
      const auto& dim = parts_->dims[i];
      if (!gone[i]) dims.push_back(i == place ? fixed(dim, only, x) : dim);
    }
    return Space(std::move(dims), parts_->rules);
  }

  // For nested().
  const std::vector<Dim<Config>>& dims() const { return parts_->dims; }
  const std::vector<Rule>& rules() const { return parts_->rules; }

 private:
  struct Parts {
    std::vector<Dim<Config>> dims;  // as declared
    std::vector<std::size_t> at;    // index in dims of each dimension of the SearchSpace
    std::vector<Rule> rules;
  };

  static Config config_of(const Parts& parts, const SearchSpace::Model& model, const Point& point) {
    if constexpr (dynamic) {
      return detail::params_of(model, point);
    } else {
      Config config{};
      for (std::size_t d = 0; d < parts.at.size() && d < point.size(); ++d)
        if (is_active(point[d])) parts.dims[parts.at[d]].setter()(config, detail::snapped(model, d, point[d]));
      return config;
    }
  }

  static Dim<Config> fixed(const Dim<Config>& dim, Value value, double x) {
    auto draft = detail::make_draft(dim.name(), constant(std::move(value)));
    draft.conditions = dim.draft().conditions;
    if constexpr (dynamic) {
      return {std::move(draft), nullptr, nullptr};
    } else {
      return {std::move(draft), [set = dim.setter(), x](Config& config, double) { set(config, x); },
              [get = dim.getter(), x](const Config& config) { return get(config) == x ? 0.0 : inactive; }};
    }
  }

  std::shared_ptr<const Parts> parts_;
  std::optional<SearchSpace> space_;
};

/// Dimensions and rules of a part of a Config; made by nested().
template <class Config>
struct Nested {
  std::vector<Dim<Config>> dims;
  std::vector<typename Space<Config>::Rule> rules;

  /// Conditions for the whole part, as for Dim.
  template <class... Args>
  Nested when(const std::string& parent, const Args&... args) const {
    Nested result = *this;
    for (auto& dim : result.dims) dim = dim.when(parent, args...);
    return result;
  }
  template <class T>
  Nested when(const std::string& parent, std::initializer_list<T> values) const {
    return when(parent, std::vector<T>(values));
  }
  Nested when_between(const std::string& parent, double lower, double upper) const {
    Nested result = *this;
    for (auto& dim : result.dims) dim = dim.when_between(parent, lower, upper);
    return result;
  }
};

namespace detail {

/// The draft with `prefix` before its name and those of its parents.
DimensionDraft prefixed(std::string_view prefix, DimensionDraft draft);

}  // namespace detail

/// A struct in the struct: `nested("opt", &Outer::opt, inner)` makes the inner space's "lr" the outer space's "opt.lr".
template <class Outer, class Inner>
Nested<Outer> nested(std::string_view prefix, Inner Outer::* member, const Space<Inner>& inner) {
  Nested<Outer> result;
  for (const auto& dim : inner.dims()) {
    auto draft = detail::prefixed(prefix, dim.draft());
    if (draft.member) *draft.member += detail::offset_of(member);
    result.dims.emplace_back(
        std::move(draft), [member, set = dim.setter()](Outer& config, double x) { set(config.*member, x); },
        [member, get = dim.getter()](const Outer& config) { return get(config.*member); });
  }
  for (const auto& rule : inner.rules())
    result.rules.push_back({std::string(prefix) + "." + rule.name,
                            [member, holds = rule.holds](const Outer& config) { return holds(config.*member); }});
  return result;
}

/// A space in a space without a struct. Its constraints see its own parameters, without the prefix.
Nested<Params> nested(std::string_view prefix, const Space<Params>& inner);

namespace detail {

template <class Config, class Part>
void add_part(std::vector<Dim<Config>>& dims, std::vector<typename Space<Config>::Rule>& rules, const Part& part) {
  if constexpr (requires { part.dims; }) {
    for (const auto& dim : part.dims) add_part<Config>(dims, rules, dim);
    for (const auto& rule : part.rules) rules.push_back({rule.name, rule.holds});
  } else {
    static_assert(
        std::constructible_from<Dim<Config>, DimensionDraft, decltype(part.setter()), decltype(part.getter())>,
        "hypertune: a dimension sets a member of another struct than the space's: give a member of this "
        "struct, or of a base of it, or use nested()");
    dims.emplace_back(part.draft(), part.setter(), part.getter());
  }
}

}  // namespace detail

/// A space over a struct, `space<Config>(dim("lr", &Config::lr, uniform(0, 1)), nested(…), …)`, or without one,
/// `space(dim("lr", uniform(0, 1)), …)`.
template <class Config = Params, class... Parts>
Space<Config> space(const Parts&... parts) {
  std::vector<Dim<Config>> dims;
  std::vector<typename Space<Config>::Rule> rules;
  (detail::add_part<Config>(dims, rules, parts), ...);
  return Space<Config>(std::move(dims), std::move(rules));
}

}  // namespace hypertune::inline v0
