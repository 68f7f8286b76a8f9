#include "init_guess.hpp"

#include "init_words.hpp"

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <regex>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

using Words = std::set<std::string, std::less<>>;

bool any_of_words(const std::vector<std::string>& words, const Words& known) {
  return std::any_of(words.begin(), words.end(), [&](const auto& word) { return known.contains(word); });
}

// The last word of a name that says how long a program works; the others may only be of `counting`. Plurals are without
// their s.
const Words lasting{"epoch",   "iteration", "iter",   "step",  "round",   "pass",    "passe",  "generation", "update",
                    "episode", "timestep",  "nepoch", "niter", "maxiter", "numiter", "nround", "nstep"};
const Words counting{"n",     "num",      "number", "max",      "min", "total", "of",
                     "train", "training", "boost",  "boosting", "nb",  "no",    "count"};
// What a program works with, or for how long, not how well: as a word of any name …
const Words fixed{"seed",    "rng",      "thread",   "worker",   "job",       "port",      "host",     "hostname",
                  "server",  "address",  "addr",     "ip",       "url",       "uri",       "endpoint", "socket",
                  "user",    "username", "password", "token",    "verbose",   "verbosity", "verb",     "quiet",
                  "silent",  "debug",    "logging",  "loglevel", "display",   "progress",  "limit",    "lim",
                  "timeout", "deadline", "duration", "runtime",  "patience",  "stopping",  "mem",      "memory",
                  "ram",     "interval", "every",    "dir",      "directory", "path",      "file",     "filename",
                  "folder",  "resume",   "nfold",    "kfold",    "fold"};
// … with these endings …
constexpr std::array<std::string_view, 5> fixed_endings{"thread", "worker", "job", "proc", "seed"};
// … or alone, or with words that count or number them.
const Words fixed_alone{"cpu",    "core",  "node",  "process", "processe", "proc",   "gpu",
                        "device", "cuda",  "world", "cv",      "split",    "output", "out",
                        "log",    "print", "name",  "version", "repeat",   "rank",   "accelerator"};
const Words numbering{"id", "index", "level", "per", "task", "local", "visible", "size", "global", "use", "idx"};
const Words rare{"freq", "frequency", "period"};  // … of these
const Words reports{"log",     "eval",    "save", "print", "report", "checkpoint",
                    "display", "logging", "test", "val",   "update"};
// A text for one of these says what the program works on.
const Words fixed_texts{"data",       "dataset",    "input",     "in",    "train",   "valid",  "validation",
                        "test",       "metric",     "objective", "task",  "target",  "label",  "project",
                        "experiment", "tag",        "format",    "fmt",   "command", "config", "conf",
                        "eval",       "checkpoint", "prefix",    "column"};
const Words shares_from_0{"dropout", "drop", "momentum", "smoothing", "noise", "prob", "probability"};
const Words shares{"fraction",  "frac",    "ratio",      "share",      "subsample",
                   "colsample", "portion", "proportion", "percentile", "quantile"};
const Words to_100{"percent", "percentage", "pct", "percentile", "quality"};
// Numbers that are seldom whole ones, even if this one is.
const Words continuous{"cost",  "alpha", "lambda", "gamma", "sigma",   "rate", "lr",          "weight",   "penalty",
                       "scale", "decay", "reg",    "eps",   "epsilon", "tol",  "temperature", "tolerance"};
// Quantizers of video encoders; 51 is the most that all of them take.
const Words quantizers{"crf", "qp", "cq"};
// By how much something grows again and again: with 1 it does not.
bool is_growth(const std::vector<std::string>& words) {
  return !words.empty() && (words.back().ends_with("inc") || words.back() == "growth" || words.back() == "increase" ||
                            (words.back() == "factor" && any_of_words(words, {"reduction"})));
}
// Of an option whose name says nothing, such as -v.
const std::regex& fixed_description() {
  static const std::regex words(
      R"(thread|\bseed\b|\bfolds?\b|\bport\b|\bhost|verbos|timeout|time.?limit|limit on|\bseconds\b|processes|\bjobs?\b|\bcores?\b|iterations|epochs|passes|memory|\bcache|total number|logging|duration|how long)",
      std::regex::icase);
  return words;
}

std::optional<std::pair<std::string, std::string>> assignment(const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) return std::nullopt;
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

