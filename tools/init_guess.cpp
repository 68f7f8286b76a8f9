#include "init_guess.hpp"

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace hypertune::inline v0::command {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

template <std::size_t n>
bool has_part(const std::string& name, const std::array<std::string_view, n>& parts) {
  const std::string text = lower(name);
  for (const auto part : parts)
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
      const bool begins = at == 0 || !is_letter(text[at - 1]);
      const auto end = at + part.size();
      if (begins && (end == text.size() || !is_letter(text[end]) || text.substr(end) == "s")) return true;
    }
  return false;
}

constexpr std::array<std::string_view, 12> lasting{"epoch",      "num_epochs", "n_epochs",  "max_epochs",
                                                   "step",       "max_steps",  "num_steps", "iteration",
                                                   "iterations", "n_iter",     "max_iter",  "total_steps"};
constexpr std::array<std::string_view, 24> fixed{
    "seed",        "gpu",     "device",  "port",  "rank",   "world_size", "thread",   "num_threads",
    "num_workers", "verbose", "log",     "print", "jobs",   "n_jobs",     "interval", "workers",
    "node",        "host",    "version", "name",  "output", "dir",        "path",     "file"};
constexpr std::array<std::string_view, 12> shares{"dropout",  "momentum", "beta", "beta1",       "beta2",     "gamma",
                                                  "fraction", "ratio",    "prob", "probability", "smoothing", "rho"};

// 0.1 for 0.1, 1.0e-05 for 1e-05: forms that are numbers in YAML 1.1 too.
std::string number_text(double x) {
  std::string text = fmt::format("{:.4g}", x);
  if (const auto e = text.find('e'); e != std::string::npos && text.find('.') == std::string::npos)
    text.insert(e, ".0");
  return text;
}

std::optional<std::pair<std::string, std::string>> assignment(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) return std::nullopt;
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

std::string parameter_name(std::string_view option) {
  while (option.starts_with('-')) option.remove_prefix(1);
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  const bool sound = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return sound && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && name.front() != '.' && name.back() != '.'
             ? name
             : std::string();
}

