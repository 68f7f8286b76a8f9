// Reads search spaces from YAML.
#pragma once

#include <hypertune/config/expression.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/space_keys.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/space/detail/build.hpp>
#include <hypertune/space/detail/dimension_error.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/dim.hpp>
#include <hypertune/space/domain.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Reads the value of `space:` of a sweep, in the grammar that SearchSpace::describe() prints:
/// ```yaml
/// lr:        {log_uniform: [1.0e-4, 1.0e-1]}
/// dropout:   {uniform: [0, 0.5], quantum: 0.1}             # or {quantized: [0, 0.5, 0.1]}
/// hidden:    {log_int: [16, 512]}                          # integer: [lower, upper], both included
/// noise:     {normal: [0, 1], bounds: [-2, 2]}             # mean, standard deviation; log_normal too
/// optimizer: {choice: [sgd, adam]}
/// size:      {ordinal: [small, medium, large]}
/// batch:     {discrete: [16, 32, 64]}
/// nesterov:  {boolean: [false, true], when: {optimizer: sgd}}
/// depth:     {grid: [1, 2, 3]}                             # every value is tried
/// momentum:  {uniform: [0.5, 0.99], when: {optimizer: [sgd, rmsprop], depth: {between: [2, 3]}}}
/// layers:    {derived: "round(hidden / 8)"}                # computed from parameters declared before it
/// dropped:   {derived: "integer(0, layers)"}               # … or drawn: uniform(low, high), integer(low, high)
/// epochs:    81                                            # a constant
/// decay:     {log_uniform: [1.0e-6, 1], prior: 1.0e-3}     # expected to be good; or {value: 1.0e-3, spread: 0.1}
/// schedule:  {choice: [cosine, step], prior: cosine}       # or {cosine: 0.8}, a probability
/// model:                                                   # parameters model.width and model.heads
///   width: {integer: [8, 64], quantum: 8}
///   heads: {integer: [1, 8]}
/// constraints: ["hidden * depth <= 1024", "model.width >= model.heads"]
/// ```
/// Conditions and constraints use full names of parameters ("model.width") everywhere. `when:` inside a group such as
/// `model:` holds for the whole group. Anything else is an Error of kind `input` that starts with file and line.
/// `complain`, if given, is called with the Errors of the single parameters first.
SearchSpace space_from_yaml(const Node& node, const std::function<void(const Error&)>& complain = {});

namespace detail {

class SpaceReader {
 public:
  static inline const std::vector<std::string_view> words = [] {
    std::vector<std::string_view> all;
    for (const auto& domain : domain_words()) all.push_back(domain.word);
    return all;
  }();

  explicit SpaceReader(std::function<void(const Error&)> complain = {}) : complain_(std::move(complain)) {}

  SearchSpace read(const Node& root) {
    const auto other_than_rules = [](const auto& entry) { return entry.first != "constraints"; };
    const auto entries = root.is_null() ? decltype(root.entries())() : root.entries();
    if (std::none_of(entries.begin(), entries.end(), other_than_rules))
      root.fail("{} is empty: write parameters, such as  lr: {{log_uniform: [0.0001, 0.1]}}", root.title());
    std::vector<Node> rules;
    for (const auto& [key, value] : entries)
      part([&, &key = key, &value = value] {
        if (key == "constraints")
          rules = constraint_nodes(value);
        else
          dimension(key, value, {});
      });
    const auto placed = [&](const DimensionError& error) {
      const auto place = places_.find(error.dimension());
      return (place == places_.end() ? root : place->second).error(error.what());
    };
    for (const auto& draft : drafts_) {
      if (!complain_) break;  // build_model() throws the first error
      try {
        check_domain(draft);
      } catch (const DimensionError& error) {
        complain_(placed(error));
        if (!first_) first_ = std::make_exception_ptr(placed(error));
      }
    }
    if (first_) std::rethrow_exception(first_);
    std::shared_ptr<SpaceModel> model;
    try {
      model = build_model(std::move(drafts_));
    } catch (const DimensionError& error) { throw placed(error); } catch (const Error& error) {
      root.fail("{}", error.what());
    }
    for (const auto& [name, node] : derived_) compute(*model, name, node);
    std::vector<Constraint> constraints;
    for (const auto& rule : rules) {
      const auto text = rule.as<std::string>();
      try {
        constraints.push_back({text, [expression = Expression(text, *model)](const SpaceModel&, const Point& point) {
                                 return expression.holds(point);
                               }});
      } catch (const Error& error) { rule.fail("{}", error.what()); }
    }
    try {
      add_constraints(*model, std::move(constraints));
    } catch (const Error& error) { root.fail("{}", error.what()); }
    return SearchSpace(std::move(model));
  }

