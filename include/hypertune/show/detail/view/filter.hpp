// Filter: selects trials, as in `state:running lr<0.01 optimizer=adam`.
#pragma once

#include <hypertune/show/detail/view/experiment_view.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::view {

/// A part of a filter, as it was written.
struct FilterTerm {
  enum class Kind { state, host, trial, note, compare, word };
  enum class Op { equal, not_equal, less, less_equal, greater, greater_equal };
  Kind kind = Kind::word;
  std::string name;  ///< of a comparison or a note
  Op op = Op::equal;
  std::string text;              ///< the value to compare with, or the word
  std::optional<double> number;  ///< `text` as a number, if it is one
  TrialId first = 0, last = 0;   ///< of trial:3-10
  std::size_t at = 0;            ///< its position in the filter, from 0
};

/// Terms, separated by spaces: `state:STATE`, `host:NAME`, `trial:3` or `trial:3-10`, `note:KEY`, NAME<op>VALUE with =
/// != < <= > >=, or a bare word. Text with special characters must be in quotes, with \" and \\ as escapes. At most
/// 65,536 bytes and 1,000 terms. Error of kind `input`, which says what is wrong and at which character.
std::vector<FilterTerm> parse_filter(std::string_view text);

/// A filter that is bound to an experiment's names. Valid until the view changes.
class Filter {
 public:
  /// Error of kind `input` for a name that is neither a parameter nor a metric, and as in parse_filter().
  Filter(const ExperimentView& view, std::string_view text);
  /// Whether all terms hold for the trial at this index of rows().
  bool matches(std::size_t place) const;
  bool empty() const { return terms_.empty(); }

 private:
  struct Bound {
    FilterTerm term;
    std::size_t column = ParamColumns::nowhere;
    std::optional<std::uint32_t> metric;
    std::vector<bool> hosts;  // by host number
    TrialState state = TrialState::pending;
  };
  bool holds(const Bound& bound, std::size_t place) const;

  const ExperimentView* view_;
  std::vector<Bound> terms_;
};

}  // namespace hypertune::inline v0::view