std::string escaped(const std::string& word) {
  std::string out;
  for (const char c : word) {
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

bool names_place(const std::string& value) {
  if (value.find('/') != std::string::npos || value.starts_with("~")) return true;
  const auto dot = value.rfind('.');
  return dot != std::string::npos && dot + 1 < value.size() &&
         std::isalpha(static_cast<unsigned char>(value[dot + 1])) && value.size() - dot <= 6;
}

std::string whole_domain(const std::string& name, std::int64_t value, std::string& why) {
  constexpr std::int64_t small = 8, most = std::int64_t{1} << 50;
  if (value <= 0 || value > most) {
    why = "of that nothing can be guessed: a range of yours?";
    return fmt::format("{{integer: [{}, {}]}}", std::min<std::int64_t>(value, 0),
                       std::max<std::int64_t>(value, 0) + 10);
  }
  if (lower(name).find("batch") != std::string::npos && value >= 2) {
    why = "powers of two round it";
    std::vector<std::int64_t> sizes;
    for (std::int64_t size = std::max<std::int64_t>(value / 4, 1); size <= value * 4; size *= 2) sizes.push_back(size);
    return fmt::format("{{ordinal: [{}]}}", fmt::join(sizes, ", "));
  }
  if (value <= small) {
    why = "from 1 to its double";
    return fmt::format("{{integer: [1, {}]}}", 2 * value);
  }
  why = "from a quarter to four times";
  return fmt::format("{{log_int: [{}, {}]}}", value / 4, value * 4);
}

std::string real_domain(const std::string& name, double value, std::string& why) {
  if (has_part(name, shares) && value >= 0 && value < 1) {
    const double upper = value < 0.5 ? 0.5 : 0.99;
    why = "a share";
    return fmt::format("{{uniform: [0, {}]}}", number_text(std::max(upper, value)));
  }
  if (value > 0) {
    why = "ten times less to ten times more";
    return fmt::format("{{log_uniform: [{}, {}]}}", number_text(value / 10), number_text(value * 10));
  }
  const double width = value == 0 ? 1 : -value;
  why = "round it";
  return fmt::format("{{uniform: [{}, {}]}}", number_text(value - width), number_text(value + width));
}

}  // namespace

std::string yaml_text(const std::string& text) {
  static const std::regex plain("[A-Za-z_./][A-Za-z0-9_./=+-]*");
  static const std::set<std::string> words{"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  if (std::regex_match(text, plain) && !words.contains(lower(text)) && text.front() != '.') return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string domain_around(const std::string& name, const std::string& value, const OptionHelp& help, std::string& why) {
  if (help.choices.size() > 1) {
    std::vector<std::string> options;
    for (const auto& choice : help.choices) options.push_back(yaml_text(choice));
    why = "all that --help names";
    return fmt::format("{{choice: [{}]}}", fmt::join(options, ", "));
  }
  const Value parsed = detail::plain_value(value);
  if (std::holds_alternative<bool>(parsed)) {
    why = "yes or no";
    return fmt::format("{{choice: [{}]}}",
                       value == "True" || value == "False" ? "\"False\", \"True\"" : "\"false\", \"true\"");
  }
  if (const auto* whole = std::get_if<std::int64_t>(&parsed)) {
    if (help.type != "FLOAT") return whole_domain(name, *whole, why);
    return real_domain(name, static_cast<double>(*whole), why);
  }
  if (const auto* real = std::get_if<double>(&parsed); real != nullptr && std::isfinite(*real))
    return real_domain(name, *real, why);
  why = "add what else it may be";
  return fmt::format("{{choice: [{}]}}", yaml_text(value));
}

CommandHelp read_help(std::string_view text) {
  static const std::regex entry(R"(^ {1,8}(-[^ ].*)$)");
  static const std::regex name(R"(--?([A-Za-z][A-Za-z0-9_.-]*))");
  static const std::regex braces(R"(\{([^{}]+)\})");
  static const std::regex fallback(R"([\[(]default:? *([^\])]+)[\])])", std::regex::icase);
  CommandHelp help;
  std::vector<std::string> names;
  const auto more = [&](const std::string& line) {
    std::smatch match;
    for (const auto& one : names)
      if (std::regex_search(line, match, fallback)) help[one].fallback = match[1];
  };
  constexpr std::size_t longest = 2000;  // most characters of a line that are searched
  while (!text.empty()) {
    const std::string line(detail::take_until(text, '\n').substr(0, longest));
    std::smatch match;
    if (!std::regex_match(line, match, entry)) {
      if (line.starts_with("    "))
        more(line);
      else
        names.clear();
      continue;
    }
    // Text after two spaces is the description.
    const std::string all = match[1];
    const auto gap = all.find("  ");
    const std::string head = all.substr(0, gap);
    OptionHelp found;
    found.flag = true;
    names.clear();
    for (std::sregex_iterator it(head.begin(), head.end(), name), last; it != last; ++it) {
      const std::string one = (*it)[1];
      const auto at = static_cast<std::size_t>(it->position(0));
      if (at > 0 && head[at - 1] != ' ' && head[at - 1] != ',') continue;  // in the middle of a word
      if (one.starts_with("no-")) found.negatable = true;
      names.push_back(one);
      const auto after = at + static_cast<std::size_t>(it->length(0));
      if (after < head.size() && head[after] != ',') found.flag = false;
    }
    if (std::smatch words; std::regex_search(head, words, braces)) {
      std::string rest = words[1];
      while (!rest.empty()) {
        const auto comma = std::min(rest.find(','), rest.size());
        found.choices.push_back(rest.substr(0, comma));
        rest.erase(0, std::min(comma + 1, rest.size()));
      }
    }
    for (const char* type : {"FLOAT", "INT", "UINT"})
      if (head.ends_with(std::string(" ") + type)) found.type = type;
    for (const auto& one : names) help[one] = found;
    if (gap != std::string::npos) more(all.substr(gap));
  }
  return help;
}

Guess guess_from(const std::vector<std::string>& command, const CommandHelp& help) {
  Guess guess;
  std::set<std::string> used, given;
  const auto known = [&](const std::string& option) {
    const auto bare = option.substr(std::min(option.find_first_not_of('-'), option.size()));
    given.insert(bare);
    const auto found = help.find(bare);
    return found == help.end() ? OptionHelp{} : found->second;
  };
  // nullopt: the option is not changed.
  const auto take = [&](const std::string& option, const std::string& value) -> std::optional<std::string> {
    const std::string name = parameter_name(option);
    if (name.empty() || used.contains(name)) return std::nullopt;
    const auto leave = [&](const char* why) {
      guess.left.push_back(fmt::format("{} {}: {}", option, value, why));
      return std::nullopt;
    };
    const Value parsed = detail::plain_value(value);
    const auto* whole = std::get_if<std::int64_t>(&parsed);
    if (has_part(name, lasting) && whole != nullptr) {
      if (*whole > 0 && *whole <= 1'000'000'000) guess.steps = static_cast<int>(*whole);
      return leave("how long it trains is for the schedule to say");
    }
    if (has_part(name, fixed)) return leave("this is hardly to be tuned");
    if (names_place(value) && std::holds_alternative<std::string>(parsed)) return leave("it names a file");
    Parameter parameter{.name = name, .domain = {}, .comment = {}};
    parameter.domain = domain_around(name, value, known(option), parameter.comment);
    parameter.comment = fmt::format("was {}: {}", value, parameter.comment);
    guess.space.push_back(std::move(parameter));
    used.insert(name);
    return "{" + name + "}";
  };
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 &&
           word[1] != '.';
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (i == 0) {
      guess.command.push_back(escaped(word));
      continue;
    }
    if (const auto pair = assignment(word); pair && (is_option(word) || pair->first.find('/') == std::string::npos)) {
      const auto placed = take(pair->first, pair->second);
      guess.command.push_back(escaped(pair->first) + "=" + (placed ? *placed : escaped(pair->second)));
      continue;
    }
    if (!is_option(word) || word == "--") {
      guess.command.push_back(escaped(word));
      continue;
    }
    const OptionHelp about = known(word);
    const bool has_value = i + 1 < command.size() && !is_option(command[i + 1]) && !about.flag && word != "-m" &&
                           word != "-c" && word != "-u";
    if (has_value) {
      const auto placed = take(word, command[i + 1]);
      guess.command.push_back(escaped(word));
      guess.command.push_back(placed ? *placed : escaped(command[i + 1]));
      ++i;
      continue;
    }
    const std::string bare = parameter_name(word);
    if (about.negatable && !bare.empty() && !used.contains(bare)) {
      const std::string yes = bare.starts_with("no_") ? bare.substr(3) : bare;
      const std::string dashed = word.starts_with("--no-") ? word.substr(5) : word.substr(2);
      guess.space.push_back({yes, fmt::format("{{choice: [\"--{0}\", \"--no-{0}\"]}}", dashed), "on or off"});
      guess.command.push_back("{" + yes + "}");
      used.insert(yes);
      continue;
    }
    guess.left.push_back(word + ": it has no value");
    guess.command.push_back(escaped(word));
  }
  for (const auto& [name, about] : help)
    if (const Value value = detail::plain_value(about.fallback);
        !given.contains(name) && !has_part(name, fixed) && !has_part(name, lasting) &&
        (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value)))
      guess.left.push_back(fmt::format("{}{}, which was not given: by --help it is {}", name.size() == 1 ? "-" : "--",
                                       name, about.fallback));
  return guess;
}

}  // namespace hypertune::inline v0::command
