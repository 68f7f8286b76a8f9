#include "init_metrics.hpp"

#include "init_words.hpp"
#include "metric_names.hpp"

#include <hypertune/local/number_text.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

namespace hypertune::inline v0::command {

namespace {

using Names = std::set<std::string, std::less<>>;

bool has_any(const std::vector<std::string>& words, const Names& names) {
  return std::any_of(words.begin(), words.end(), [&](const auto& word) { return names.contains(word); });
}

std::string metric_name(std::string_view printed) {
  std::string out;
  for (const char c : printed) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (kept)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && (out.back() == '_' || out.back() == '-' || out.back() == '.')) out.pop_back();
  // "valid_1's auc" is valid_1_auc
  for (auto at = out.find("_s_"); at != std::string::npos; at = out.find("_s_"))
    if (const auto s = printed.find("'s "); s != std::string_view::npos)
      out.erase(at, 2);
    else
      break;
  return hypertune::detail::reserved_in_report_lines(out).empty() ? out : out + "_";
}

std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos && c != '/') out += '\\';
    out += c;
  }
  return out;
}

// A number at the beginning of a text, and what follows it at once.
struct Printed {
  double value = 0;
  std::string unit;
  std::size_t length = 0;
  bool grouped = false;
};
std::optional<Printed> number_at(std::string_view text) {
  constexpr std::size_t longest = 80;
  const auto part = text.substr(0, longest);
  const auto number = local::number_at_begin(part);
  if (!number) return std::nullopt;
  Printed out{.value = number->value, .unit = number->letters, .length = number->length, .grouped = number->grouped};
  const auto digit = [&](std::size_t i) {
    return i < part.size() && std::isdigit(static_cast<unsigned char>(part[i])) != 0;
  };
  if (out.unit.empty() && part.substr(out.length).starts_with('/') && digit(out.length + 1)) {  // 90/100
    const auto begin = out.length++;
    while (digit(out.length)) ++out.length;
    out.unit = part.substr(begin, out.length - begin);
  }
  if (out.length == part.size()) return out;
  const auto next = static_cast<unsigned char>(part[out.length]);
  const bool goes_on =
      std::isalnum(next) != 0 || std::string_view("-+#%/:").find(part[out.length]) != std::string_view::npos ||
      (std::string_view(".,_'").find(part[out.length]) != std::string_view::npos && digit(out.length + 1));
  return goes_on ? std::nullopt : std::optional(out);
}

// The name that ends at the end of a text: "SSIM Mean Y" of "x264 [info]: SSIM Mean Y".
std::string name_before(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  std::size_t begin = text.size();
  if (text.ends_with(')')) {
    const auto open = text.rfind('(');
    if (open == std::string_view::npos) return {};
    begin = open;
    if (begin > 0 && text[begin - 1] == ' ') --begin;
  }
  const auto within = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-@'./%^#").find(c) != std::string_view::npos;
  };
  constexpr std::size_t max_words = 5;
  std::size_t words = 0;
  while (begin > 0 && words < max_words) {
    if (text[begin - 1] == ' ' && words > 0 && begin > 1 && within(text[begin - 2])) {
      // Up to a number, which changes, or another value: "epoch 3 loss", "bitrate=N/A speed"
      std::size_t first = begin - 1;
      while (first > 0 && within(text[first - 1])) --first;
      if (std::isdigit(static_cast<unsigned char>(text[first])) != 0 || text[first] == '-' || text[first] == '.' ||
          (first > 0 && (text[first - 1] == '=' || text[first - 1] == ':')))
        break;
      begin = first;
    } else if (within(text[begin - 1])) {
      while (begin > 0 && within(text[begin - 1])) --begin;
    } else {
      break;
    }
    ++words;
  }
  std::string_view name = text.substr(begin);
  while (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) == 0 && name.front() != '(')
    name.remove_prefix(1);
  if (name.starts_with('(') && name.ends_with(')')) name = name.substr(1, name.size() - 2);
  constexpr std::size_t longest = 60;
  if (name.empty() || name.size() > longest || std::isalpha(static_cast<unsigned char>(name.front())) == 0) return {};
  return std::string(name);
}

enum class Kind { score, rate, time, count, unknown };

const Names times{"time", "second",  "sec",      "msec",    "usec",    "nsec",      "ms",   "us",
                  "ns",   "latency", "duration", "elapsed", "runtime", "wallclock", "wall", "delay"};
