#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/show/detail/view/front.hpp>
#include <hypertune/show/detail/view/json_writer.hpp>
#include <hypertune/show/detail/view/space_text.hpp>
#include <hypertune/space/detail/grammar.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

namespace hypertune::inline v0::view {

namespace {

// The items of a YAML list in brackets; empty if it is not closed.
std::vector<std::string> list_items(std::string_view text) {
  std::vector<std::string> items(1);
  int depth = 0;
  char quote = '\0';
  if (!text.starts_with('[')) return {};
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      items.back() += c;
      if (c == '\\' && quote == '"' && i + 1 < text.size())
        items.back() += text[++i];
      else if (c == quote)
        quote = '\0';
      continue;
    }
    if (c == '"') quote = c;
    if (c == ']' && depth == 0) return items;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      items.emplace_back();
      if (i + 1 < text.size() && text[i + 1] == ' ') ++i;
      continue;
    }
    items.back() += c;
  }
  return {};
}

double number_of(std::string_view text) {
  if (text == ".inf") return std::numeric_limits<double>::infinity();
  if (text == "-.inf") return -std::numeric_limits<double>::infinity();
  return detail::parse_number<double>(text).value_or(unknown);
}

// Converts a scalar of the space's text to JSON. Quoted text has YAML's escapes, which are nearly the same as JSON's.
std::string scalar_json(std::string_view text) {
  if (text == "true" || text == "false") return std::string(text);
  const auto whole = detail::parse_number<std::int64_t>(text);
  const bool exact = !whole || is_exact_in_browser(*whole);
  if (const double number = number_of(text); exact && std::isfinite(number) && !text.empty()) {
    std::string out;
    detail::append_json(out, number);
    return out;
  }
  std::string plain;
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
    text = text.substr(1, text.size() - 2);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        plain += text[i];
        continue;
      }
      const char c = text[++i];
      const auto byte = c == 'x' && i + 2 < text.size() ? detail::from_hex(text.substr(i + 1, 2)) : std::nullopt;
      if (byte) {
        plain += *byte;
        i += 2;
      } else {
        plain += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
    }
  } else {
    plain = text;
  }
  std::string out;
  detail::append_json(out, std::string_view(plain));
  return out;
}

}  // namespace

void read_domain(std::string_view line, Parameter& parameter) {
  if (!line.starts_with('{')) return;
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return;
  const std::string_view word = line.substr(1, colon - 1);
  const std::string_view rest = line.substr(colon + 2);
  const auto items = list_items(rest);
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (word == "choice" || word == "ordinal" || word == "discrete" || word == "grid" || word == "boolean" ||
      word == "subset" || word == "permutation") {
    parameter.kind = word == "ordinal" || word == "discrete" ? "ordinal" : "choice";
    for (const auto& item : items) parameter.choices.push_back(scalar_json(item));
    const bool flags = !items.empty() && std::all_of(items.begin(), items.end(), [](const std::string& item) {
      return item == "true" || item == "false";
    });
    if (flags || word == "boolean") parameter.kind = "bool";
    return;
  }
  if (word == "constant" || word == "value") {
    parameter.kind = "fixed";
    return;
  }
  parameter.log = has("log");
  if (word == "int" || word == "integer" || word == "log_int") parameter.kind = "int";
  if (has("uniform") || has("normal") || has("quantized")) parameter.kind = "float";
  if (!has("normal") && items.size() >= 2) {
    parameter.low = number_of(items[0]);
    parameter.high = number_of(items[1]);
  }
}

