// The words of `space:`, as a table for its reader, docs/sweep.md and `hypertune schema`.
#pragma once

#include <hypertune/config/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// A domain of `space:`.
struct DomainWord {
  std::string_view word;
  std::string_view items = {};           ///< "lower, upper": a list of two items; empty: checked by the reader
  bool whole = false;                    ///< the items are whole numbers
  bool quantum = false, bounds = false;  ///< which keys are allowed besides `when` and `prior`
  std::string_view text;

  std::size_t size() const { return static_cast<std::size_t>(std::count(items.begin(), items.end(), ',')) + 1; }
};

inline const std::vector<DomainWord>& domain_words() {
  static const std::vector<DomainWord> all{
      {.word = "uniform", .items = "lower, upper", .quantum = true, .text = "a number, each as likely as the other"},
      {.word = "log_uniform",
       .items = "lower, upper",
       .quantum = true,
       .text = "a number, each order of magnitude as likely as the other"},
      {.word = "quantized", .items = "lower, upper, quantum", .text = "`uniform` in steps of `quantum`"},
      {.word = "quantized_log", .items = "lower, upper, quantum", .text = "`log_uniform` in such steps"},
      {.word = "integer",
       .items = "lower, upper",
       .whole = true,
       .quantum = true,
       .text = "a whole number, both ends included"},
      {.word = "int",
       .items = "lower, upper",
       .whole = true,
       .quantum = true,
       .text = "a whole number, both ends included"},
      {.word = "log_int",
       .items = "lower, upper",
       .whole = true,
       .quantum = true,
       .text = "the same, each order of magnitude as likely"},
      {.word = "normal",
       .items = "mean, standard deviation",
       .quantum = true,
       .bounds = true,
       .text = "normally distributed"},
      {.word = "log_normal",
       .items = "mean, standard deviation",
       .quantum = true,
       .bounds = true,
       .text = "its logarithm is"},
      {.word = "quantized_normal",
       .items = "mean, standard deviation, quantum",
       .bounds = true,
       .text = "`normal` in steps of `quantum`"},
      {.word = "choice", .text = "one of these, in no order"},
      {.word = "ordinal", .text = "one of these, in this order"},
      {.word = "discrete", .text = "one of these numbers"},
      {.word = "boolean", .text = "yes or no"},
      {.word = "bool", .text = "yes or no"},
      {.word = "grid", .text = "every one of these is tried, with each sample"},
      {.word = "constant", .text = "always this (the same as the bare value)"},
      {.word = "derived", .text = "computed from parameters before it, or drawn: `\"integer(1, layers)\"`"}};
  return all;
}

inline const Keys& parameter_keys() {
  static const Keys between{key("between", shape::list(shape::number()), "a range of its values")};
  static const Keys keys{
      key("when",
          shape::filled(
              shape::entries(shape::either({shape::scalar(), shape::list(shape::scalar()), shape::map(between)}))),
          "the parameter is there only then: `{optimizer: sgd}`, `{optimizer: [sgd, adam]}`, `{layers: {between: [2, "
          "4]}}`"),
      key("prior", shape::either({shape::scalar(), shape::filled(shape::entries(shape::scalar()))}),
          "what you believe to be good: a value, `{value: 1e-3, spread: 0.1}`, or of a choice `{adam: 0.8}`"),
      key("quantum", shape::number(above(0)), "the step between values of a number"),
      key("bounds", shape::list(shape::number()), "the bounds at which a normal distribution is truncated")};
  return keys;
}

}  // namespace hypertune::inline v0::detail
