// From declared dimensions to a valid model: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/detail/build.hpp>
#include <hypertune/space/detail/dimension_error.hpp>
#include <hypertune/space/detail/model.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

void check_name(std::string_view name) {
  if (name.empty()) fail(Errc::space, "a parameter has an empty name: give it one");
  if (name == "constraints")
    fail(Errc::space, "parameter 'constraints': this name has a meaning of its own, choose another");
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      fail(Errc::space, "a parameter's name contains a control character: choose a printable name");
}

void check_domain(const DimensionDraft& d) {
  if (!d.problem.empty()) fail_dimension(d.name, "{}", d.problem);
  const DomainInfo& info = d.info;
  const bool numeric = info.kind == DomainKind::real || info.kind == DomainKind::integer;
  if (numeric) {
    if (std::isnan(info.lower) || std::isnan(info.upper)) fail_dimension(d.name, "a bound is NaN: give a number");
    if (info.lower > info.upper)
      fail_dimension(d.name, "the lower bound {} is above the upper bound {}: swap them", info.lower, info.upper);
    if (std::isnan(info.quantum) || info.quantum < 0)
      fail_dimension(d.name, "the quantum is {}: it must be above zero", info.quantum);
    if (!info.mean && (std::isinf(info.lower) || std::isinf(info.upper)))
      fail_dimension(d.name, "a bound is infinite: only normal and log_normal may be unbounded");
    if (info.mean && !(info.sd && *info.sd > 0 && std::isfinite(*info.sd) && std::isfinite(*info.mean)))
      fail_dimension(d.name, "a normal prior needs a finite mean and a standard deviation above zero");
    if (info.log && !info.mean && info.lower <= 0)
      fail_dimension(d.name, "the lower bound of a logarithmic domain is {}: it must be above zero", info.lower);
  } else if (info.kind != DomainKind::derived && (info.options == 0 || d.options.size() != info.options)) {
    fail_dimension(d.name, "there are no options: give at least one");
  }
}

std::vector<std::size_t> drawing_order(const std::vector<Dimension>& dimensions) {
  const std::size_t n = dimensions.size();
  std::vector<std::size_t> order;
  std::vector<bool> placed(n, false);
  std::size_t first = 0;  // everything before it is placed
  const auto parents_placed = [&](std::size_t d) {
    return std::all_of(dimensions[d].when.begin(), dimensions[d].when.end(),
                       [&](const Condition& c) { return placed[c.parent]; });
  };
  while (order.size() < n) {
    while (placed[first]) ++first;
    std::size_t next = n;
    for (const bool patient : {true, false}) {
      for (std::size_t d = first; d < n && next == n; ++d) {
        if (placed[d] || !parents_placed(d)) continue;
        if (patient && dimensions[d].derive && d != first) continue;
        next = d;
      }
      if (next != n) break;
    }
    if (next == n) {
      // Every dimension left waits for another one left: going from parent to parent ends in a cycle.
      std::vector<std::size_t> path{first};
      auto start = path.end();
      do {
        std::size_t parent = n;
        for (const auto& condition : dimensions[path.back()].when)
          if (!placed[condition.parent]) parent = condition.parent;
        path.push_back(parent);
        start = std::find(path.begin(), path.end() - 1, parent);
      } while (start == path.end() - 1);
      std::string text;
      for (auto p = start; p != path.end(); ++p) text += (text.empty() ? "'" : " -> '") + dimensions[*p].name + "'";
      fail_dimension(dimensions[*start].name, "its conditions form a cycle ({}): remove one of them", text);
    }
    placed[next] = true;
    order.push_back(next);
  }
  return order;
}