const Names counts{"conflict", "node",  "iteration", "restart", "evaluation",  "miss",    "misse",
                   "size",     "bytes", "byte",      "memory",  "bitrate",     "kb",      "gap",
                   "cycle",    "swap",  "energy",    "cost",    "propagation", "decision"};
const Names speeds{"fps",       "tps", "qps",        "rps",   "iops",   "ops",    "speed",
                   "bandwidth", "bw",  "throughput", "flops", "gflops", "mflops", "nps"};

// Of something sent or stored less is mostly better: bits, where bytes are what a disk does.
bool is_bit_rate(const FoundMetric& metric) {
  static const std::regex bits(R"(.*(?:\b[kKMG]?b(?:its?)?/s|\b[kKMG]?bps)\b.*)");
  return has_any(name_words(metric.name), {"bitrate"}) || std::regex_match(metric.printed, bits) ||
         (metric.units.size() == 1 && std::regex_match(*metric.units.begin(), bits));
}

bool is_rate(const FoundMetric& metric) {
  if (is_bit_rate(metric)) return false;
  // "505.2 samples/s loss 1.1": its name may begin with what stood before it.
  if (const auto words = name_words(metric.name); !words.empty() && has_any({words.back()}, {"loss", "error", "err"}))
    return false;
  static const std::regex per(R"(.*(?:/ ?s(?:ec|econd)?|per second|per sec|/min|it/s)\b.*)", std::regex::icase);
  return has_any(name_words(metric.printed), speeds) || std::regex_match(metric.printed, per) ||
         (metric.units.size() == 1 && std::regex_match(*metric.units.begin(), per));
}

Kind kind_of(const FoundMetric& metric) {
  const auto words = name_words(metric.name);
  static const std::regex at(R"((?:.*\W)?[pr]@[0-9]+)", std::regex::icase);
  if (is_rate(metric)) return Kind::rate;
  if (mode_of_name(metric.name) || std::regex_match(metric.printed, at)) {
    return has_any(words, {"latency", "cost"}) ? Kind::time : Kind::score;
  }
  if (metric.amount) return Kind::rate;
  if (has_any(words, times) || metric.unit() == "seconds") return Kind::time;
  if (has_any(words, counts) || is_bit_rate(metric)) return Kind::count;
  return Kind::unknown;
}

}  // namespace

bool is_counter(const FoundMetric& metric) {
  const auto words = name_words(metric.name);
  static const Names where{"epoch", "step", "iter", "iteration", "round", "batch", "eta", "lr", "episode", "timestep"};
  if (has_any(words, {"learning"}) && has_any(words, {"rate"})) return true;
  if (words.size() <= 2 && has_any(words, where) && !has_any(words, times) && !is_rate(metric)) return true;
  // {"i": 1, …}, {"n": 100, …}, {"n": 200, …}: by its values, if its name says nothing
  static const Names indices{"i", "j", "k", "n", "t", "it", "idx", "index"};
  if (kind_of(metric) != Kind::unknown || metric.values.empty()) return false;
  if (words.size() == 1 && has_any(words, indices) && metric.json) return true;
  const auto& first = metric.values.front();
  if (first.size() < 3) return false;
  const double by = first[1] - first[0];
  for (std::size_t i = 1; i < first.size(); ++i)
    if (!(by > 0) || by != std::floor(by) || first[i] - first[i - 1] != by) return false;
  return true;
}