std::vector<Parameter> parameters_of(const ExperimentView& view) {
  std::unordered_map<std::string_view, std::string_view> lines;
  const std::string& space = view.results().experiment().space;
  std::vector<Parameter> all;
  for (std::size_t c = 0; c < view.params().size(); ++c) {
    Parameter parameter;
    parameter.name = view.params().name(c);
    // Each parameter has a line that begins with its name, as YAML writes it.
    const std::string head = detail::scalar_text(parameter.name) + ": ";
    for (std::size_t at = 0; at < space.size();) {
      const auto end = std::min(space.find('\n', at), space.size());
      const auto line = std::string_view(space).substr(at, end - at);
      if (line.starts_with(head)) {
        read_domain(line.substr(head.size()), parameter);
        break;
      }
      at = end + 1;
    }
    // What the text does not say is taken from the values.
    bool numbers = true, whole = true, flags = true;
    double low = unknown, high = unknown;
    const std::size_t step = view.size() / 20000 + 1;
    for (std::size_t i = 0; i < view.size(); i += step) {
      const Cell cell = view.params().at(c, i);
      if (cell.kind == Cell::Kind::absent) continue;
      if (cell.kind == Cell::Kind::text) numbers = false;
      if (cell.kind != Cell::Kind::whole) whole = false;
      if (cell.kind != Cell::Kind::flag) flags = false;
      if (cell.text == nullptr && std::isfinite(cell.number)) {
        low = std::isnan(low) ? cell.number : std::min(low, cell.number);
        high = std::isnan(high) ? cell.number : std::max(high, cell.number);
      }
    }
    if (parameter.kind == "text" && flags) parameter.kind = "bool";
    if (parameter.kind == "text" && numbers) parameter.kind = whole ? "int" : "float";
    if (parameter.kind == "int" || parameter.kind == "float") {
      if (!std::isfinite(parameter.low)) parameter.low = low;
      if (!std::isfinite(parameter.high)) parameter.high = high;
    }
    all.push_back(std::move(parameter));
  }
  return all;
}

void put_parameters(JsonWriter& out, const ExperimentView& view) {
  out.key("parameters").begin_array();
  for (const auto& parameter : parameters_of(view)) {
    out.begin_object().member("name", parameter.name).member("kind", parameter.kind).member("log", parameter.log);
    if (!std::isnan(parameter.low)) out.member("low", parameter.low);
    if (!std::isnan(parameter.high)) out.member("high", parameter.high);
    if (!parameter.choices.empty()) {
      out.key("choices").begin_array();
      for (const auto& choice : parameter.choices) out.raw(choice);
      out.end_array();
    }
    out.end_object();
  }
  out.end_array();
}

bool has_rungs(const ExperimentView& view) {
  const std::string& name = view.results().experiment().scheduler;
  for (const char* word : {"asha", "halving", "hyperband", "bohb"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

double seconds_left(const ExperimentView& view) {
  const Results& results = view.results();
  const auto& info = results.experiment();
  if (view.status.state != "running" || info.planned <= 0) return unknown;
  const auto all = static_cast<double>(info.planned);
  const auto done = static_cast<double>(results.ended());
  if (done == 0 || done >= all) return unknown;
  return info.elapsed * (all - done) / done;
}

detail::FrontLosses front_losses(const ExperimentView& view) {
  const auto last = [&](const TrialRow& row, const std::string& name) -> const double* {
    const auto metric = view.metric(name);
    const Curve* curve = metric ? row.curve(*metric) : nullptr;
    return curve != nullptr && curve->points().back().step == row.steps - 1 ? &curve->points().back().value : nullptr;
  };
  const ExperimentInfo& info = view.results().experiment();
  const auto meets_all = [&](const TrialRow& row) {
    return std::all_of(info.constraints.begin(), info.constraints.end(), [&](const MetricBound& bound) {
      const auto metric = view.metric(bound.metric);
      const Curve* curve = metric ? row.curve(*metric) : nullptr;
      return curve != nullptr && detail::excess(bound, curve->points().back().value) <= 0;
    });
  };
  return detail::front_losses(info, view.rows(), last, meets_all);
}

std::vector<std::size_t> front_places(const ExperimentView& view) { return detail::front_places(front_losses(view)); }

}  // namespace hypertune::inline v0::view
