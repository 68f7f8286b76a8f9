#include "init_help.hpp"

#include <hypertune/detail/text.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <regex>
#include <set>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

constexpr std::size_t longest_line = 2000;  // most characters of a line that are searched
constexpr std::size_t longest_text = 4000;  // … and of a description

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

std::optional<double> number_of(std::string text) {
  if (text.starts_with('+')) text.erase(0, 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The words between separators; empty if one of them is no single word.
std::vector<std::string> listed(const std::string& text) {
  static const std::regex between(R"( *[,|/] *(?:(?:or|and) +)?| +or +)");
  static const std::regex word(R"([A-Za-z0-9_.+:-]+)");
  std::vector<std::string> out;
  for (std::sregex_token_iterator it(text.begin(), text.end(), between, -1), last; it != last; ++it) {
    std::string one = trimmed(it->str());
    if (one.size() > 2 && (one.front() == '"' || one.front() == '\'') && one.back() == one.front())
      one = one.substr(1, one.size() - 2);
    if (!std::regex_match(one, word)) return {};
    out.push_back(std::move(one));
  }
  return out.size() > 1 ? out : std::vector<std::string>();
}

void find_range(OptionHelp& option, const std::string& text) {
  static const std::string number = R"(([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?[A-Za-z]+))";
  static const std::string value = R"(([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?))";
  // [0 .. 1), in [1 - 10], from 0 to 5, 0 <= x < 1, (1-100), between 0 and 1, range: 0 to 3, (0.0, 0.5]
  static const std::regex dots(R"(([\[(]) *)" + number + R"( *\.\. *)" + number + R"( *([\])]))");
  static const std::regex inside(R"((?:in|range:?|interval) *(?:of )?([\[(]) *)" + value + R"( *(?:-|,|to) *)" + value +
                                 R"( *([\])]))");
  static const std::regex mixed(R"((\[) *)" + value + R"( *, *)" + value + R"( *(\))|(\() *)" + value + R"( *, *)" +
                                value + R"( *(\]))");
  static const std::regex plain(R"(([\[({<]) *)" + value + R"( *(?:-|\.\.) *)" + value + R"( *([\])}>]))");
  static const std::regex words(R"((?:from|between|range:?|in) +)" + value + R"( +(?:to|and|-) +)" + number);
  static const std::regex compared(R"((?:)" + value + R"( *(<=?) *)?[A-Za-z_]+ *(<=?) *)" + value);
  static const std::regex at_least(R"([A-Za-z_]* *(>=?) *)" + value + R"( *[\])])");
  std::smatch m;
  const auto set = [&](const std::string& low, const std::string& high, bool open_low, bool open_high) {
    option.low = number_of(low);
    option.high = number_of(high);
    option.above_low = open_low;
    option.below_high = open_high;
  };
  if (std::regex_search(text, m, dots) || std::regex_search(text, m, inside))
    set(m[2], m[3], m[1] == "(", m[4] == ")");
  else if (std::regex_search(text, m, mixed))
    m[1].matched ? set(m[2], m[3], false, true) : set(m[6], m[7], true, false);
  else if (std::regex_search(text, m, plain) || std::regex_search(text, m, words))
    set(m.size() > 4 ? m[2] : m[1], m.size() > 4 ? m[3] : m[2], false, false);
  else if (std::regex_search(text, m, compared))
    set(m[1], m[4], m[2] == "<", m[3] == "<");
  else if (std::regex_search(text, m, at_least))
    set(m[2], "", m[1] == ">", false);
  if (option.low && option.high && !(*option.low < *option.high)) option.low = option.high = std::nullopt;
}

// Returns whether it stands there as only the default of a value does: a number, or alone in brackets at the end.
bool find_fallback(OptionHelp& option, const std::string& text) {
  static const std::regex named(R"(default(?:s to| is|:| value:?|=)? *:? *([^\s,;()\[\]]+(?: [^\s,;()\[\]]+)*))",
                                std::regex::icase);
  static const std::regex last(R"(\[([^\[\]]*)\]\.?$)");
  bool bracketed = false;
  std::smatch m;
  if (std::regex_search(text, m, named)) {
    const std::string all = m[1];
    option.fallback = all.substr(0, all.find(' '));
    if (option.fallback.size() > 1 && option.fallback.back() == '.') option.fallback.pop_back();
  } else if (std::regex_search(text, m, last)) {
    option.fallback = m[1];
    bracketed = true;
  }
  std::erase_if(option.fallback, [](char c) { return c == '"' || c == '\''; });
  static const std::set<std::string, std::less<>> switches{"", "on", "off", "true", "false", "True", "False"};
  return number_of(option.fallback) || (bracketed && !switches.contains(option.fallback));
}

void find_choices(OptionHelp& option, const std::string& text) {
  static const std::regex braces(R"(\{([^{}]+)\})");
  static const std::regex bars(R"(\[([A-Za-z0-9_.+:-]+(?:\|[A-Za-z0-9_.+:-]+)+)\])");
  static const std::regex named(R"((?:possible values|choices|one of|options)(?: are)?:? *[\[({]?([^\])};.]+))",
                                std::regex::icase);
  static const std::regex two(R"(\b([0-9]+) or ([0-9]+)\b)");
  std::smatch m;
  for (const auto* form : {&braces, &bars, &named})
    if (option.choices.empty() && std::regex_search(text, m, *form)) option.choices = listed(m[1]);
  if (option.choices.empty() && std::regex_search(text, m, two)) option.choices = {m[1], m[2]};
}

// "0 -- linear", "- hex: …", "3-5: …": values of the option above, on a line of their own.
std::vector<std::string> enumerated(const std::string& line) {
  static const std::regex numbered(R"(^\s+(?:- *)?([0-9]{1,3})(?:-([0-9]{1,3}))? *(?:--|-|:|=) *\S.*)");
  static const std::regex dashed(R"(^\s+- ([A-Za-z][A-Za-z0-9_-]*)(?: *:.*| +\(.*)?$)");
  std::smatch m;
  if (std::regex_match(line, m, dashed)) return {m[1]};
  if (!std::regex_match(line, m, numbered)) return {};
  if (!m[2].matched) return {m[1]};
  std::vector<std::string> values;
  constexpr int most = 100;
  for (int value = std::stoi(m[1]); value <= std::stoi(m[2]) && static_cast<int>(values.size()) < most; ++value)
    values.push_back(std::to_string(value));
  return values;
}

struct Head {
  std::vector<std::string> names;  // with dashes
  std::string value, rest;         // what it calls its value; the description
};

// "-b, --batch-size N   images a step" in its parts. No names: the line is no option's.
Head read_head(const std::string& line) {
  static const std::regex name(R"(^(--?(?:\[no-?\])?[A-Za-z][A-Za-z0-9_.-]*))");
  static const std::regex between(R"(^(?:, *| *\| *| */ *| *\[ *(?=-)| +(?=--?[A-Za-z])| *\]))");
  Head head;
  std::string rest = line;
  const auto skip = [&](std::size_t n) { rest.erase(0, n); };
  for (std::smatch m;;) {
    if (std::regex_search(rest, m, name)) {
      head.names.push_back(m[1]);
      skip(static_cast<std::size_t>(m.length(0)));
      // argparse repeats the value for each name: -b N, --batch-size N
      static const std::regex repeated(R"(^[ =]([A-Z<\{][^ ,]*), (?=-))");
      if (std::regex_search(rest, m, repeated)) {
        head.value = m[1];
        skip(static_cast<std::size_t>(m.length(0)));
        continue;
      }
      if (std::regex_search(rest, m, between)) {
        const auto after = rest.substr(static_cast<std::size_t>(m.length(0)));
        if (after.starts_with('-') || rest.front() == ']' || m.str().find(']') != std::string::npos) {
          rest = after;
          if (!rest.starts_with('-')) break;
          continue;
        }
      }
    } else if (std::regex_search(rest, m, between) && rest.find_first_not_of(" ]") != std::string::npos &&
               rest.find(']') < 2) {
      skip(static_cast<std::size_t>(m.length(0)));
    }
    break;
  }
  if (head.names.empty()) return head;
  // The value: what follows up to two spaces, a tab or a colon.
  auto end = std::min({rest.find("  "), rest.find('\t'), rest.find(" : "), rest.find(": "), rest.size()});
  if (rest.starts_with(' ') && !rest.starts_with("  ")) {
    if (const auto later = std::min({rest.find("  ", 1), rest.find('\t', 1), rest.find(": ", 1), rest.size()});
        later != std::string::npos)
      end = later;
  }
  std::string value = trimmed(rest.substr(0, end));
  std::string text = trimmed(rest.substr(end));
  if (text.starts_with(':')) text = trimmed(text.substr(1));
  // Without a gap the description begins after one word: --rand-type=STRING random numbers distribution
  if (const auto space = value.find(' ');
      space != std::string::npos && value.find_first_of("[{(<") > space && text.empty()) {
    text = trimmed(value.substr(space));
    value = value.substr(0, space);
  }
  if (!value.empty() && value.front() == '=') value = trimmed(value.substr(1));
  if (!value.empty()) head.value = value;
  head.rest = text;
  return head;
}

void finish(OptionHelp& option) {
  const std::string all = option.value + "  " + option.text;
  find_choices(option, option.value);
  if (option.choices.empty()) find_choices(option, option.text);
  const bool valued = find_fallback(option, all);
  find_range(option, all);
  const auto type = option.value.substr(0, option.value.find_first_of(" :["));
  std::string upper;
  for (const char c : type)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  static const std::set<std::string> reals{"FLOAT", "DOUBLE", "REAL"}, wholes{"INT", "INTEGER", "UINT", "LONG"},
      switches{"BOOL", "BOOLEAN"};
  static const std::regex typed(R"(type: *(float|double|int|uint))");
  std::smatch m;
  if (reals.contains(upper)) option.type = "FLOAT";
  if (wholes.contains(upper)) option.type = "INT";
  if (switches.contains(upper)) option.type = "BOOL";
  if (option.type.empty() && std::regex_search(option.text, m, typed))
    option.type = m[1] == "float" || m[1] == "double" ? "FLOAT" : "INT";
  option.flag = option.value.empty() && option.choices.empty() && !valued;
}

}  // namespace

CommandHelp read_help(std::string_view text) {
  static const std::regex spaced_value(R"( +(= <))");  // minisat's: -rinc      = <double>
  CommandHelp help;
  std::optional<OptionHelp> option;
  std::vector<std::string> values;
  const auto store = [&] {
    if (!option) return;
    if (values.size() > 1 && option->choices.empty()) option->choices = values;
    finish(*option);
    for (const auto& name : option->names) {
      std::string bare = name.substr(name.find_first_not_of('-'));
      if (bare.starts_with("[no")) bare.erase(0, bare.find(']') + 1);
      if (!bare.empty()) help.try_emplace(bare, *option);
    }
    option.reset();
    values.clear();
  };
  while (!text.empty()) {
    std::string line(detail::take_until(text, '\n').substr(0, longest_line));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    for (const std::string_view bar : {"│", "|"}) {  // boxes round the help of Typer
      if (const auto begin = line.find_first_not_of(' ');
          begin != std::string::npos && line.substr(begin).starts_with(bar)) {
        line = " " + line.substr(begin + bar.size());
        if (const auto last = line.rfind(bar); last != std::string::npos) line.erase(last);
      }
    }
    line = std::regex_replace(line, spaced_value, " $1");
    const auto indent = std::min(line.find_first_not_of(" \t"), line.size());
    constexpr std::size_t deepest = 12;  // what is further to the right belongs to a description
    Head head;
    if (indent <= deepest && indent < line.size() && line[indent] == '-') head = read_head(line.substr(indent));
    if (!head.names.empty()) {
      store();
      option.emplace();
      option->known = true;
      option->names = head.names;
      option->value = head.value;
      option->text = head.rest;
      for (const auto& name : head.names) {
        const auto bare = name.substr(name.find_first_not_of('-'));
        option->negatable =
            option->negatable || bare.starts_with("no-") || bare.starts_with("no_") || bare.starts_with("[no");
      }
    } else if (option && (indent > 0 || line.empty())) {
      for (auto& one : enumerated(line))
        if (std::find(values.begin(), values.end(), one) == values.end()) values.push_back(std::move(one));
      if (option->text.size() < longest_text) option->text += " " + trimmed(line);
    } else {
      store();
    }
  }
  store();
  return help;
}

std::string longer_help(std::string_view text) {
  static const std::regex option(R"((?:^|[\s,\[])(--?(?:[a-z]+-?)?help(?:-?[a-z]+)?)(?![A-Za-z-]))");
  const std::string all(text.substr(0, std::size_t{1} << 20U));
  std::vector<std::string> found;
  for (std::sregex_iterator it(all.begin(), all.end(), option), last; it != last; ++it) found.push_back((*it)[1]);
  for (const char* word : {"full", "all", "long", "verb"})
    for (const auto& one : found)
      if (one.find(word) != std::string::npos) return one;
  return {};
}

}  // namespace hypertune::inline v0::command