 private:
  using Conditions = std::vector<ConditionDraft>;

  /// Reads one of several parts, of which each may be wrong.
  template <class Read>
  void part(Read&& read) {
    try {
      read();
    } catch (const Error& error) {
      if (!complain_) throw;
      complain_(error);
      if (!first_) first_ = std::current_exception();
    }
  }

  static const DomainWord* domain_of(std::string_view word) {
    for (const auto& domain : domain_words())
      if (domain.word == word) return &domain;
    return nullptr;
  }
  static bool is_word(std::string_view text) { return domain_of(text) != nullptr; }

  static std::vector<Node> constraint_nodes(const Node& node) {
    if (node.is_scalar()) return {node};
    return node.items();
  }

  /// Reads a parameter or a group of parameters.
  void dimension(const std::string& name, const Node& node, Conditions conditions) {
    if (node.is_null())
      node.fail("parameter '{}' is empty: write a domain, such as {{uniform: [0, 1]}}, or a value", name);
    if (node.is_list())
      node.fail(
          "parameter '{}' is a bare list: write {{choice: [...]}} to sample one of its values, {{grid: [...]}} to "
          "try every one, or {{uniform: [lower, upper]}} for a range{}",
          name, misspelt(name));
    if (node.is_scalar()) {
      const auto text = node.as<std::string>();
      if (is_word(text) && text != "int" && text != "constant")
        node.fail("parameter '{}' is the bare word '{}': write {{{}: [...]}}, or {{constant: {}}} if the text is meant",
                  name, text, text, text);
      return add(name, node, constant(node.scalar()), std::move(conditions));
    }
    const auto entries = node.entries();
    const auto domain = std::find_if(entries.begin(), entries.end(),
                                     [](const auto& entry) { return is_word(entry.first) && !entry.second.is_map(); });
    if (domain == entries.end()) return group(name, node, std::move(conditions));

    std::vector<std::string_view> known{domain->first, "when", "prior"};
    const DomainWord& info = *domain_of(domain->first);
    if (info.quantum) known.emplace_back("quantum");
    if (info.bounds) known.emplace_back("bounds");
    for (const auto& [key, value] : entries)
      if (key != domain->first && is_word(key))
        value.fail("parameter '{}' has two domains, '{}' and '{}': keep one", name, domain->first, key);
    node.only(known);
    if (const auto when = node.find("when")) read_conditions(*when, conditions);
    listed_domain(name, node, domain->first, domain->second, std::move(conditions));
    if (const auto prior = node.find("prior")) drafts_.back().beliefs = beliefs(*prior, drafts_.back());
  }

  /// A prior: a value; for a number also {value: …, spread: …}; for a choice also {option: probability, …}.
  static std::vector<PriorDraft> beliefs(const Node& node, const DimensionDraft& draft) {
    if (node.is_scalar()) return {{node.scalar(), std::nullopt}};
    const bool choice = draft.info.kind == DomainKind::categorical;
    if (!node.is_map() || node.size() == 0)
      node.fail("{} must be a value that is believed good, or {}, not {}", node.title(),
                choice ? "{option: probability, …}" : "{value: …, spread: …}", node.kind_text());
    std::vector<PriorDraft> result;
    if (!choice) {
      node.only({"value", "spread"});
      result.push_back({node["value"].scalar(), std::nullopt});
      if (const auto spread = node.find("spread")) result.back().amount = spread->as<double>();
      return result;
    }
    for (const auto& [option, amount] : node.entries()) {
      Value value = option;  // a key has no type: find the option that is written like it, or is the same number
      for (const auto& known : draft.options)
        if (same_value(known, plain_value(option))) value = known;
      for (const auto& known : draft.options)
        if (to_string(known) == option) value = known;
      result.push_back({std::move(value), std::nullopt});
      if (!amount.is_scalar() || amount.scalar() != Value(std::string("favoured")))
        result.back().amount = amount.as<double>();
    }
    return result;
  }

