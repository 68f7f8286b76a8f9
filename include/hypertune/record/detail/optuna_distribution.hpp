// Optuna's distributions, derived from the text of a space and the recorded values.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/space/params.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail::optuna {

/// A line of SearchSpace::describe(), as far as Optuna has an equivalent: `name: {word: [items], quantum: q, …}`.
struct SpaceLine {
  std::string name, word;
  std::vector<Value> items;
  double quantum = 0;
};

/// Reads what describe() writes and nothing more. Anything else is left out; the recorded values then decide.
class SpaceText {
 public:
  static std::vector<SpaceLine> read(std::string_view text) {
    std::vector<SpaceLine> lines;
    while (!text.empty()) {
      SpaceText line(take_until(text, '\n'));
      SpaceLine out;
      if (line.parse(out)) lines.push_back(std::move(out));
    }
    return lines;
  }

 private:
  explicit SpaceText(std::string_view text) : rest_(text) {}

  bool parse(SpaceLine& out) {
    const auto name = scalar();
    if (!name || !take(": {")) return false;
    out.name = hypertune::to_string(*name);
    const auto word = scalar();
    if (!word || !take(": ")) return false;
    out.word = hypertune::to_string(*word);
    if (take("[")) {
      while (!take("]")) {
        const auto item = scalar();
        if (!item) return false;
        out.items.push_back(*item);
        take(", ");
      }
    } else if (const auto item = scalar()) {
      out.items.push_back(*item);
    }
    if (take(", quantum: "))
      if (const auto quantum = scalar()) out.quantum = number(*quantum).value_or(0);
    return true;
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::optional<Value> scalar() {
    if (take("\"")) {
      std::string text;
      while (!rest_.empty() && rest_.front() != '"') {
        if (take("\\x") && rest_.size() >= 2) {
          text += from_hex(rest_.substr(0, 2)).value_or("");
          rest_.remove_prefix(2);
          continue;
        }
        take("\\");
        if (rest_.empty()) return std::nullopt;
        text += rest_.front();
        rest_.remove_prefix(1);
      }
      if (!take("\"")) return std::nullopt;
      return Value(std::move(text));
    }
    const std::size_t end =
        std::min({rest_.find(','), rest_.find(':'), rest_.find(']'), rest_.find('}'), rest_.size()});
    const std::string_view word = rest_.substr(0, end);
    if (word.empty()) return std::nullopt;
    rest_.remove_prefix(end);
    if (word == "true" || word == "false") return Value(word == "true");
    if (const auto whole = parse_number<std::int64_t>(word)) return Value(*whole);
    if (const auto real = parse_number<double>(word)) return Value(*real);
    return Value(std::string(word));
  }

 public:
  static std::optional<double> number(const Value& value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return std::nullopt;
  }

 private:
  std::string_view rest_;
};

/// Appends a value as Python writes it into JSON: NaN and Infinity are bare words, 1.0 stays a real number.
inline void append_python(std::string& out, const Value& value) {
  const auto* real = std::get_if<double>(&value);
  if (real == nullptr) return append_json(out, value);
  if (std::isnan(*real)) {
    out += "NaN";
  } else if (std::isinf(*real)) {
    out += *real > 0 ? "Infinity" : "-Infinity";
  } else {
    const std::size_t begin = out.size();
    append_number(out, *real);
    if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
  }
}

/// A parameter's distribution in Optuna. It starts from the parameter's line of the space, if there is one, and is then
/// extended by each recorded value: bounds grow and options are added until every value fits, because the space may
/// have changed during the experiment.
class Distribution {
 public:
  Distribution() = default;
  explicit Distribution(const SpaceLine& line) {
    const bool integer = line.word == "int" || line.word == "log_int";
    const bool real = line.word == "uniform" || line.word == "log_uniform";
    if (integer || real) {
      if (line.items.size() != 2) return;
      const auto low = SpaceText::number(line.items[0]), high = SpaceText::number(line.items[1]);
      if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high)) return;
      low_ = *low;
      high_ = *high;
      log_ = line.word.starts_with("log_") && *low > 0;
      step_ = log_ ? 0 : line.quantum;  // Optuna has no steps on a logarithmic scale
      whole_ = integer;
      categorical_ = !exact(line.items[0]) || !exact(line.items[1]);
    } else if (line.word == "choice" || line.word == "ordinal" || line.word == "constant") {
      categorical_ = true;
      for (const Value& item : line.items) add(item);
    } else if (line.word == "boolean") {
      categorical_ = true;
      add(false);
      add(true);
    }
  }

  void take(const Value& value) {
    if (!categorical_ && !exact(value)) {
      categorical_ = true;
      for (const Value& earlier : std::exchange(seen_, {})) add(earlier);
    }
    if (categorical_) return add(value);
    seen_.push_back(value);
    const double number = *SpaceText::number(value);
    whole_ = whole_ && std::holds_alternative<std::int64_t>(value);
    if (number < low_ || number > high_) step_ = 0;
    low_ = std::min(low_, number);
    high_ = std::max(high_, number);
    log_ = log_ && low_ > 0;
  }

  /// The value as stored in Optuna's table.
  double stored(const Value& value) const {
    if (!categorical_) return SpaceText::number(value).value_or(0);
    const auto found = places_.find(key(value));
    return static_cast<double>(found == places_.end() ? options_.size() : found->second);
  }

  std::string json() const {
    if (categorical_) {
      std::string choices;
      for (const Value& option : options_) append_python(choices += choices.empty() ? "" : ", ", option);
      return detail::format(R"({{"name": "CategoricalDistribution", "attributes": {{"choices": [{}]}}}})", choices);
    }
    if (whole_)
      return detail::format(
          R"({{"name": "IntDistribution", "attributes": {{"log": {}, "step": {}, "low": {}, "high": {}}}}})", log_,
          step_ >= 1 ? static_cast<std::int64_t>(step_) : 1, static_cast<std::int64_t>(low_),
          static_cast<std::int64_t>(high_));
    std::string out = R"({"name": "FloatDistribution", "attributes": {"step": )";
    out += step_ > 0 ? detail::format("{}", step_) : "null";
    return out + detail::format(R"(, "low": {}, "high": {}, "log": {}}}}})", low_, high_, log_);
  }

 private:
  // Whether a column of numbers can hold it: it has doubles, of which not all are whole numbers above 2^53, and for
  // Optuna only finite ones.
  static bool exact(const Value& value) {
    constexpr std::int64_t limit = std::int64_t{1} << 53;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole >= -limit && *whole <= limit;
    const auto* real = std::get_if<double>(&value);
    return real != nullptr && std::isfinite(*real);
  }

  // The same for values that are the same choice, NaN and NaN too.
  static std::string key(const Value& value) {
    std::string text = std::to_string(value.index());
    append_python(text, value);
    return text;
  }
  void add(const Value& option) {
    if (places_.try_emplace(key(option), options_.size()).second) options_.push_back(option);
  }

  bool categorical_ = false, log_ = false, whole_ = true;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -low_, step_ = 0;
  std::vector<Value> options_, seen_;                    // seen_: all values while they are numbers
  std::unordered_map<std::string, std::size_t> places_;  // of the options
};

}  // namespace hypertune::inline v0::detail::optuna
