// The references in docs/, as the tests read them: tables that a comment names, and YAML examples.
#pragma once

#include "support/test.hpp"

#include <hypertune/config/options.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace support {

struct Reference {
  struct Row {
    std::string key, fallback;  ///< as they stand, without backticks where the whole is in them
    bool exact = false;         ///< the fallback is a value in backticks
    std::string type, text;     ///< as they stand
  };
  std::map<std::string, std::vector<Row>> tables;               ///< by what `<!-- keys: … -->` says before them
  std::map<std::string, std::set<std::string>> ignored;         ///< words in backticks after `<!-- ignored: … -->`
  std::map<std::string, std::vector<std::string>> first_cells;  ///< of tables after any other comment
  std::vector<std::pair<int, std::string>> examples;            ///< YAML, with the line where it begins

  std::set<std::string> keys(const std::string& table) const {
    std::set<std::string> names;
    for (const auto& row : tables.at(table)) names.insert(row.key);
    return names;
  }
};

inline std::string trimmed(std::string text) {
  const auto begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

inline std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false;
  for (const char c : line.substr(1)) {
    if (c == '`') code = !code;
    if (c == '|' && !code)
      cells.push_back(trimmed(std::exchange(cell, {})));
    else
      cell += c;
  }
  return cells;
}

inline std::vector<std::string> code_in(std::string_view text) {
  std::vector<std::string> words;
  for (auto begin = text.find('`'); begin != std::string_view::npos; begin = text.find('`', begin)) {
    const auto end = text.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    words.emplace_back(text.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return words;
}

inline Reference read_reference(const std::filesystem::path& file) {
  std::ifstream in(file);
  INFO("reads " << file.string());
  REQUIRE(in.good());
  Reference reference;
  std::string line, marker, example;
  int number = 0, example_at = 0;
  bool in_example = false, in_other = false;
  while (std::getline(in, line)) {
    ++number;
    if (line.starts_with("```")) {
      if (in_example) reference.examples.emplace_back(example_at, std::exchange(example, {}));
      in_other = !in_example && !in_other && line != "```yaml";
      if (line == "```") in_other = false;
      in_example = line == "```yaml";
      example_at = number;
      continue;
    }
    if (in_example) {
      example += line + "\n";
      continue;
    }
    if (in_other) continue;
    if (line.starts_with("<!-- ")) {
      marker = line.substr(5, line.find(" -->") - 5);
      if (marker.starts_with("keys: ")) reference.tables[marker.substr(6)];
      continue;
    }
    if (marker.empty()) continue;
    if (marker.starts_with("ignored: ")) {
      if (line.starts_with('#') || line.starts_with('|')) marker.clear();
      for (auto& word : code_in(line)) reference.ignored[marker.substr(9)].insert(std::move(word));
      if (line.empty() && !reference.ignored[marker.substr(9)].empty()) marker.clear();
      continue;
    }
    if (!line.starts_with('|')) {
      if (!line.empty()) marker.clear();
      continue;
    }
    const auto cells = cells_of(line);
    if (cells.empty() || cells[0].starts_with("---") || !cells[0].starts_with('`')) continue;
    if (!marker.starts_with("keys: ")) {
      reference.first_cells[marker].push_back(cells[0]);
      continue;
    }
    const auto names = code_in(cells[0]);
    REQUIRE(names.size() == 1);
    const auto code = cells.size() > 2 ? code_in(cells[2]) : std::vector<std::string>{};
    const bool exact = code.size() == 1 && cells[2].size() == code[0].size() + 2;
    const auto cell = [&](std::size_t i) { return i < cells.size() ? cells[i] : std::string(); };
    reference.tables[marker.substr(6)].push_back({names[0], exact ? code[0] : cell(2), exact, cell(1), cell(3)});
  }
  return reference;
}

/// The rows of a documented table, but for `type`, say what options say of themselves.
inline void check_options_table(const Reference& reference, const std::string& table,
                                const std::vector<hypertune::OptionInfo>& options) {
  INFO("table '" << table << "'");
  REQUIRE(reference.tables.contains(table));
  auto rows = reference.tables.at(table);
  std::erase_if(rows, [](const auto& row) { return row.key == "type"; });
  std::vector<std::string> expected, found;
  for (const auto& option : options) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.key == option.name; });
    const std::string unset = row == rows.end() || row->exact ? "none" : row->fallback;
    const std::string fallback = option.fallback.empty() ? unset : "`" + option.fallback + "`";
    expected.push_back("| `" + option.name + "` | " + option.type + " | " + fallback + " | " + option.text + " |");
  }
  for (const auto& row : rows)
    found.push_back("| `" + row.key + "` | " + row.type + " | " +
                    (row.exact ? "`" + row.fallback + "`" : row.fallback) + " | " + row.text + " |");
  CHECK(found == expected);
}