  static std::string misspelt(std::string_view name) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) return "";
    const auto meant = nearest(name.substr(dot + 1), words);
    return meant.empty() ? ""
                         : fmt::format("; if '{}' is to be a domain: did you mean '{}'?", name.substr(dot + 1), meant);
  }

  void group(const std::string& name, const Node& node, Conditions conditions) {
    if (const auto when = node.find("when")) read_conditions(*when, conditions);
    bool any = false;
    for (const auto& [key, value] : node.entries()) {
      if (key == "when") continue;
      if (!value.is_map())
        if (const auto meant = nearest(key, words);
            !meant.empty() && (value.is_list() || node.size() == 1 || node.has("when")))
          value.fail("parameter '{}' has the unknown domain '{}': did you mean '{}'?", name, key, meant);
      any = true;
      part([&, &key = key, &value = value] { dimension(name + "." + key, value, conditions); });
    }
    if (!any) node.fail("parameter '{}' has no domain: write one, such as {{uniform: [0, 1]}}", name);
  }

  void listed_domain(const std::string& name, const Node& node, std::string_view word, const Node& list,
                     Conditions conditions) {
    const auto add_as = [&](const auto& domain) { add(name, node, domain, std::move(conditions)); };
    const auto quantum = node.find("quantum");
    const std::string_view items = domain_of(word)->items;
    const auto real = [&](const auto& domain) {
      quantum ? add_as(domain.quantum(quantum->as<double>())) : add_as(domain);
    };
    if (word == "uniform") return real(std::apply(uniform, reals<2>(list, items)));
    if (word == "log_uniform") return real(std::apply(log_uniform, reals<2>(list, items)));
    if (word == "quantized") return add_as(std::apply(quantized, reals<3>(list, items)));
    if (word == "quantized_log") return add_as(std::apply(quantized_log, reals<3>(list, items)));
    if (word == "integer" || word == "int" || word == "log_int") {
      const auto ends = exactly(list, 2, items);
      const auto step = quantum ? quantum->as<std::int64_t>() : 1;
      const auto lower = ends[0].as<std::int64_t>();
      const auto upper = ends[1].as<std::int64_t>();
      return add_as(word == "log_int" ? log_int(lower, upper, step) : integer(lower, upper, step));
    }
    if (word == "normal" || word == "log_normal" || word == "quantized_normal") {
      Normal domain = word == "normal"       ? std::apply(hypertune::normal, reals<2>(list, items))
                      : word == "log_normal" ? std::apply(log_normal, reals<2>(list, items))
                                             : std::apply(quantized_normal, reals<3>(list, items));
      if (quantum) domain = domain.quantum(quantum->as<double>());
      if (const auto bounds = node.find("bounds")) {
        const auto [lower, upper] = reals<2>(*bounds, "lower, upper");
        domain = domain.truncated(lower, upper);
      }
      return add_as(domain);
    }
    if (word == "boolean" || word == "bool") {
      if (list.is_list() && list.size() != 0) {
        const auto both = exactly(list, 2, "false, true");
        if (both[0].as<bool>() == both[1].as<bool>()) list.fail("{} must be [false, true]", list.title());
      } else if (list.is_scalar()) {
        list.fail("{} must be [false, true]; write {{constant: {}}} for a fixed value", list.title(),
                  list.as<std::string>());
      }
      return add_as(boolean());
    }
    if (word == "constant") {
      if (!list.is_scalar()) list.fail("{} must be one value, not {}", list.title(), list.kind_text());
      return add_as(constant(list.scalar()));
    }
    if (word == "derived") {
      if (!list.is_scalar())
        list.fail("{} must be an expression over the parameters before it, such as \"2 * width\", not {}", list.title(),
                  list.kind_text());
      derived_.emplace_back(name, list);
      return add_as(derived([](const Params&) { return 0.0; }));  // replaced by compute()
    }
    add_as(options(word, list));
  }

  static Choices<Value> options(std::string_view word, const Node& list) {
    std::vector<Value> values;  // each as it is written: of [1, 2.5] the first is a whole number, of [1.0, 2.5] none is
    bool numbers = true;
    for (const auto& item : list.items()) {
      values.push_back(item.scalar());
      numbers = numbers && !std::isnan(number(values.back()));
      if (word == "discrete" && !numbers) item.fail("{} must be a number, not {}", item.title(), item.kind_text());
    }
    const auto less = [](const Value& a, const Value& b) { return compare_numbers(a, b) < 0; };
    if (word == "discrete") std::sort(values.begin(), values.end(), less);
    const bool ordered = word == "ordinal" || word == "discrete" ||
                         (word == "grid" && numbers && std::is_sorted(values.begin(), values.end(), less));
    return Choices<Value>(word, ordered ? DomainKind::ordinal : DomainKind::categorical, std::move(values),
                          word == "grid");
  }

  static std::vector<Node> exactly(const Node& list, std::size_t n, std::string_view what) {
    if (!list.is_list() || list.size() != n)
      list.fail("{} must be [{}], not {}", list.title(), what,
                list.is_list() ? fmt::format("a list of {}", list.size()) : list.kind_text());
    return list.items();
  }
  template <std::size_t n>
  static std::array<double, n> reals(const Node& list, std::string_view what) {
    const auto items = exactly(list, n, what);
    std::array<double, n> numbers{};
    for (std::size_t i = 0; i < n; ++i) numbers[i] = items[i].template as<double>();
    return numbers;
  }

  static void read_conditions(const Node& when, Conditions& conditions) {
    if (!when.is_map() || when.size() == 0)
      when.fail(
          "{} must be a map such as {{optimizer: sgd}}, {{optimizer: [sgd, adam]}} or {{layers: {{between: [2, 4]}}}}",
          when.title());
    for (const auto& [parent, value] : when.entries()) {
      ConditionDraft condition;
      condition.parent = parent;
      if (value.is_map()) {
        value.only({"between"});
        const auto [lower, upper] = reals<2>(value["between"], "lower, upper");
        condition.range = true;
        condition.lower = lower;
        condition.upper = upper;
      } else if (value.is_list()) {
        for (const auto& item : value.items()) condition.values.push_back(item.scalar());
      } else {
        condition.values.push_back(value.scalar());
      }
      conditions.push_back(std::move(condition));
    }
  }

  // Expressions are parsed after all parameters are known.
  static void compute(SpaceModel& model, const std::string& name, const Node& node) {
    const auto d = *model.find(name);
    auto& dimension = model.dimensions[d];
    const auto text = node.as<std::string>();
    try {
      const auto expression = std::make_shared<const Expression>(Expression::computing(text, model, d));
      dimension.type = expression->whole() ? ValueType::integer : ValueType::real;
      dimension.formula = !expression->draws();
      dimension.grammar = "derived: " + detail::quoted(text);
      dimension.derive = [space = &model, expression, name, text](const Params& earlier, Rng& rng) {
        Point point(space->dimensions.size(), inactive);
        for (const std::size_t p : expression->mentioned()) {
          const Value* value = earlier.find(space->dimensions[p].name);
          if (value == nullptr)
            fail(Errc::space, "parameter '{}' is derived from '{}', which is not active: give it the same condition",
                 name, space->dimensions[p].name);
          point[p] = space->coordinate(p, *value);
        }
        const double x = expression->value(point, rng);
        if (!std::isfinite(x))
          fail(Errc::space, "parameter '{}': '{}' is {} where {}: it must be a finite number", name, text, x, earlier);
        if (expression->whole() && std::fabs(x) > Expression::exact_limit)
          fail(Errc::space, "parameter '{}': '{}' is {} where {}: whole numbers that are computed must be within ±2^53",
               name, text, x, earlier);
        return x;
      };
    } catch (const Error& error) { node.fail("parameter '{}': {}", name, error.what()); }
  }

  template <class D>
  void add(const std::string& name, const Node& node, const D& domain, Conditions conditions) {
    places_.emplace(name, node);
    auto draft = make_draft(name, domain);
    draft.conditions = std::move(conditions);
    if (name != node.path() && draft.name.empty()) node.fail("a parameter has an empty name: give it one");
    drafts_.push_back(std::move(draft));
  }

  std::function<void(const Error&)> complain_;
  std::exception_ptr first_;  // the first error, if there is complain_
  std::vector<DimensionDraft> drafts_;
  std::vector<std::pair<std::string, Node>> derived_;
  std::map<std::string, Node> places_;
};

}  // namespace detail

inline SearchSpace space_from_yaml(const Node& node, const std::function<void(const Error&)>& complain) {
  return detail::SpaceReader(complain).read(node);
}

}  // namespace hypertune::inline v0