namespace {

int rank_of(const FoundMetric& metric, const std::vector<std::string>& command) {
  auto words = name_words(metric.name);
  const Kind kind = kind_of(metric);
  int rank = kind == Kind::score ? 40 : kind == Kind::rate ? 24 : kind == Kind::time ? 16 : kind == Kind::count ? 8 : 0;
  static const Names validation{"val",     "valid", "validation", "dev",   "holdout",
                                "heldout", "held",  "cv",         "cross", "oof"};
  static const Names test{"test", "eval", "evaluation"};
  const bool learns = kind == Kind::score || kind == Kind::unknown;
  if (learns && has_any(words, validation))
    rank += 100;
  else if (learns && has_any(words, test))
    rank += 90;
  if (has_any(words, {"train", "training"})) rank -= 6;
  if (kind == Kind::score && mode_of_name(metric.name) != Mode::minimize) rank += 2;
  if (has_any(words, {"average", "avg", "mean", "total", "overall", "best", "final"})) rank += 1;
  if (has_any(words, {"min", "max", "stdev", "std", "stddev", "sum", "var", "variance"})) rank -= 4;
  if (is_counter(metric)) rank -= 200;
  // A setting that is shown, "Number of threads: 2"
  if (kind != Kind::score && kind != Kind::rate && !metric.values.empty()) {
    const auto& first = metric.values.front();
    for (const auto& word : command) {
      const auto number = number_at(word.substr(word.rfind('=') + 1));
      if (number && !first.empty() &&
          std::all_of(first.begin(), first.end(), [&](double v) { return v == number->value; })) {
        rank -= 200;
        break;
      }
    }
  }
  if (metric.constant()) rank -= 500;
  if (metric.weak) rank -= 3;
  return rank;
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return text;
}

// Whether runs with other parameters printed other values.
bool follows(const FoundMetric& metric) {
  const auto& first = metric.values.front();
  return std::any_of(metric.values.begin(), metric.values.end(), [&](const auto& run) {
    const auto both = std::min(run.size(), first.size());  // a run may have been ended early
    return !std::equal(run.begin(), run.begin() + static_cast<std::ptrdiff_t>(both), first.begin(),
                       [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
  });
}

const FoundMetric* best_of(const std::vector<FoundMetric>& found, const std::vector<std::string>& words, bool json) {
  const FoundMetric* best = nullptr;
  int best_rank = 0;
  for (const auto& one : found) {
    if (one.json != json || one.values.empty() || one.values.front().empty() || one.echo()) continue;
    const int rank = rank_of(one, words);
    // Several sets are numbered with the one of training first. Of times and the like, what comes last is the total.
    const bool later = best != nullptr && one.order > best->order &&
                       (without_digits(one.name) == without_digits(best->name) || kind_of(one) != Kind::score);
    if (best == nullptr || rank > best_rank || (rank == best_rank && later)) {
      best = &one;
      best_rank = rank;
    }
  }
  return best;
}

}  // namespace

std::string FoundMetric::unit() const {
  auto found = local::NumberUnit::none;
  for (const auto* letters : {&units, &apart})
    for (const auto& one : *letters) {
      if (one.empty()) continue;
      const auto unit = local::unit_of_letters(std::string_view(one).substr(0, one.find(' ')));
      if (unit == local::NumberUnit::none || (found != local::NumberUnit::none && found != unit)) return {};
      found = unit;
    }
  if (found == local::NumberUnit::none) return grouped && units == std::set<std::string>{""} ? "count" : "";
  return std::string(local::name_of(found));
}

bool FoundMetric::echo() const {
  if (!repeats) return false;
  const auto words = name_words(name);
  const auto ends = [](const auto& all, const auto& part) {
    return all.size() >= part.size() && std::equal(part.rbegin(), part.rend(), all.rbegin());
  };
  return std::any_of(repeats->begin(), repeats->end(), [&](const auto& parameter) {
    const auto its = name_words(parameter);
    return is_counter(*this) || ends(words, its) || ends(its, words);
  });
}

std::string FoundMetric::expression(const std::vector<FoundMetric>& others) const {
  const bool word = !before.empty() && std::isalnum(static_cast<unsigned char>(before.front())) != 0;
  const bool mistaken = std::any_of(others.begin(), others.end(), [&](const FoundMetric& one) {
    return !one.json && one.printed.size() > printed.size() && one.printed.ends_with(printed);
  });
  const std::string begin = !word ? "" : mistaken ? "(?:^ *|[,;:|)\\]}] *)" : "\\b";
  // The group is all that is printed, up to a space where that is enough: a number is never cut.
  const std::string special = "(?:[nN]a[nN]|[iI]nf(?:inity)?|";
  const std::string any = alone ? "(\\S+)" : "([-+]?" + special + "[0-9.](?:[-+0-9A-Za-z.#%]|,(?=[0-9]))*))";
  const bool named = !unit().empty();
  const bool one = units.size() == 1 && !units.begin()->empty() && !named;
  if (one) {
    const std::string digits = alone ? any : "([-+]?" + special + "[0-9.](?:[-+0-9.]|[eEdD](?=[-+0-9])|,(?=[0-9]))*))";
    return begin + before + digits + literal(*units.begin()) + (after.empty() ? "(?![A-Za-z0-9/])" : after);
  }
  return begin + before + any + (after.empty() && !alone && !named ? "(?![/%])" : after);
}

bool FoundMetric::constant() const {
  std::optional<double> first;
  std::size_t count = 0;
  for (const auto& run : values)
    for (const double value : run) {
      ++count;
      if (!first) first = value;
      if (value != *first && !(std::isnan(value) && std::isnan(*first))) return false;
    }
  return count > 1;
}

namespace {

void note_what_follows(FoundMetric& metric, const std::string& line, std::size_t end) {
  static const std::regex unit(
      R"(^ ((?:(?:[mun]|µ|μ)?s|[mun]?secs?|(?:milli|micro|nano)?seconds?|min|minutes?|[kKMGT]?i?B|bytes?)(?: per [a-z]+)?)(?![A-Za-z/])|^ (%))");
  static const std::regex for_a_time(R"(\bfor [0-9.]+ ?s)"), in_time(R"(^ (?:[^ ]+ ){1,3}in [0-9.]+ ?s)");
  constexpr std::size_t longest = 80;
  const std::string rest = line.substr(std::min(end, line.size()), longest);
  std::smatch m;
  metric.apart.insert(std::regex_search(rest, m, unit) ? m[m[1].matched ? 1 : 2].str() : std::string());
  metric.amount =
      metric.amount || (std::regex_search(rest, in_time) &&
                        std::regex_search(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end), for_a_time));
  const auto last = line.find_first_not_of(",;:.!?)]}'\"", end);
  metric.alone = metric.alone && (last == std::string::npos || line[last] == ' ' || line[last] == '\t');
}

}  // namespace

FoundMetric& MetricFinder::metric(const std::string& name, bool json) {
  const auto [place, fresh] = places_.try_emplace({name, json}, found_.size());
  if (fresh) {
    found_.emplace_back();
    found_.back().name = json ? name : metric_name(name);
    found_.back().printed = name;
    found_.back().json = json;
  }
  return found_[place->second];
}

void MetricFinder::begin_run(const std::map<std::string, std::string>& parameters) {
  ++runs_;
  parameters_.clear();
  for (const auto& [name, text] : parameters)
    if (const auto number = number_at(text)) parameters_.emplace_back(name, number->value);
}

void MetricFinder::add(FoundMetric& metric, double value) {
  std::set<std::string> same;  // it may be printed with few digits
  constexpr double digits = 0.05;
  for (const auto& [name, given] : parameters_)
    if (std::abs(value - given) <= digits * std::abs(given)) same.insert(name);
  if (metric.repeats) std::erase_if(same, [&](const auto& name) { return !metric.repeats->contains(name); });
  metric.repeats = std::move(same);
  constexpr std::size_t most = 1000;  // of a run
  metric.values.resize(std::max(metric.values.size(), runs_));
  if (runs_ == 1) metric.order = ++order_;
  auto& run = metric.values[runs_ - 1];
  if (run.size() < most) run.push_back(value);
}

bool MetricFinder::add_line(std::string_view line, bool reports) {
  constexpr std::size_t longest = 4096, max_metrics = 2000;
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || found_.size() > max_metrics) return false;
  if (reports && line[begin] == '{')
    if (const auto report = local::parse_report_line(line); report && !report->metrics.empty()) {
      for (const auto& [name, value] : report->metrics) add(metric(name, true), value);
      return true;
    }
  const std::string part(line.substr(0, longest));
  static const std::regex separator(R"(['"]? *[=:] *|['"]?[ \t]*\t[ \t]*| +\| +| +)");
  std::size_t used = 0;
  for (std::sregex_iterator it(part.begin(), part.end(), separator), last; it != last; ++it) {
    const auto at = static_cast<std::size_t>(it->position(0)), end = at + static_cast<std::size_t>(it->length(0));
    const auto number = number_at(std::string_view(part).substr(end));
    const std::string between = it->str();
    const bool sure = between.find_first_of("=:\t") != std::string::npos;
    if (!number) continue;
    std::string name = at < used ? std::string() : name_before(std::string_view(part).substr(0, at));
    const bool bar = between.find('|') != std::string::npos;
    bool weak = false;
    // Without a sign between them a number belongs to a name only if that says so, or the line has nothing else.
    if (!sure && !name.empty() && !bar) {
      static const std::regex nothing_more(
          R"(^(?: (?:(?:[mun]|µ|μ)?s|[mun]?secs?|seconds?|min|minutes?|[kKMGT]?i?B|bytes?|%))?[ \t\r.]*$)");
      const auto words = name_words(name);
      const bool all =
          at == begin + name.size() &&
          std::regex_search(part.begin() + static_cast<std::ptrdiff_t>(end + number->length), part.end(), nothing_more);
      weak = words.empty() || !mode_of_name(words.back());
      if (!all && weak) name.clear();
    }
    if (bar && part.find_first_not_of(' ', end + number->length) != part.find('|', end)) name.clear();
    Kind seen = Kind::unknown;
    if (!name.empty()) {
      FoundMetric& found = metric(name, false);
      seen = kind_of(found);
      const bool quoted = between.front() == '"' || between.front() == '\'';
      const std::string sign = bar                                       ? " *\\| *"
                               : between.find('\t') != std::string::npos ? "[ \\t]+"
                               : !sure                                   ? " +"
                               : between.find('=') != std::string::npos  ? " *= *"
                                                                         : " *: *";
      const bool closed = part[at - 1] == ')' && !name.ends_with(')');
      found.weak = weak;
      found.before = literal(name) + (closed ? "\\)" : "") + (quoted ? std::string("['\"]") : "") + sign;
      note_what_follows(found, part, end + number->length);
      found.units.insert(number->unit);
      found.grouped = found.grouped || number->grouped;
      add(found, number->value);
      used = end + number->length;
    }
    // "25.3 fps", "1200 requests per second"
    if (!number->unit.empty() || seen == Kind::score || seen == Kind::rate) continue;
    static const std::regex rate(
        R"(^ ((?:[A-Za-z]+ ){0,2}(?:per (?:second|sec|minute)|fps|[A-Za-z]+/s(?:ec)?))(?![A-Za-z/]))");
    const std::string rest = part.substr(std::min(end + number->length, part.size()), 80);
    if (std::smatch m; std::regex_search(rest, m, rate)) {
      FoundMetric& found = metric(" " + m[1].str(), false);
      note_what_follows(found, part, end + number->length);
      found.alone = found.alone && (end == 0 || part[end - 1] == ' ' || part[end - 1] == '\t');
      found.after = " +" + literal(m[1].str()) + "(?![A-Za-z/])";
      found.units.insert("");
      add(found, number->value);
    }
  }
  return false;
}

const FoundMetric* metric_to_tune(const std::vector<FoundMetric>& found, const std::vector<std::string>& words) {
  const bool any_json = std::any_of(found.begin(), found.end(), [](const auto& one) { return one.json; });
  const FoundMetric* best = best_of(found, words, any_json);
  const bool says_nothing =
      best == nullptr || ((is_counter(*best) || (best->constant() && best->values.size() > 1)) && !follows(*best));
  if (any_json && !says_nothing) return best;
  if (any_json) best = best_of(found, words, false);  // its lines of JSON may say only how far it is
  if (best == nullptr) return best;
  if (best->constant() && best->values.size() > 1) return nullptr;
  // A name that says nothing counts only if its number follows the parameters.
  if (is_counter(*best) || kind_of(*best) == Kind::unknown) return follows(*best) ? best : nullptr;
  return best;
}

bool improves(const FoundMetric& metric) {
  const auto mode = mode_of_found(metric);
  static const Names clocks{"time", "second", "sec", "latency", "duration", "elapsed", "runtime", "wall", "wallclock"};
  if (!mode || is_rate(metric) || has_any(name_words(metric.name), clocks) || metric.unit() == "seconds" ||
      metric.values.empty())
    return false;
  const auto& first = metric.values.front();
  constexpr std::size_t fewest = 3;
  if (first.size() < fewest) return false;
  for (std::size_t i = 1; i < first.size(); ++i)
    if (*mode == Mode::minimize ? !(first[i] <= first[i - 1]) : !(first[i] >= first[i - 1])) return false;
  return first.front() != first.back();
}

bool is_score(const FoundMetric& metric) { return metric.json || kind_of(metric) == Kind::score; }

std::optional<Mode> mode_of_found(const FoundMetric& metric) {
  switch (kind_of(metric)) {
    case Kind::rate: return Mode::maximize;
    case Kind::time:
    case Kind::count: return Mode::minimize;
    case Kind::score: return mode_of_name(metric.name).value_or(Mode::maximize);
    case Kind::unknown: break;
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0::command
