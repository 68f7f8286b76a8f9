// ParamColumns: the parameters of all trials, one column per parameter, for filters, sorting and charts.
#pragma once

#include <hypertune/show/detail/view/json_writer.hpp>
#include <hypertune/space/params.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::view {

/// One parameter of one trial.
struct Cell {
  enum class Kind : std::uint8_t { absent, flag, whole, real, text };
  Kind kind = Kind::absent;
  double number = 0;  ///< 0 or 1 for a flag; the text's index for a text
  const std::string* text = nullptr;
};

class ParamColumns {
 public:
  static constexpr std::size_t nowhere = ~std::size_t{0};

  /// Sets the parameters of a row. Rows may be set in any order, and again.
  void set(std::size_t row, const Params& params) {
    for (auto& column : columns_)
      if (row < column.kinds.size()) column.kinds[row] = Cell::Kind::absent;
    std::size_t hint = 0;
    for (const auto& [name, value] : params) {
      const bool guessed = hint < columns_.size() && columns_[hint].name == name;
      Column& column = columns_[guessed ? hint : intern(name)];
      hint = static_cast<std::size_t>(&column - columns_.data()) + 1;
      if (column.kinds.size() <= row) {
        column.kinds.resize(row + 1, Cell::Kind::absent);
        column.numbers.resize(row + 1, 0);
      }
      auto& kind = column.kinds[row];
      auto& number = column.numbers[row];
      if (const auto* flag = std::get_if<bool>(&value)) {
        kind = Cell::Kind::flag;
        number = *flag ? 1 : 0;
      } else if (const auto* whole = std::get_if<std::int64_t>(&value);
                 whole != nullptr && is_exact_in_browser(*whole)) {
        kind = Cell::Kind::whole;
        number = static_cast<double>(*whole);
      } else if (const auto* real = std::get_if<double>(&value)) {
        kind = Cell::Kind::real;
        number = *real;
      } else {
        kind = Cell::Kind::text;
        number = static_cast<double>(intern_text(to_string(value)));
      }
    }
  }

  std::size_t size() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }
  std::size_t find(std::string_view name) const {
    const auto found = index_.find(std::string(name));
    return found == index_.end() ? nowhere : found->second;
  }
  Cell at(std::size_t column, std::size_t row) const {
    const Column& of = columns_[column];
    if (row >= of.kinds.size() || of.kinds[row] == Cell::Kind::absent) return {};
    Cell cell{of.kinds[row], of.numbers[row]};
    if (cell.kind == Cell::Kind::text) cell.text = texts_[static_cast<std::size_t>(cell.number)];
    return cell;
  }

 private:
  struct Column {
    std::string name;
    std::vector<Cell::Kind> kinds;
    std::vector<double> numbers;
  };

  std::size_t intern(const std::string& name) {
    const auto [found, added] = index_.emplace(name, columns_.size());
    if (added) columns_.push_back({name, {}, {}});
    return found->second;
  }
  std::size_t intern_text(const std::string& text) {
    const auto [found, added] = text_index_.emplace(text, texts_.size());
    if (added) texts_.push_back(&found->first);  // the address of a key is stable
    return found->second;
  }

  std::vector<Column> columns_;
  std::unordered_map<std::string, std::size_t> index_;
  std::unordered_map<std::string, std::size_t> text_index_;
  std::vector<const std::string*> texts_;
};

}  // namespace hypertune::inline v0::view