Condition resolve(const std::string& name, const ConditionDraft& draft, std::size_t index,
                  const DimensionDraft& parent) {
  Condition condition;
  condition.parent = index;
  if (!draft.range) {
    if (draft.values.empty())
      fail_dimension(name, "its condition on '{}' lists no value: give at least one", parent.name);
    for (const Value& value : draft.values) {
      std::string why;
      const double x = find_coordinate(parent, value, why);
      if (!is_active(x))
        fail_dimension(name, "its condition is '{}' = {}, which can never be: '{}' must be {}", parent.name,
                       to_string(value), parent.name, why);
      if (parent.info.kind == DomainKind::real && parent.info.quantum == 0 && parent.info.lower < parent.info.upper)
        fail_dimension(name, "its condition is '{}' = {}, but a real number hardly ever takes one value: use a range",
                       parent.name, to_string(value));
      condition.values.push_back(x);
    }
    std::sort(condition.values.begin(), condition.values.end());
    condition.values.erase(std::unique(condition.values.begin(), condition.values.end()), condition.values.end());
    return condition;
  }
  if (!(draft.lower <= draft.upper))
    fail_dimension(name, "its condition on '{}' has the range [{}, {}]: the first number must not be above the second",
                   parent.name, draft.lower, draft.upper);
  if (!parent.options.empty()) {  // a range over options selects those that are numbers in it
    for (std::size_t i = 0; i < parent.options.size(); ++i) {
      const Value& option = parent.options[i];
      if (compare_numbers(option, draft.lower) >= 0 && compare_numbers(option, draft.upper) <= 0)
        condition.values.push_back(static_cast<double>(i));
    }
    if (condition.values.empty())
      fail_dimension(name, "its condition is '{}' between {} and {}, which none of its options is", parent.name,
                     draft.lower, draft.upper);
    return condition;
  }
  condition.range = true;
  condition.lower = draft.lower;
  condition.upper = draft.upper;
  if (parent.info.kind != DomainKind::derived) {
    const double first = DomainPrior(parent.info).snap(std::max(draft.lower, parent.info.lower));
    const bool met = draft.lower <= parent.info.upper && draft.upper >= parent.info.lower &&
                     (parent.info.quantum == 0 || first >= draft.lower || first + parent.info.quantum <= draft.upper) &&
                     (parent.info.quantum == 0 || first <= draft.upper);
    if (!met)
      fail_dimension(name, "its condition is '{}' between {} and {}, which can never be: '{}' lies in [{}, {}]",
                     parent.name, draft.lower, draft.upper, parent.name, parent.info.lower, parent.info.upper);
  }
  return condition;
}

void merge(const std::string& name, std::vector<Condition>& all, Condition next, const DimensionDraft& parent) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const Condition& c) { return c.parent == next.parent; });
  if (same == all.end()) {
    all.push_back(std::move(next));
    return;
  }
  if (same->range && next.range) {
    same->lower = std::max(same->lower, next.lower);
    same->upper = std::min(same->upper, next.upper);
  } else {
    if (same->range) std::swap(*same, next);
    std::erase_if(same->values, [&](double x) { return !next.holds(x); });
  }
  if (same->range ? same->lower > same->upper : same->values.empty())
    fail_dimension(name, "its conditions on '{}' exclude each other: they can never hold together", parent.name);
}

double accept(const Dimension& dimension, double x) {
  if (!std::isfinite(x)) return inactive;
  const double snapped = dimension.domain_prior.snap(x);
  const double slack = 1e-6 * std::max(std::fabs(x), std::fabs(snapped));
  return std::fabs(snapped - x) <= slack ? snapped : inactive;
}

UserPrior resolve_prior(const Dimension& dimension) {
  const std::string& name = dimension.name;
  const DomainInfo& info = dimension.info;
  const auto& beliefs = dimension.beliefs;
  if (beliefs.empty()) return {};
  if (info.grid) fail_dimension(name, "it has a prior, but every value of a grid is tried: remove the prior");
  if (info.kind == DomainKind::constant || info.kind == DomainKind::derived)
    fail_dimension(name, "it has a prior, but a {} parameter is not searched: remove the prior",
                   info.kind == DomainKind::constant ? "constant" : "derived");
  const auto coordinate = [&](const Value& value) {
    std::string why;
    const double x = find_coordinate(dimension, value, why);
    if (!is_active(x))
      fail_dimension(name, "its prior is {}, which it can never be: it must be {}", to_string(value), why);
    return x;
  };
  if (info.kind != DomainKind::categorical) {
    if (beliefs.size() > 1) fail_dimension(name, "it has {} priors: keep one, and widen its spread", beliefs.size());
    constexpr double usual = 0.25, least = 1e-3, most = 100;
    const double spread = beliefs[0].amount.value_or(usual);
    if (!(spread >= least && spread <= most))
      fail_dimension(name, "the spread of its prior is {}: it must be from {} to {}, as a share of the range", spread,
                     least, most);
    return {dimension.probability(coordinate(beliefs[0].value)), spread};
  }
  constexpr double favour = 4;  // compared with each other option, if no probability is given
  std::vector<double> weights(info.options, 1.0);
  std::vector<bool> given(info.options, false);
  double total = 0;
  for (const auto& belief : beliefs) {
    const auto option = static_cast<std::size_t>(coordinate(belief.value));
    if (weights[option] != 1.0 || given[option])
      fail_dimension(name, "its prior on {} is given twice: remove one", to_string(belief.value));
    if (!belief.amount) {
      weights[option] = favour;
      continue;
    }
    if (!(*belief.amount > 0 && *belief.amount <= 1))
      fail_dimension(name, "its prior on {} is {}: it must be a probability above 0, at most 1",
                     to_string(belief.value), *belief.amount);
    weights[option] = *belief.amount;
    given[option] = true;
    total += *belief.amount;
  }
  double others = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) others += given[i] ? 0.0 : weights[i];
  constexpr double slack = 1e-6;
  if (others == 0 ? std::fabs(total - 1) > slack : total > 1 - slack)
    fail_dimension(
        name, "the probabilities of its prior add up to {}{}", total,
        others == 0 ? ": they must add up to 1" : ", which leaves nothing for its other options: lower them");
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] *= given[i] ? (others == 0 ? 1 / total : 1.0) : (1 - total) / others;
  return UserPrior(std::move(weights));
}

