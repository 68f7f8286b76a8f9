// TextTable: aligned columns of text and numbers that fit a width. Numbers are rounded, never cut.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/space/params.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail::terminal {

/// "1.5e-05" -> "1.5e-5", "1e+06" -> "1e6".
inline std::string brief_exponent(std::string text) {
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  auto digits = e + 1;
  if (text[digits] == '+')
    text.erase(digits, 1);
  else if (text[digits] == '-')
    ++digits;
  while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  return text;
}

/// `value` rounded to as many significant digits as fit into `width` columns, at most `digits`. "…" if not even one
/// fits.
inline std::string number_text(double value, int digits, std::size_t width) {
  for (int n = digits; n > 0; --n) {
    std::string text = detail::format("{:.{}g}", value, n);
    if (text.size() <= width) return text;
    text = brief_exponent(std::move(text));
    if (text.size() <= width) return text;
    text = brief_exponent(detail::format("{:.{}e}", value, n - 1));
    if (text.size() <= width) return text;
  }
  return width == 0 ? "" : "…";
}

/// A parameter's value as text, with at most `digits` significant digits.
inline std::string value_text(const Value& value, int digits = 6) {
  const double* const real = std::get_if<double>(&value);
  return real != nullptr ? detail::format("{:.{}g}", *real, digits) : to_string(value);
}

/// The names, cut to the number of columns that `widths` gives, so that different names stay distinct. If the shown
/// part is also the beginning of another name, the common part is cut instead ("optimizer.lr", "optimizer.beta" ->
/// "…lr", "…beta").
inline std::vector<std::string> short_names(const std::vector<std::string>& names,
                                            const std::vector<std::size_t>& widths) {
  std::vector<std::string> shown(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    shown[i] = elide(name, widths[i]);
    if (shown[i] == name || widths[i] < 3) continue;
    // Whether the first `size` bytes are the beginning of another name, too. `common`: up to where the names are equal.
    std::size_t common = 0;
    const auto ambiguous = [&](std::size_t size) {
      bool any = false;
      for (const auto& other : names) {
        if (other == name || size == name.size() || !other.starts_with(name.substr(0, size))) continue;
        const auto end = std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first;
        common = std::max(common, static_cast<std::size_t>(end - name.begin()));
        any = true;
      }
      return any;
    };
    const std::size_t ellipsis = std::string_view("…").size();
    if (!ambiguous(shown[i].size() - ellipsis)) continue;
    common = utf8_cut(name, common);
    if (common == name.size()) common = name.find_last_of("._-/: ", common - 1) + 1;  // the other name is longer
    // Starts with the word in which they differ, if that shows enough, or else at the difference.
    for (const std::size_t from : {name.find_last_of("._-/: ", std::max<std::size_t>(common, 1) - 1) + 1, common}) {
      const std::string rest = elide(std::string_view(name).substr(from), widths[i] - 1);
      shown[i] = "…" + rest;
      if (rest == name.substr(from) || !ambiguous(from + rest.size() - ellipsis)) break;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i)  // the same words after different beginnings
    for (std::size_t j = 0; j < i; ++j)
      if (shown[i] == shown[j] && names[i] != names[j])
        for (const std::size_t k : {i, j}) {
          std::string_view rest = names[k];
          while (text_width(rest) > widths[k] / 2) rest.remove_prefix(decode_utf8(rest).bytes);
          shown[k] = elide(names[k], widths[k] - text_width(rest)) + std::string(rest);
        }
  return shown;
}

/// Adds the names of `params` to `names`. Keeps the order of the space if configurations have different parameters.
inline void merge_names(std::vector<std::string>& names, const Params& params) {
  std::size_t at = 0;
  for (const auto& [name, value] : params) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      names.insert(names.begin() + static_cast<std::ptrdiff_t>(at++), name);
    else
      at = static_cast<std::size_t>(found - names.begin()) + 1;
  }
}

/// The content of one cell of a table.
class Cell {
 public:
  Cell(std::string text) : text_(printable(text)) {}   // NOLINT: implicit on purpose
  Cell(const char* text) : Cell(std::string(text)) {}  // NOLINT
  /// A number, with at most `digits` significant digits.
  Cell(double number, int digits)
      : text_(detail::format("{:.{}g}", number, digits)), number_(number), digits_(digits) {}
  Cell(std::int64_t number)  // NOLINT: implicit on purpose
      : text_(detail::format("{}", number)), number_(static_cast<double>(number)), digits_(15) {}
  static Cell of(const Value* value, int digits) {
    if (value == nullptr) return "-";
    if (const auto* real = std::get_if<double>(value)) return {*real, digits};
    if (const auto* whole = std::get_if<std::int64_t>(value)) return *whole;
    return to_string(*value);
  }

  std::size_t width() const { return text_width(text_); }
  bool says_nothing() const { return text_.empty() || text_ == "-"; }
  /// The columns that it needs with three significant digits; a text needs at most `smallest`.
  std::size_t least(std::size_t smallest) const {
    if (!number_) return std::min(width(), smallest);
    const int digits = std::min(digits_, 3);
    return std::min({width(), brief_exponent(detail::format("{:.{}g}", *number_, digits)).size(),
                     brief_exponent(detail::format("{:.{}e}", *number_, digits - 1)).size()});
  }
  std::string in(std::size_t columns) const {
    if (width() <= columns) return text_;
    return number_ ? number_text(*number_, digits_, columns) : elide(text_, columns);
  }

