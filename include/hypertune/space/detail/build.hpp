// From declared dimensions to a valid model: every mistake is found here and reported.
#pragma once

#include <hypertune/space/detail/draft.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

class UserPrior;
struct Condition;
struct Constraint;
struct Dimension;
struct SpaceModel;

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

// What a Space needs of its model, which it does not see.

/// The place in the model of the dimension that was declared as number `i`.
std::size_t place_of(const SpaceModel& model, std::size_t i);
void add_constraint(SpaceModel& model, const std::string& name,
                    std::function<bool(const SpaceModel&, const Point&)> holds);
/// The coordinate of a dimension nearest to x; Error of kind `space` that names the dimension if it is not near.
double accepted(const SpaceModel& model, std::size_t d, double x);
double snapped(const SpaceModel& model, std::size_t d, double x);
Params params_of(const SpaceModel& model, const Point& point);
struct Fixed {
  std::size_t place = 0;   // as declared, of the dimension that is fixed
  double x = 0;            // its coordinate
  Value value;             // … and value
  std::vector<bool> gone;  // by the order of declaration: the dimensions whose conditions can no longer hold
};
Fixed fixed_at(const SpaceModel& model, std::string_view name, const Value& value);

}  // namespace hypertune::inline v0::detail
