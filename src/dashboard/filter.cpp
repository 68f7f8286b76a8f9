#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/detail/view/filter.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hypertune::inline v0::view {

namespace {

constexpr std::size_t max_bytes = 65536, max_terms = 1000;

[[noreturn]] void wrong(std::size_t at, std::string_view what) {
  fail(Errc::input, "the filter is not understood at character {}: {}", at + 1, what);
}

bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool special(char c) { return c == '<' || c == '>' || c == '=' || c == '!'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<FilterTerm> terms() {
    std::vector<FilterTerm> terms;
    for (;;) {
      while (at_ < text_.size() && space(text_[at_])) ++at_;
      if (at_ == text_.size()) return terms;
      if (terms.size() == max_terms) wrong(at_, fmt::format("it has more than {} terms", max_terms));
      terms.push_back(term());
    }
  }

 private:
  FilterTerm term() {
    FilterTerm term;
    term.at = at_;
    const bool quoted = text_[at_] == '"';
    std::string first = piece(true);
    if (at_ < text_.size() && text_[at_] == ':' && !quoted) {
      ++at_;
      return keyed(std::move(term), first);
    }
    if (at_ == text_.size() || space(text_[at_])) {
      term.text = std::move(first);
      return term;
    }
    term.kind = FilterTerm::Kind::compare;
    if (first.empty()) wrong(term.at, "a name is missing before the comparison");
    term.name = std::move(first);
    term.op = op();
    const std::size_t value = at_;
    if (at_ == text_.size() || space(text_[at_])) wrong(value, fmt::format("a value is missing after '{}'", term.name));
    const bool text = text_[at_] == '"';
    term.text = piece(false);
    if (at_ < text_.size() && !space(text_[at_])) wrong(at_, "a space is expected there, or quotes round the value");
    if (!text) term.number = number(term.text);
    return term;
  }

  FilterTerm keyed(FilterTerm term, const std::string& key) {
    if (at_ == text_.size() || space(text_[at_])) wrong(at_, fmt::format("a value is missing after '{}:'", key));
    term.text = piece(false);
    if (at_ < text_.size() && !space(text_[at_])) wrong(at_, "a space is expected there, or quotes round the value");
    if (key == "state") {
      term.kind = FilterTerm::Kind::state;
    } else if (key == "host") {
      term.kind = FilterTerm::Kind::host;
    } else if (key == "note") {
      term.kind = FilterTerm::Kind::note;
      term.name = term.text;
    } else if (key == "trial") {
      term.kind = FilterTerm::Kind::trial;
      const auto dash = term.text.find('-');
      const auto first = whole(std::string_view(term.text).substr(0, dash));
      const auto last = dash == std::string::npos ? first : whole(std::string_view(term.text).substr(dash + 1));
      if (!first || !last) wrong(term.at, "trial: is followed by a number, or by two with a '-' between them");
      term.first = *first;
      term.last = *last;
    } else {
      wrong(term.at,
            fmt::format("there is no '{}:', only state:, host:, trial: and note:; put quotes round a name that "
                        "has a colon",
                        key));
    }
    return term;
  }

  // A text in quotes, or up to a space; a name also ends at a comparison or a colon.
  std::string piece(bool name) {
    std::string out;
    if (text_[at_] != '"') {
      while (at_ < text_.size() && !space(text_[at_]) && text_[at_] != '"' &&
             !(name && (special(text_[at_]) || text_[at_] == ':')))
        out += text_[at_++];
      return out;
    }
    const std::size_t open = at_++;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_];
    }
    if (at_ == text_.size()) wrong(open, "these quotes are not closed");
    ++at_;
    return out;
  }

  FilterTerm::Op op() {
    using Op = FilterTerm::Op;
    static constexpr std::pair<std::string_view, Op> all[] = {
        {"<=", Op::less_equal}, {">=", Op::greater_equal}, {"!=", Op::not_equal}, {"==", Op::equal},
        {"<", Op::less},        {">", Op::greater},        {"=", Op::equal}};
    for (const auto& [text, op] : all)
      if (text_.substr(at_).starts_with(text)) {
        at_ += text.size();
        return op;
      }
    wrong(at_, "a comparison is expected there: = != < <= > >=");
  }

  static std::optional<TrialId> whole(std::string_view text) {
    const auto number = detail::parse_number<TrialId>(text);
    return number && *number >= 0 ? number : std::nullopt;
  }
  static std::optional<double> number(const std::string& text) {
    const auto number = detail::parse_number<double>(text);
    return number && !std::isnan(*number) ? number : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

bool compare(FilterTerm::Op op, const auto& a, const auto& b) {
  switch (op) {
    case FilterTerm::Op::equal: return a == b;
    case FilterTerm::Op::not_equal: return !(a == b);
    case FilterTerm::Op::less: return a < b;
    case FilterTerm::Op::less_equal: return a <= b;
    case FilterTerm::Op::greater: return a > b;
    case FilterTerm::Op::greater_equal: return a >= b;
  }
  return false;
}

bool ordering(FilterTerm::Op op) { return op != FilterTerm::Op::equal && op != FilterTerm::Op::not_equal; }

}  // namespace

