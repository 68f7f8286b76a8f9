// A dimension on its own, before it is part of a space.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/domain_info.hpp>
#include <hypertune/space/params.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The type that a numeric coordinate has outside the program.
enum class ValueType : std::uint8_t { real, integer, boolean };

/// A condition as written: the value of the parameter `parent` is one of `values`, or lies in [lower, upper].
struct ConditionDraft {
  std::string parent;
  std::vector<Value> values;
  bool range = false;
  double lower = 0, upper = 0;
};

/// A prior as written: this value is good. `amount` is the spread for a number, the probability for an option.
struct PriorDraft {
  Value value;
  std::optional<double> amount;
};

/// A dimension on its own, before it is part of a space.
struct DimensionDraft {
  std::string name;
  DomainInfo info;
  std::vector<Value> options;  // by coordinate, for ordinal, categorical and constant
  ValueType type = ValueType::real;
  std::string grammar;  // "log_uniform: [0.0001, 0.1]"
  std::string problem;  // the mistake in the domain; empty if there is none
  std::vector<ConditionDraft> conditions;
  std::vector<PriorDraft> beliefs;
  std::function<double(double)> from_unit, to_unit;   // for a domain with its own prior
  std::function<double(const Params&, Rng&)> derive;  // sees the parameters drawn before it …
  bool formula = false;                  // … and uses no random numbers: the same parameters give the same value
  std::string scope;                     // … of the nested space with this prefix ("opt."), without the prefix
  std::optional<std::ptrdiff_t> member;  // the offset of the member of the user's struct that it sets

  // Defined once, for all spaces.
  DimensionDraft();
  DimensionDraft(const DimensionDraft& other);
  DimensionDraft(DimensionDraft&& other) noexcept;
  DimensionDraft& operator=(const DimensionDraft& other);
  DimensionDraft& operator=(DimensionDraft&& other) noexcept;
  ~DimensionDraft();

  /// Adds a condition on a parent that must have one of these values.
  void add_condition(std::string parent, std::vector<Value> values);
  void add_condition(std::string parent, double lower, double upper);
  void add_belief(Value value, std::optional<double> amount);
  /// For numbers of the user's own domain as well: the bounds and the quantum on a lattice, and the number of values.
  void put_on_lattice();
  /// Checks that the numbers from `low` to `high` fit the type of a member; if not, `problem` says so.
  void refuse_range(double low, double high);
  void refuse_range(const std::string& low, const std::string& high);
};

}  // namespace hypertune::inline v0::detail
