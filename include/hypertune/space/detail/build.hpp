// From declared dimensions to a valid model: every mistake is found here and reported.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A mistake in one dimension. Readers of files find its position by the name.
class DimensionError : public Error {
 public:
  DimensionError(std::string_view dimension, const std::string& what)
      : Error(Errc::space, detail::format("parameter '{}': {}", dimension, what)), dimension_(dimension) {}
  const std::string& dimension() const { return dimension_; }

 private:
  std::string dimension_;
};

template <class... Args>
[[noreturn]] void fail_dimension(std::string_view name, detail::FormatText<Args...> format, Args&&... args) {
  throw DimensionError(name, detail::format(format, std::forward<Args>(args)...));
}

/// Throws if a parameter cannot have this name.
void check_name(std::string_view name);

/// Throws if the DomainInfo, which may come from a user's own domain, is invalid.
void check_domain(const DimensionDraft& d);

/// The dimensions in an order in which parents come first, and otherwise as declared. A derived dimension also comes
/// after those declared before it, unless a condition prevents that.
std::vector<std::size_t> drawing_order(const std::vector<Dimension>& dimensions);

/// The condition in the parent's coordinates; throws if the parent can never meet it.
Condition resolve(const std::string& name, const ConditionDraft& draft, std::size_t index,
                  const DimensionDraft& parent);

/// Combines two conditions on the same parent into one, so that every space has only one written form.
void merge(const std::string& name, std::vector<Condition>& all, Condition next, const DimensionDraft& parent);

/// The coordinate of the dimension at x; NaN if none is near. A member of the user's struct may be a float, so near
/// means within a float's precision.
double accept(const Dimension& dimension, double x);

/// The user's priors on a dimension as a density; throws if they are invalid.
UserPrior resolve_prior(const Dimension& dimension);

void add_constraints(SpaceModel& model, std::vector<Constraint> constraints);

/// The model of these dimensions, which is not shared yet.
std::shared_ptr<SpaceModel> build_model(std::vector<DimensionDraft> drafts);

}  // namespace hypertune::inline v0::detail