void add_constraints(SpaceModel& model, std::vector<Constraint> constraints) {
  std::unordered_set<std::string_view> seen;
  for (const auto& constraint : constraints) {
    if (constraint.name.empty()) fail(Errc::space, "a constraint has an empty name: give it one for messages");
    if (!seen.insert(constraint.name).second)
      fail(Errc::space, "constraint '{}': this name is given twice: rename one of the two", constraint.name);
  }
  model.constraints = std::move(constraints);
}

std::shared_ptr<SpaceModel> build_model(std::vector<DimensionDraft> drafts) {
  const std::size_t n = drafts.size();
  constexpr std::size_t most = 10'000;
  if (n > most) fail(Errc::space, "the space has {} parameters: at most {} are possible", n, most);
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t d = 0; d < n; ++d) {
    check_name(drafts[d].name);
    if (!index.emplace(drafts[d].name, d).second)
      fail_dimension(drafts[d].name, "this name is given twice: rename one of the two");
    check_domain(drafts[d]);
  }
  // Conditional dimensions may share a member: an Adam's and an SGD's learning rate.
  std::unordered_map<std::ptrdiff_t, std::size_t> setter;
  for (std::size_t d = 0; d < n; ++d)
    if (drafts[d].member && drafts[d].conditions.empty())
      if (const auto [other, first] = setter.emplace(*drafts[d].member, d); !first)
        fail_dimension(drafts[d].name, "it sets the same member of the struct as '{}': name another member",
                       drafts[other->second].name);
  std::vector<Dimension> dimensions(n);
  for (std::size_t d = 0; d < n; ++d)
    for (const auto& draft : drafts[d].conditions) {
      const std::string& name = drafts[d].name;
      const auto found = index.find(draft.parent);
      if (found == index.end())
        fail_dimension(name, "its condition is on '{}', which is no parameter of this space{}", draft.parent,
                       suggestion(draft.parent, names_of(drafts)));
      const std::size_t parent = found->second;
      if (parent == d) fail_dimension(name, "its condition is on itself: name another parameter");
      merge(name, dimensions[d].when, resolve(name, draft, parent, drafts[parent]), drafts[parent]);
    }
  for (std::size_t d = 0; d < n; ++d) {
    static_cast<DimensionDraft&>(dimensions[d]) = std::move(drafts[d]);
    dimensions[d].domain_prior = DomainPrior(dimensions[d].info);
    dimensions[d].prior = resolve_prior(dimensions[d]);
  }

  const auto order = drawing_order(dimensions);
  std::vector<std::size_t> place(n);
  for (std::size_t i = 0; i < n; ++i) place[order[i]] = i;
  auto model = std::make_shared<SpaceModel>();
  model->declared = place;
  for (const std::size_t d : order) {
    for (auto& condition : dimensions[d].when) condition.parent = place[condition.parent];
    model->has_prior = model->has_prior || !dimensions[d].prior.empty();
    model->dimensions.push_back(std::move(dimensions[d]));
  }
  std::uint64_t combinations = 1;
  for (std::size_t d = 0; d < n; ++d) {
    model->by_name.push_back(d);
    const auto& info = model->dimensions[d].info;
    if (!info.grid) continue;
    model->grid.push_back(d);
    if (__builtin_mul_overflow(combinations, std::uint64_t{info.options}, &combinations))
      fail_dimension(model->dimensions[d].name, "the grid has more combinations than can be counted: sample instead");
  }
  std::sort(model->by_name.begin(), model->by_name.end(),
            [&](std::size_t a, std::size_t b) { return model->dimensions[a].name < model->dimensions[b].name; });
  return model;
}

DimensionError::DimensionError(std::string_view dimension, const std::string& what)
    : Error(Errc::space, detail::format("parameter '{}': {}", dimension, what)), dimension_(dimension) {}

}  // namespace hypertune::inline v0::detail