std::string parameter_name(std::string_view option) {
  while (option.starts_with('-') || option.starts_with('+')) option.remove_prefix(1);
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  const bool sound = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.';
  });
  return sound && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && name.front() != '.' && name.back() != '.'
             ? name
             : std::string();
}

std::string escaped(std::string_view word) {
  std::string out;
  for (const char c : word) {
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 &&
         word[1] != '.' && word != "--";
}

// A number, and what follows it: "4k", "0.5".
struct Quantity {
  std::string number, unit;
};
std::optional<Quantity> quantity(const std::string& text) {
  static const std::regex form(R"(([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([A-Za-z%]{0,3}))");
  std::smatch m;
  if (!std::regex_match(text, m, form)) return std::nullopt;
  return Quantity{m[1], m[2]};
}

bool names_place(const std::string& value) {
  static const std::regex machine(
      R"(localhost|[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?|.*://.*|[^ ]+@[^ ]+|[A-Za-z][\w.-]*:[0-9]{2,5})");
  if (value.find('/') != std::string::npos || value.starts_with("~") || std::regex_match(value, machine)) return true;
  std::error_code error;
  if (fs::exists(value, error)) return true;
  const auto dot = value.rfind('.');
  return dot != std::string::npos && dot + 1 < value.size() &&
         std::isalpha(static_cast<unsigned char>(value[dot + 1])) && value.size() - dot <= 6;
}

Domain whole_domain(const std::vector<std::string>& words, std::int64_t value, std::string& why) {
  constexpr std::int64_t small = 8;
  const auto powers = [&] {
    Domain domain{.type = "ordinal", .options = {}};
    for (std::int64_t size = std::max<std::int64_t>(value / 4, 1); size <= value * 4; size *= 2)
      domain.options.push_back(std::to_string(size));
    return domain;
  };
  const auto range = [](const char* type, std::int64_t low, std::int64_t high) {
    return Domain{.type = type, .low = static_cast<double>(low), .high = static_cast<double>(high), .options = {}};
  };
  if (value == 0) {
    why = "of that nothing can be guessed: a range of yours?";
    return range("integer", 0, 10);
  }
  if (any_of_words(words, {"batch", "minibatch", "bs", "block", "blocksize"}) && value >= 2) {
    why = "powers of two round it";
    return powers();
  }
  if (value <= small) {
    const bool grows = value > 1 && is_growth(words);
    why = grows ? "from 2 to its double" : "from 1 to its double";
    return range("integer", grows ? 2 : 1, 2 * value);
  }
  why = "from a quarter to four times";
  Domain domain = range("log_int", value / 4, value * 4);
  if (any_of_words(words, to_100) && value <= 100) domain.high = std::min(domain.high, 100.0);
  return domain;
}

// Between 0 and 1 the ends are no values, unless 0 means "none of it": many a share is refused there.
Domain real_domain(const std::vector<std::string>& words, double value, std::string& why) {
  const bool none = any_of_words(words, shares_from_0);
  const auto range = [](const char* type, double low, double high) {
    return Domain{.type = type, .low = low, .high = high, .options = {}};
  };
  if ((none || (value == 0 && any_of_words(words, shares))) && value >= 0 && value < 1) {
    why = "a share";
    return range("uniform", value > 0.9 ? std::max(0.0, 1 - 10 * (1 - value)) : 0,
                 value < 0.5 ? 0.5 : 1 - (1 - value) / 10);
  }
  if (any_of_words(words, shares) && value == 1) {
    why = "a share";
    return range("uniform", 0.25, 1);
  }
  const bool rate = any_of_words(words, {"lr", "rate", "eta", "lambda", "alpha", "reg", "penalty", "weight", "scale"});
  if (value >= 0.5 && value < 1 && !rate) {
    why = "a share";
    return range("uniform", std::max(value / 4, 1 - 10 * (1 - value)), 1 - (1 - value) / 10);
  }
  if (value > 0) {
    why = "ten times less to ten times more";
    if (value < 0.1) return range("log_uniform", value / 10, value * 10);
    if (value < 1) {
      why = "ten times less to almost 1";
      return range("log_uniform", value / 10, 0.99);
    }
    if (value > 1 && is_growth(words)) {
      why = "above 1, to ten times more";
      return range("log_uniform", 1 + (value - 1) / 10, value * 10);
    }
    return range("log_uniform", value / 10, value * 10);
  }
  const double width = value == 0 ? 1 : -value;
  why = "round it";
  return range("uniform", value - width, value + width);
}

// Puts a range within that of the help.
void restrict_range(Domain& domain, double value, const OptionHelp& help, std::string& why) {
  const bool fits = (!help.low || value >= *help.low) && (!help.high || value <= *help.high);
  if (!fits || domain.of_options()) return;
  const auto inner = [&](double bound, double away, bool open) {
    if (!open) return bound;
    return domain.whole() ? bound + (away > 0 ? 1 : -1) : bound + away;
  };
  const double low = help.low ? inner(*help.low, (value - *help.low) / 10, help.above_low) : domain.low;
  const double high = help.high ? inner(*help.high, (value - *help.high) / 10, help.below_high) : domain.high;
  const bool all = domain.whole() && help.low && help.high && high - low <= 20;
  if (!all && (!help.low || domain.low >= low) && (!help.high || domain.high <= high)) return;
  if (help.low && (all || domain.low < low)) domain.low = low;
  if (help.high && (all || domain.high > high)) domain.high = high;
  why = all ? "all that --help allows" : why + ", as --help allows";
  if (domain.type == "log_uniform" && domain.low <= 0) domain.type = "uniform";
  if (domain.type == "log_int" && (domain.low < 1 || all)) domain.type = "integer";
}

Domain domain_around(const std::vector<std::string>& words, const std::string& value, const OptionHelp& help,
                     std::string& why) {
  if (help.choices.size() > 1 && std::find(help.choices.begin(), help.choices.end(), value) != help.choices.end()) {
    why = "all that --help names";
    return {.type = "choice", .options = help.choices};
  }
  const Value parsed = detail::plain_value(value);
  if (std::holds_alternative<bool>(parsed)) {
    why = "yes or no";
    if (value == "True" || value == "False") return {.type = "choice", .options = {"False", "True"}};
    return {.type = "choice", .options = {"false", "true"}};
  }
  const auto* whole = std::get_if<std::int64_t>(&parsed);
  const auto* real = std::get_if<double>(&parsed);
  if (whole != nullptr || (real != nullptr && std::isfinite(*real))) {
    const double number = whole != nullptr ? static_cast<double>(*whole) : *real;
    if (help.type == "BOOL" && (value == "0" || value == "1")) {
      why = "yes or no";
      return {.type = "choice", .options = {"0", "1"}};
    }
    const bool share =
        (number == 0 || number == 1) && (any_of_words(words, shares) || any_of_words(words, shares_from_0));
    const bool counted = any_of_words(words, counting);
    const bool real_too = share || help.type == "FLOAT" ||
                          (help.type.empty() && !counted && number > 0 && any_of_words(words, continuous)) ||
                          (help.type.empty() && number == 1 && words == std::vector<std::string>{"c"});
    Domain domain = whole != nullptr && !real_too ? whole_domain(words, *whole, why) : real_domain(words, number, why);
    restrict_range(domain, number, help, why);
    constexpr double most_quantizer = 51;
    if (any_of_words(words, quantizers) && number < most_quantizer && domain.high > most_quantizer && !help.high) {
      domain.high = most_quantizer;
      why += ", to 51 at most";
    }
    return domain;
  }
  why = "add what else it may be";
  return {.type = "choice", .options = {value}};
}

std::string joined(const std::vector<std::string>& words, std::size_t count) {
  std::string key;
  for (std::size_t i = 0; i < count; ++i) key += words[i] + '\n';
  return key;
}

// A word of a script with its placeholders.
std::string script_word(const std::string& word) {
  const bool plain = word.find("{{") == std::string::npos && word.find("}}") == std::string::npos &&
                     std::all_of(word.begin(), word.end(),
                                 [](char c) { return detail::is_plain(c) || c == '{' || c == '}' || c == '='; });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

class Guesser {
 public:
  Guesser(const Helps& helps, const Pinned& pinned) : helps_(helps), pinned_(pinned) {}

  Guess guess(const std::vector<std::string>& command) {
    guess_.command = vary(command, std::vector<bool>(command.size(), false));
    if (guess_.space.empty()) {
      numbers_too_ = true;
      guess_.left.clear();
      guess_.command = vary(command, std::vector<bool>(command.size(), false));
    }
    list_others();
    return std::move(guess_);
  }

 private:
  const OptionHelp& about(const std::string& option) {
    static const OptionHelp unknown;
    const auto bare = option.substr(std::min(option.find_first_not_of("-+"), option.size()));
    if (help_ == nullptr) return unknown;
    const auto found = help_->find(bare);
    if (found == help_->end()) return unknown;
    for (const auto& name : found->second.names) given_.insert(name.substr(name.find_first_not_of('-')));
    return found->second;
  }

  std::vector<std::string> words_of(const std::string& option, const OptionHelp& help) const {
    auto words = name_words(option);
    const auto bare = option.substr(std::min(option.find_first_not_of("-+"), option.size()));
    constexpr std::size_t opaque = 2;
    if (bare.size() > opaque) return words;
    std::vector<std::string> more;
    for (const auto& name : help.names)
      if (name != option)
        for (auto& word : name_words(name)) more.push_back(std::move(word));
    if (help.value.find_first_of("|,{") == std::string::npos)
      for (auto& word : name_words(help.value)) more.push_back(std::move(word));
    return more.empty() ? words : more;
  }

  // Whether an option says with what means, or how long, a program works; the reason is noted.
  bool stays(const std::string& option, const std::string& value, const OptionHelp& help) {
    const auto words = words_of(option, help);
    const auto quantum = quantity(value);
    const Value parsed = detail::plain_value(value);
    const auto* whole = std::get_if<std::int64_t>(&parsed);
    const auto leave = [&](std::string_view why) {
      guess_.left.push_back(fmt::format("{} {}: {}", option, value, why));
      return true;
    };
    if (const auto pin = pinned_.find(parameter_name(option)); pin != pinned_.end()) return leave(pin->second);
    const auto name = name_words(option);
    const auto says_how_long = [&](const std::vector<std::string>& all) {
      if (all.empty() || !lasting.contains(all.back())) return false;
      return std::all_of(all.begin(), all.end() - 1, [](const auto& word) { return counting.contains(word); });
    };
    bool lasts = says_how_long(name);
    if (option.find_first_not_of('-') != std::string::npos && option.size() <= 2)
      for (const auto& other : help.names) lasts = lasts || says_how_long(name_words(other));
    if (lasts && whole != nullptr) {
      if (*whole > 0 && *whole <= 1'000'000'000) guess_.steps = static_cast<int>(*whole);
      return leave("how long it trains is for the schedule to say");
    }
    const bool time = !words.empty() && (words.back() == "time" || words.back() == "sec" || words.back() == "second");
    const bool report = any_of_words(words, reports) && (any_of_words(words, rare) || any_of_words(words, lasting));
    const bool holds_out = any_of_words(words, {"val", "valid", "validation", "test", "holdout"}) &&
                           any_of_words(words, {"split", "size", "fraction", "frac", "ratio", "share"});
    const bool random_state = any_of_words(words, {"random"}) && any_of_words(words, {"state"});
    const bool ending = std::any_of(words.begin(), words.end(), [](const auto& word) {
      return std::any_of(fixed_endings.begin(), fixed_endings.end(), [&](auto end) { return word.ends_with(end); });
    });
    const bool alone =
        any_of_words(words, fixed_alone) && std::all_of(words.begin(), words.end(), [](const auto& word) {
          return fixed_alone.contains(word) || counting.contains(word) || numbering.contains(word);
        });
    // How much there is to do, if that is said in bytes or the like.
    const bool amount = words == std::vector<std::string>{"size"} && quantum && !quantum->unit.empty();
    static const std::regex usual(R"(-[jv])");
    constexpr std::int64_t first_free_port = 1024;  // of users without privileges
    if (whole != nullptr && *whole >= first_free_port && (option == "-p" || option == "-P") && !help.known)
      return leave("a port?");
    const bool opaque = option.size() == 2 && (!help.known || std::regex_search(help.text, fixed_description()));
    if (any_of_words(words, fixed) || ending || alone || amount || time || report || holds_out || random_state ||
        (opaque && (help.known || std::regex_match(option, usual)))) {
      static const std::regex of_threads(R"(.*(?:thread|proc|job|worker|cpu|core)s?)");
      const bool threads =
          std::any_of(words.begin(), words.end(), [](const auto& word) { return std::regex_match(word, of_threads); });
      constexpr int max_threads = 4096;
      if (whole != nullptr && *whole > 0 && *whole <= max_threads &&
          (threads || option == "-j" || (opaque && help.text.find("thread") != std::string::npos)))
        guess_.threads = std::max(guess_.threads.value_or(1), static_cast<int>(*whole));
      return leave("this is hardly to be tuned");
    }
    constexpr std::int64_t most = std::int64_t{1} << 50;
    if (whole != nullptr && (*whole < 0 || *whole > most)) return leave("a value of a meaning of its own?");
    if (std::holds_alternative<std::string>(parsed) && !quantum) {
      const bool listed = std::find(help.choices.begin(), help.choices.end(), value) != help.choices.end();
      if (names_place(value)) return leave("it names a file or a machine");
      // ffmpeg -f null, tar -f -
      const bool file = option == "-f" || option == "-i" || option == "-o";
      if (value == "null" || value == "-" || (file && !listed)) return leave("a file or its format?");
      if (!listed && any_of_words(words, fixed_texts)) return leave("this is hardly to be tuned");
    }
    return false;
  }

  // The word that stands for an option's value, if the option is varied.
  std::optional<std::string> take(const std::string& option, const std::string& value, const OptionHelp& help) {
    if (stays(option, value, help)) return std::nullopt;
    const std::string name = parameter_name(option);
    if (name.empty() || used_.contains(name)) return std::nullopt;
    auto words = words_of(option, help);
    std::string number = value, unit;
    if (const auto quantum = quantity(value); quantum && !quantum->unit.empty()) {
      number = quantum->number;
      unit = quantum->unit;
    }
    std::erase(words, "");
    Parameter parameter{.name = name, .domain = {}, .given = number, .comment = {}};
    parameter.domain = domain_around(words, number, help, parameter.comment);
    if (!unit.empty()) fit_unit(parameter);
    if (in_script_ && parameter.domain.of_options() &&
        !std::all_of(parameter.domain.options.begin(), parameter.domain.options.end(),
                     [](const auto& one) { return detail::shell_quote(one) == one; }))
      return std::nullopt;
    parameter.comment = fmt::format("was {}: {}", value, parameter.comment);
    guess_.space.push_back(std::move(parameter));
    used_.insert(name);
    return "{" + name + "}" + escaped(unit);
  }

  // "64M" is mostly a power of two, "1k" any number.
  static void fit_unit(Parameter& parameter) {
    const Value parsed = detail::plain_value(parameter.given);
    const auto* whole = std::get_if<std::int64_t>(&parsed);
    constexpr std::int64_t large = 8;
    if (whole == nullptr || parameter.domain.of_options() || *whole <= 0) return;
    if (*whole > 1 && (*whole & (*whole - 1)) == 0)
      parameter.domain = whole_domain({"block"}, *whole, parameter.comment);
    else if (*whole < large)
      parameter.domain = real_domain({}, static_cast<double>(*whole), parameter.comment);
  }

  // "wlog=23,hlog=22": several options in one value.
  std::optional<std::string> take_several(const std::string& value) {
    static const std::regex items(R"(([A-Za-z][\w.-]*=[^,:=\s]+)([,:; ][A-Za-z][\w.-]*=[^,:=\s]+)*)");
    if (!std::regex_match(value, items)) return std::nullopt;
    std::string out;
    bool any = false;
    for (std::size_t begin = 0; begin < value.size();) {
      const auto end = std::min(value.find_first_of(",:; ", begin), value.size());
      const std::string one = value.substr(begin, end - begin);
      const auto equals = one.find('=');
      const auto placed = take(one.substr(0, equals), one.substr(equals + 1), about(one.substr(0, equals)));
      any = any || placed;
      out += escaped(one.substr(0, equals)) + "=" + (placed ? *placed : escaped(one.substr(equals + 1)));
      if (end < value.size()) out += value[end];
      begin = end + 1;
    }
    return any ? std::optional(out) : std::nullopt;
  }

  std::optional<std::string> take_value(const std::string& option, const std::string& value) {
    if (const auto several = take_several(value)) return several;
    return take(option, value, about(option));
  }

  std::vector<std::string> vary(const std::vector<std::string>& words, const std::vector<bool>& expands) {
    const Started started = started_by(words);
    std::vector<std::string> out;
    const auto found = helps_.find(joined(words, started.arguments));
    const auto* outer = std::exchange(help_, found == helps_.end() ? nullptr : &found->second);
    for (std::size_t i = 0; i < std::min(started.arguments, words.size()); ++i) {
      const bool variable = i < started.program && assigns_variable(words[i]) && !expands[i];
      if (started.script == i && !expands[i])
        out.push_back(vary_script(words[i]));
      else
        out.push_back(variable ? vary_variable(words[i]) : escaped(words[i]));
    }
    for (std::size_t i = started.arguments; i < words.size();) i += vary_argument(words, expands, started, i, out);
    help_ = outer;
    return out;
  }

  // OMP_NUM_THREADS=2, PYTHONUNBUFFERED=1: mostly of the system's libraries; switches are not guessed at.
  std::string vary_variable(const std::string& word) {
    const auto pair = assignment(word);
    const Value value = pair ? detail::plain_value(pair->second) : Value();
    const auto* whole = std::get_if<std::int64_t>(&value);
    if ((whole != nullptr && *whole > 1) || std::holds_alternative<double>(value)) {
      const OptionHelp unknown;
      if (const auto placed = take(pair->first, pair->second, unknown)) return escaped(pair->first) + "=" + *placed;
    }
    return escaped(word);
  }

  std::string vary_script(const std::string& script) {
    const bool outer = std::exchange(in_script_, true);
    struct Change {
      std::size_t begin, end;
      std::string text;
    };
    std::vector<Change> changes;
    for (const auto& command : shell_commands(script)) {
      std::vector<std::string> words;
      std::vector<bool> expands;
      for (const auto& word : command) {
        words.push_back(word.text);
        expands.push_back(word.expands);
      }
      const auto varied = vary(words, expands);
      for (std::size_t i = 0; i < words.size(); ++i)
        if (!expands[i] && varied[i] != escaped(words[i]))
          changes.push_back({command[i].begin, command[i].end, script_word(varied[i])});
    }
    in_script_ = outer;
    std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::string out;
    std::size_t at = 0;
    for (const auto& change : changes) {
      if (change.begin < at) continue;
      out += escaped(std::string_view(script).substr(at, change.begin - at)) + change.text;
      at = change.end;
    }
    return out + escaped(std::string_view(script).substr(at));
  }

  // Adds the argument at `i` to `out`, with its value, and returns how many words these are.
  std::size_t vary_argument(const std::vector<std::string>& words, const std::vector<bool>& expands,
                            const Started& started, std::size_t i, std::vector<std::string>& out) {
    const std::string& word = words[i];
    const auto literal = [&](std::size_t k) { return k < words.size() && !expands[k]; };
    const auto keep = [&](const std::string& text) { out.push_back(escaped(text)); };
    if (expands[i]) {
      keep(word);
      return 1;
    }
    if (const auto pair = assignment(word); pair && (is_option(word) || pair->first.find('/') == std::string::npos)) {
      const auto placed = take_value(pair->first, pair->second);
      out.push_back(escaped(pair->first) + "=" + (placed ? *placed : escaped(pair->second)));
      return 1;
    }
    if (!is_option(word)) return vary_positional(words, expands, started, i, out);
    const OptionHelp& help = about(word);
    const bool number_next = literal(i + 1) && quantity(words[i + 1]) && words[i + 1].front() != '-';
    // -var NAME 2.5, as of LAMMPS
    if (!help.flag && literal(i + 1) && literal(i + 2) && !number_next && !parameter_name(words[i + 1]).empty() &&
        !is_option(words[i + 1]) && quantity(words[i + 2]) && !names_place(words[i + 1]) && !help.known) {
      const auto placed = take(words[i + 1], words[i + 2], {});
      keep(word);
      keep(words[i + 1]);
      out.push_back(placed ? *placed : escaped(words[i + 2]));
      return 3;
    }
    static const std::regex glued(R"((-[A-Za-z])((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[A-Za-z%]{0,2}))");
    if (std::smatch m; !help.known && !number_next && std::regex_match(word, m, glued)) {
      const std::string option = m[1], value = m[2];
      const auto placed = take(option, value, about(option));
      out.push_back(option + (placed ? *placed : escaped(value)));
      return 1;
    }
    const bool has_value = i + 1 < words.size() && !is_option(words[i + 1]) &&
                           (!help.flag || (number_next && words[i + 1].front() != '-'));
    if (has_value) {
      const auto placed = expands[i + 1] ? std::nullopt : take_value(word, words[i + 1]);
      keep(word);
      out.push_back(placed ? *placed : escaped(words[i + 1]));
      return 2;
    }
    std::string bare = parameter_name(word);
    if (help.negatable && !bare.empty()) {
      const std::string dashes = word.substr(0, word.find_first_not_of('-'));
      std::string yes = word.substr(dashes.size());
      if (yes.starts_with("no-") || yes.starts_with("no_")) yes.erase(0, 3);
      bare = parameter_name(yes);
      if (!bare.empty() && !used_.contains(bare) && !pinned_.contains(bare)) {
        const bool underscore = std::any_of(help.names.begin(), help.names.end(),
                                            [](const auto& n) { return n.find("-no_") != std::string::npos; });
        Parameter parameter{
            .name = bare,
            .domain = {.type = "choice", .options = {dashes + yes, dashes + (underscore ? "no_" : "no-") + yes}},
            .given = word,
            .comment = "on or off"};
        if (std::any_of(help.names.begin(), help.names.end(),
                        [](const auto& n) { return n.find("[no]") != std::string::npos; }))
          parameter.domain.options[1] = dashes + "no" + yes;
        guess_.space.push_back(std::move(parameter));
        out.push_back("{" + bare + "}");
        used_.insert(bare);
        return 1;
      }
    }
    if (word != "--" && (i + 1 == words.size() || is_option(words[i + 1])))
      guess_.left.push_back(word + ": it has no value");
    keep(word);
    return 1;
  }

  // A name before its number, as in "ratio 0.1"; or, if nothing else may vary, any number.
  std::size_t vary_positional(const std::vector<std::string>& words, const std::vector<bool>& expands,
                              const Started& started, std::size_t i, std::vector<std::string>& out) {
    const auto keep = [&](const std::string& text) { out.push_back(escaped(text)); };
    const auto number = quantity(words[i]);
    if (number && numbers_too_ && i > started.program) {
      const std::string name = fmt::format("argument_{}", i - started.arguments + 1);
      const auto placed = take(name, words[i], {});
      out.push_back(placed ? *placed : escaped(words[i]));
      return 1;
    }
    const bool first = i == started.arguments;  // a number after it may be a number of its own
    if (!number && !first && i + 1 < words.size() && !expands[i + 1] && quantity(words[i + 1]) &&
        !parameter_name(words[i]).empty() && !names_place(words[i]) && !is_option(words[i + 1])) {
      const auto placed = take(words[i], words[i + 1], {});
      keep(words[i]);
      out.push_back(placed ? *placed : escaped(words[i + 1]));
      return 2;
    }
    // A number as an option: gzip -9
    static const std::regex level("-[1-9][0-9]?");
    if (std::regex_match(words[i], level)) {
      if (const auto placed = take("level", words[i].substr(1), {})) {
        Parameter& parameter = guess_.space.back();
        constexpr double highest = 9;
        const std::string given = parameter.given;
        parameter.domain = {.type = "integer", .low = 1, .high = std::max(highest, std::stod(given)), .options = {}};
        parameter.comment = fmt::format("was {}: a level", given);
        out.push_back("-" + *placed);
        return 1;
      }
    }
    if (number) guess_.left.push_back(words[i] + ": a number without a name");
    keep(words[i]);
    return 1;
  }

  // Options of numbers that were not given.
  void list_others() {
    constexpr std::size_t most = 20;
    std::vector<std::string> others;
    for (const auto& [program, help] : helps_)
      for (const auto& [name, about] : help) {
        const Value value = detail::plain_value(about.fallback);
        const auto words = name_words(name);
        const bool shown = std::any_of(about.names.begin(), about.names.end(), [&](const auto& one) {
          return given_.contains(one.substr(one.find_first_not_of('-')));
        });
        if (shown || about.names.empty() || about.names.back().find(name) == std::string::npos ||
            any_of_words(words, fixed) || (!words.empty() && lasting.contains(words.back())) ||
            (!std::holds_alternative<std::int64_t>(value) && !std::holds_alternative<double>(value)))
          continue;
        others.push_back(
            fmt::format("{}, which was not given: by --help it is {}", about.names.back(), about.fallback));
      }
    for (std::size_t i = 0; i < std::min(others.size(), most); ++i) guess_.left.push_back(others[i]);
    if (others.size() > most) guess_.left.push_back(fmt::format("{} more options of --help", others.size() - most));
  }

  const Helps& helps_;
  const Pinned& pinned_;
  const CommandHelp* help_ = nullptr;  // of the program whose arguments are read
  Guess guess_;
  std::set<std::string> used_, given_;
  bool in_script_ = false, numbers_too_ = false;
};

}  // namespace

std::string number_text(double x) {
  std::string text = fmt::format("{:.4g}", x);
  if (const auto e = text.find('e'); e != std::string::npos && text.find('.') == std::string::npos)
    text.insert(e, ".0");
  return text;
}

std::string Domain::text() const {
  if (whole())
    return fmt::format("{{{}: [{}, {}]}}", type, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
  if (!of_options()) return fmt::format("{{{}: [{}, {}]}}", type, number_text(low), number_text(high));
  std::vector<std::string> texts;
  for (const auto& option : options) {
    const Value value = detail::plain_value(option);
    const bool number = std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
    texts.push_back(number && quantity(option) ? option : yaml_text(option));
  }
  return fmt::format("{{{}: [{}]}}", type, fmt::join(texts, ", "));
}

std::string yaml_text(const std::string& text) {
  static const std::regex plain("[A-Za-z_./][A-Za-z0-9_./=+-]*");
  static const std::set<std::string> words{"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::regex_match(text, plain) && !words.contains(lower) && text.front() != '.') return text;
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

void move_file(Guess& guess, const std::string& from, const std::string& to) {
  const std::string name = escaped(from);
  const auto within = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./").find(c) != std::string_view::npos;
  };
  for (auto& word : guess.command)
    for (auto at = word.find(name); at != std::string::npos; at = word.find(name, at)) {
      const auto end = at + name.size();
      const bool whole = (at == 0 || !within(word[at - 1])) && (end == word.size() || !within(word[end]));
      if (whole) word.replace(at, name.size(), to);
      at += whole ? to.size() : name.size();
    }
  // It is no longer as it was.
  std::erase_if(guess.left, [&](const auto& left) { return left.find(" " + from + ": ") != std::string::npos; });
}

Guess guess_from(const std::vector<std::string>& command, const Helps& helps, const Pinned& pinned) {
  return Guesser(helps, pinned).guess(command);
}

namespace {

// Words after the program that choose what it does, such as "supervised" of fastText.
std::size_t with_subcommands(const std::vector<std::string>& words, std::size_t arguments) {
  std::size_t end = arguments;
  static const std::regex plain("[A-Za-z][A-Za-z0-9_-]*");
  std::error_code error;
  while (end < words.size() && std::regex_match(words[end], plain) && !fs::exists(words[end], error)) ++end;
  return end;
}

bool has_options(const std::vector<std::string>& words, std::size_t arguments) {
  return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(std::min(arguments, words.size())), words.end(),
                     [](const auto& word) { return is_option(word) || assignment(word); });
}

}  // namespace

std::vector<HelpRun> help_runs(const std::vector<std::string>& command) {
  std::vector<HelpRun> runs;
  const Started outer = started_by(command);
  const auto prefix = [](const std::vector<std::string>& words, std::size_t end) {
    return std::vector<std::string>(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(end));
  };
  if (!outer.script) {
    if (has_options(command, outer.arguments))
      runs.push_back({joined(command, outer.arguments), prefix(command, with_subcommands(command, outer.arguments))});
    return runs;
  }
  std::string before;  // cd and the like, which the commands after it need
  const auto with_script = [&](const std::string& script) {
    auto words = command;
    words.resize(*outer.script + 1);
    words.back() = script;
    return words;
  };
  for (const auto& one : shell_commands(command[*outer.script])) {
    std::vector<std::string> words;
    std::string text;
    bool expands = false;
    for (const auto& word : one) {
      words.push_back(word.text);
      text += (text.empty() ? "" : " ") + command[*outer.script].substr(word.begin, word.end - word.begin);
    }
    const bool variables =
        std::all_of(words.begin(), words.end(), [](const auto& word) { return assigns_variable(word); });
    static const Words preparing{"cd", "export", "source", ".", "ulimit", "module", "set", "umask"};
    if (variables || preparing.contains(words.front())) {
      before += text + "; ";
      continue;
    }
    const Started inner = started_by(words);
    if (inner.script || !has_options(words, inner.arguments)) continue;
    const auto end = with_subcommands(words, inner.arguments);
    for (std::size_t i = 0; i < end; ++i) expands = expands || one[i].expands;
    if (expands) continue;
    const auto& script = command[*outer.script];
    runs.push_back({joined(words, inner.arguments),
                    with_script(before + script.substr(one.front().begin, one[end - 1].end - one.front().begin)),
                    true});
  }
  constexpr std::size_t most = 4;
  if (runs.size() > most) runs.resize(most);
  return runs;
}

}  // namespace hypertune::inline v0::command