 private:
  std::string text_;
  std::optional<double> number_;
  int digits_ = 0;
};

/// A table with aligned columns. Characters that are not printable() are shown as '?', so that no cell can break the
/// table or the terminal.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;         ///< right-aligned, as for numbers
    std::size_t smallest = 0;   ///< least width: numbers keep three digits, texts and the title this; 0: not narrowed
    std::size_t preferred = 0;  ///< at least this wide if there is room
  };
  struct Line {
    std::size_t row;  ///< 0: the titles
    std::string text;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
    for (auto& column : columns_) column.title = printable(column.title);
  }

  void add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

  /// The lines, each in at most `width` columns (0: unlimited). Columns for which there is no room are placed below the
  /// others, in further blocks that repeat the first column and show only rows with a value in them.
  std::vector<Line> lines(std::size_t width) const {
    std::vector<Line> out;
    const auto blocks = fit(width);
    for (const auto& block : blocks.parts) {
      const bool below = &block != &blocks.parts.front();
      const auto says = [&](const std::vector<Cell>& row) {
        return std::any_of(block.begin() + 1, block.end(), [&](std::size_t i) { return !row[i].says_nothing(); });
      };
      if (below && std::none_of(rows_.begin(), rows_.end(), says)) continue;
      for (std::size_t row = 0; row <= rows_.size(); ++row) {
        if (below && row > 0 && !says(rows_[row - 1])) continue;
        std::string line;
        for (const std::size_t i : block) {
          if (!line.empty()) line += "  ";
          const std::string cell = row == 0 ? blocks.titles[i] : rows_[row - 1][i].in(blocks.widths[i]);
          const std::string padding(blocks.widths[i] - std::min(blocks.widths[i], text_width(cell)), ' ');
          columns_[i].right ? (line += padding) += cell : (line += cell) += padding;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out.push_back({row, width == 0 ? std::move(line) : elide(line, width)});
      }
    }
    return out;
  }
  std::string text(std::size_t width) const {
    std::string out;
    for (const auto& line : lines(width)) {
      if (line.row == 0 && !out.empty()) out += '\n';
      (out += line.text) += '\n';
    }
    return out;
  }

 private:
  struct Fit {
    std::vector<std::vector<std::size_t>> parts;  // the columns of each block
    std::vector<std::size_t> widths;
    std::vector<std::string> titles;
  };

  Fit fit(std::size_t width) const {
    Fit fit;
    std::vector<std::size_t> least;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto& column = columns_[i];
      std::size_t wide = text_width(column.title), small = std::min(wide, column.smallest);
      for (const auto& row : rows_) {
        wide = std::max(wide, row[i].width());
        small = std::max(small, row[i].least(column.smallest));
      }
      fit.widths.push_back(std::max(wide, column.preferred));
      least.push_back(column.smallest == 0 ? wide : small);
    }
    fit.parts = parts(least, width);
    // If several blocks are needed anyway, columns are as wide as possible without needing more blocks.
    for (std::size_t wish = 24; fit.parts.size() > 1 && wish > 0; --wish) {
      auto wider = least;
      for (std::size_t i = 0; i < wider.size(); ++i) wider[i] = std::max(least[i], std::min(fit.widths[i], wish));
      auto shared = parts(wider, width);
      if (shared.size() > fit.parts.size()) continue;
      fit.parts = std::move(shared);
      least = std::move(wider);
      break;
    }
    auto widths = fit.widths;  // the first column is in each block, and as narrow as in the narrowest
    for (const auto& part : fit.parts) narrow(part, least, width, widths);
    fit.widths = std::move(widths);
    std::vector<std::string> titles;
    for (const auto& column : columns_) titles.push_back(column.title);
    fit.titles = short_names(titles, fit.widths);
    return fit;
  }

  // Puts as many columns into each block as fit.
  std::vector<std::vector<std::size_t>> parts(const std::vector<std::size_t>& least, std::size_t width) const {
    std::vector<std::vector<std::size_t>> parts(columns_.empty() ? 0 : 1);
    for (std::size_t i = 0, used = 0; i < columns_.size(); ++i) {
      const std::size_t wanted = used + (i > 0 ? 2 : 0) + least[i];
      const bool full = width > 0 && wanted > width && parts.back().size() > 1;
      if (full) parts.push_back({0});
      used = full ? least[0] + 2 + least[i] : wanted;
      parts.back().push_back(i);
    }
    return parts;
  }

  // Narrows the widest column until the block fits.
  static void narrow(const std::vector<std::size_t>& part, const std::vector<std::size_t>& least, std::size_t width,
                     std::vector<std::size_t>& widths) {
    std::size_t total = 2 * (part.size() - 1);
    for (const auto i : part) total += widths[i];
    while (width > 0 && total > width) {
      std::optional<std::size_t> widest;
      for (const auto i : part)
        if (widths[i] > least[i] && (!widest || widths[i] > widths[*widest])) widest = i;
      if (!widest) return;
      --widths[*widest];
      --total;
    }
  }

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace hypertune::inline v0::detail::terminal