/// A cell without links: "[trainers](x.md) read it: [below](#y)" is "trainers read it".
inline std::string without_links(const std::string& cell) {
  static const std::regex below(": \\[below\\]\\([^)]*\\)"), link("\\[([^\\]]*)\\]\\([^)]*\\)");
  return std::regex_replace(std::regex_replace(cell, below, ""), link, "$1");
}

/// The rows of a documented table have the texts and the defaults of the keys that the reader goes by.
inline void check_key_table(const Reference& reference, const std::string& table, const hypertune::Keys& keys) {
  INFO("table '" << table << "'");
  REQUIRE(reference.tables.contains(table));
  for (const auto& row : reference.tables.at(table)) {
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.name == row.key; });
    INFO("key '" << row.key << "'");
    if (key == keys.end()) {
      CHECK(row.key.starts_with('<'));  // of the user's own
      continue;
    }
    CHECK(without_links(row.text) == key->text);
    if (!key->fallback.empty()) CHECK(row.fallback == key->fallback);
  }
}

/// What readers asked for while it lives, by path.
class WatchedKeys {
 public:
  WatchedKeys() { hypertune::detail::key_watch() = &watch_; }
  WatchedKeys(const WatchedKeys&) = delete;
  WatchedKeys& operator=(const WatchedKeys&) = delete;
  ~WatchedKeys() { hypertune::detail::key_watch() = nullptr; }

  std::map<std::string, std::set<std::string>> known;
  std::map<std::string, std::map<std::string, std::string>> fallbacks;

 private:
  hypertune::detail::KeyWatch watch_{
      .known = [this](const std::string& path,
                      const std::vector<std::string_view>& keys) { known[path].insert(keys.begin(), keys.end()); },
      .fallback = [this](const std::string& path, std::string_view key,
                         const std::string& text) { fallbacks[path][std::string(key)] = text; }};
};

/// Keys of a documented table are the reader's, with the reader's defaults where that has told them.
inline void check_table(const Reference& reference, const std::string& table, const WatchedKeys& watched,
                        const std::string& path, const std::set<std::string>& elsewhere = {}) {
  INFO("table '" << table << "', as read at '" << path << "'");
  REQUIRE(reference.tables.contains(table));
  REQUIRE(watched.known.contains(path));
  auto expected = watched.known.at(path);
  for (const auto& key : elsewhere) expected.erase(key);
  if (const auto ignored = reference.ignored.find(table); ignored != reference.ignored.end())
    for (const auto& key : ignored->second) {
      CHECK(expected.contains(key));
      expected.erase(key);
    }
  CHECK(reference.keys(table) == expected);
  const auto fallbacks = watched.fallbacks.find(path);
  if (fallbacks == watched.fallbacks.end()) return;
  for (const auto& row : reference.tables.at(table)) {
    const auto fallback = fallbacks->second.find(row.key);
    if (fallback == fallbacks->second.end() || fallback->second.empty()) continue;
    if (row.key == "name") continue;  // the file's
    INFO("key '" << row.key << "'");
    CHECK(row.fallback == fallback->second);
  }
}

}  // namespace support