std::vector<FilterTerm> parse_filter(std::string_view text) {
  if (text.size() > max_bytes) fail(Errc::input, "the filter has {} bytes: at most {}", text.size(), max_bytes);
  return Parser(text).terms();
}

Filter::Filter(const ExperimentView& view, std::string_view text) : view_(&view) {
  for (auto& term : parse_filter(text)) {
    Bound bound;
    bound.term = std::move(term);
    if (bound.term.kind == FilterTerm::Kind::state) {
      bool known = false;
      for (int s = 0; s <= static_cast<int>(TrialState::failed); ++s)
        if (hypertune::to_string(static_cast<TrialState>(s)) == bound.term.text) {
          bound.state = static_cast<TrialState>(s);
          known = true;
        }
      if (!known)
        wrong(bound.term.at, fmt::format("there is no state '{}': pending, running, paused, completed, stopped, failed",
                                         bound.term.text));
    } else if (bound.term.kind == FilterTerm::Kind::host) {
      for (std::uint32_t h = 0; h < view.hosts(); ++h)
        bound.hosts.push_back(h > 0 && view.host_name(h) == bound.term.text);
    } else if (bound.term.kind == FilterTerm::Kind::compare) {
      bound.column = view.params().find(bound.term.name);
      bound.metric = view.metric(bound.term.name);
      if (bound.column != ParamColumns::nowhere) bound.metric.reset();
      if (bound.column == ParamColumns::nowhere && !bound.metric) {
        std::vector<std::string> names = view.results().metrics();
        for (std::size_t c = 0; c < view.params().size(); ++c) names.push_back(view.params().name(c));
        wrong(bound.term.at, fmt::format("'{}' is neither a parameter nor a metric{}", bound.term.name,
                                         detail::suggestion(bound.term.name, names)));
      }
      if (ordering(bound.term.op) && !bound.term.number)
        wrong(bound.term.at,
              fmt::format("'{}' is compared with '{}', which is no number", bound.term.name, bound.term.text));
    }
    terms_.push_back(std::move(bound));
  }
}

bool Filter::matches(std::size_t place) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Bound& bound) { return holds(bound, place); });
}

bool Filter::holds(const Bound& bound, std::size_t place) const {
  const TrialRow& row = view_->rows()[place];
  const FilterTerm& term = bound.term;
  switch (term.kind) {
    case FilterTerm::Kind::state: return row.state == bound.state;
    case FilterTerm::Kind::host: return row.host < bound.hosts.size() && bound.hosts[row.host];
    case FilterTerm::Kind::trial: return row.id >= term.first && row.id <= term.last;
    case FilterTerm::Kind::note: return view_->results().trial(row.id).attributes.contains(term.name);
    case FilterTerm::Kind::compare: {
      if (bound.metric) {
        const double value = view_->value(row, *bound.metric);
        if (!term.number)
          return (term.text == "NaN") == (term.op == FilterTerm::Op::equal) ? std::isnan(value) : !std::isnan(value);
        return compare(term.op, value, *term.number);
      }
      const Cell cell = view_->params().at(bound.column, place);
      if (cell.kind == Cell::Kind::absent) return false;
      if (cell.text != nullptr) return !ordering(term.op) && compare(term.op, *cell.text, term.text);
      if (cell.kind == Cell::Kind::flag && !term.number)
        return !ordering(term.op) &&
               compare(term.op, std::string_view(cell.number != 0 ? "true" : "false"), std::string_view(term.text));
      if (term.number) return compare(term.op, cell.number, *term.number);
      // In quotes, for example a choice among numbers.
      const std::string text =
          cell.kind == Cell::Kind::whole ? fmt::format("{:.0f}", cell.number) : fmt::format("{}", cell.number);
      return !ordering(term.op) && compare(term.op, text, term.text);
    }
    case FilterTerm::Kind::word: {
      for (std::size_t c = 0; c < view_->params().size(); ++c) {
        const Cell cell = view_->params().at(c, place);
        if (cell.text != nullptr && cell.text->find(term.text) != std::string::npos) return true;
      }
      if (row.state != TrialState::stopped && row.failures == 0 && row.state != TrialState::failed) return false;
      const auto cause = view_->results().trial(row.id).cause;
      return cause && cause->text.find(term.text) != std::string::npos;
    }
  }
  return false;
}

}  // namespace hypertune::inline v0::view
