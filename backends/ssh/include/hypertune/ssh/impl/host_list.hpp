// Reading lists of hosts.
#pragma once

#include <hypertune/config/units.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/ssh/host_list.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::ssh {
namespace detail {

inline double host_number(std::string_view key, std::string_view text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > 1e9)
    fail(Errc::input, "{}: '{}' must be a number from 0, not '{}'", where, key, text);
  return value;
}

inline void set_label(HostSpec& host, std::string_view text, const std::string& where) {
  const auto colon = text.find_first_of(":=");
  if (text.empty() || colon == 0) fail(Errc::input, "{}: '{}' is no label: write NAME or NAME:VALUE", where, text);
  host.labels[std::string(text.substr(0, colon))] =
      colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
}

/// Sets one key of a host, in the words of all text forms.
inline void set_key(HostSpec& host, std::string_view key, std::string_view text, const std::string& where) {
  if (key == "slots") {
    const double slots = host_number(key, text, where);
    if (slots != std::floor(slots)) fail(Errc::input, "{}: 'slots' must be a whole number, not '{}'", where, text);
    host.slots = static_cast<int>(slots);
  } else if (key == "cpus") {
    host.cpus = host_number(key, text, where);
  } else if (key == "gpus") {
    host.gpus = host_number(key, text, where);
  } else if (key == "memory") {
    const auto size = parse_size(text);
    if (!size) fail(Errc::input, "{}: 'memory' must be a size such as 64GiB, not '{}'", where, text);
    host.memory = *size;
  } else if (key == "labels") {
    while (!text.empty()) {
      const auto comma = std::min(text.find(','), text.size());
      set_label(host, text.substr(0, comma), where);
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  } else if (key.starts_with("custom.") && key.size() > 7) {
    host.custom[std::string(key.substr(7))] = host_number(key, text, where);
  } else {
    fail(Errc::input, "{}: unknown key '{}' of a host{}", where, key,
         hypertune::detail::suggestion(
             key, std::vector<std::string_view>{"slots", "cpus", "gpus", "memory", "labels", "custom.NAME"}));
  }
}

inline HostSpec host_from_json(const boost::json::value& value, const std::string& where) {
  HostSpec host;
  if (value.is_string()) {
    host.name = value.as_string();
    return host;
  }
  if (!value.is_object())
    fail(Errc::input, "{}: a host must be a name or an object with its keys, not {}", where,
         boost::json::serialize(value));
  const auto text_of = [](const boost::json::value& each) {
    return each.is_string() ? std::string(each.as_string()) : boost::json::serialize(each);
  };
  for (const auto& [name, each] : value.as_object()) {
    const std::string_view key(name.data(), name.size());
    if (each.is_null()) continue;
    if (key == "name") {
      if (!each.is_string()) fail(Errc::input, "{}: a host's 'name' must be a text, not {}", where, text_of(each));
      host.name = each.as_string();
    } else if (key == "labels" && each.is_object()) {
      for (const auto& [label, what] : each.as_object()) host.labels[std::string(label)] = text_of(what);
    } else if (key == "labels" && each.is_array()) {
      for (const auto& label : each.as_array()) set_label(host, text_of(label), where);
    } else if (key == "custom" && each.is_object()) {
      for (const auto& [custom, amount] : each.as_object())
        set_key(host, "custom." + std::string(custom), text_of(amount), where);
    } else {
      const auto text = text_of(each);
      // A whole number may stand as 4.0 or 4E0 in JSON.
      set_key(host, key, each.is_double() ? fmt::format("{}", each.as_double()) : text, where);
    }
  }
  return host;
}

}  // namespace detail

HYPERTUNE_SSH_INLINE void validate_hosts(const HostList& hosts, const std::string& where) {
  std::set<std::string_view> names;
  for (const auto& host : hosts) {
    if (host.name.empty()) fail(Errc::input, "{}: a host has no name", where);
    if (host.name.front() == '-' || host.name.find_first_of(" \t\n\r'\"\\`$;&|<>(){}*?!#,") != std::string::npos)
      fail(Errc::input, "{}: '{}' is not the name of a host", where, host.name);
    if (!names.insert(host.name).second)
      fail(Errc::input, "{}: host '{}' is listed twice: give it once, with slots=N for several trials", where,
           host.name);
  }
}

HYPERTUNE_SSH_INLINE HostList parse_host_lines(std::string_view text, const std::string& where) {
  HostList hosts;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const auto place = fmt::format("{}:{}", where, number);
    HostSpec host;
    for (;;) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
      if (line.empty()) break;
      const auto word = line.substr(0, std::min(line.find_first_of(" \t\r"), line.size()));
      line.remove_prefix(word.size());
      const auto equals = word.find('=');
      if (host.name.empty()) {
        if (equals != std::string_view::npos)
          fail(Errc::input, "{}: a line begins with the host's name, not with '{}'", place, word);
        host.name = word;
      } else if (equals == std::string_view::npos) {
        fail(Errc::input, "{}: '{}' must have the form key=value (one host a line)", place, word);
      } else {
        detail::set_key(host, word.substr(0, equals), word.substr(equals + 1), place);
      }
    }
    if (host.name.empty()) continue;
    hosts.push_back(std::move(host));
    validate_hosts({hosts.back()}, place);
    for (std::size_t i = 0; i + 1 < hosts.size(); ++i)
      if (hosts[i].name == hosts.back().name) validate_hosts(hosts, place);
  }
  return hosts;
}

HYPERTUNE_SSH_INLINE HostList parse_hosts(std::string_view text, const std::string& where) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '[') return parse_host_lines(text, where);
  boost::system::error_code error;
  const auto value = boost::json::parse({text.data(), text.size()}, error);
  if (error) fail(Errc::input, "{}: no JSON that can be read: {}", where, error.message());
  HostList hosts;
  for (const auto& each : value.as_array()) hosts.push_back(detail::host_from_json(each, where));
  validate_hosts(hosts, where);
  return hosts;
}

HYPERTUNE_SSH_INLINE HostList read_host_file(const std::filesystem::path& file) {
  std::error_code ignored;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, ignored))
    fail(Errc::input, "the list of hosts '{}' cannot be read: {}", file.string(),
         std::filesystem::exists(file, ignored) ? "may this account read it?" : "there is no such file");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_hosts(text, file.string());
}

namespace detail {

// Everything that one element ("rack[1-2]node[01-03]") stands for.
inline void expand_element(std::string_view element, std::string_view list, std::vector<std::string>& names) {
  const auto bad = [&](const char* why) {
    fail(Errc::input, "the list of nodes '{}' cannot be read: {}", list.substr(0, 200), why);
  };
  std::vector<std::string> all{""};
  const auto room = [&](std::size_t n) {
    if (names.size() + n > 100000) bad("it stands for more than 100,000 names");
  };
  while (!element.empty()) {
    const auto open = std::min(element.find('['), element.size());
    if (element.substr(0, open).find(']') != std::string_view::npos) bad("a ']' without its '['");
    for (auto& name : all) name += element.substr(0, open);
    element.remove_prefix(open);
    if (element.empty()) break;
    const auto close = element.find(']');
    if (close == std::string_view::npos) bad("a '[' without its ']'");
    auto ranges = element.substr(1, close - 1);
    element.remove_prefix(close + 1);
    std::vector<std::string> numbers;
    do {
      const auto comma = std::min(ranges.find(','), ranges.size());
      const auto range = ranges.substr(0, comma);
      ranges.remove_prefix(std::min(comma + 1, ranges.size()));
      const auto dash = range.find('-');
      const auto first = range.substr(0, dash);
      const auto last = dash == std::string_view::npos ? first : range.substr(dash + 1);
      std::uint64_t low = 0, high = 0;
      const auto number = [&](std::string_view text, std::uint64_t& value) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size();
      };
      if (!number(first, low) || !number(last, high) || high < low) bad("a range must be like 01-16");
      if (high - low >= 100000) bad("it stands for more than 100,000 names");
      room(numbers.size() + (high - low));
      for (auto value = low; value <= high; ++value)  // leading zeros stay
        numbers.push_back(fmt::format("{:0{}}", value, first.size()));
    } while (!ranges.empty());
    if (all.size() * numbers.size() > 100000) bad("it stands for more than 100,000 names");
    std::vector<std::string> product;
    for (const auto& name : all)
      for (const auto& value : numbers) product.push_back(name + value);
    all.swap(product);
  }
  room(all.size());
  for (auto& name : all) {
    if (name.empty()) bad("a name is empty");
    names.push_back(std::move(name));
  }
}

// "4(x2),8" of SLURM_JOB_CPUS_PER_NODE: 4, 4, 8. Empty if it makes no sense for so many nodes.
inline std::vector<double> expand_counts(std::string_view text, std::size_t nodes) {
  std::vector<double> counts;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    double value = 0;
    std::size_t times = 1;
    const auto* end = part.data() + part.size();
    const auto [after, error] = std::from_chars(part.data(), end, value);
    if (error != std::errc()) return {};
    std::string_view rest(after, static_cast<std::size_t>(end - after));
    if (rest.starts_with("(x") && rest.ends_with(")")) {
      rest = rest.substr(2, rest.size() - 3);
      std::from_chars(rest.data(), rest.data() + rest.size(), times);
    } else if (!rest.empty()) {
      return {};
    }
    if (!(value >= 0 && value <= 1e9) || times > nodes - counts.size()) return {};
    counts.insert(counts.end(), times, value);
  }
  return counts.size() == nodes ? counts : std::vector<double>{};
}

}  // namespace detail

HYPERTUNE_SSH_INLINE std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[' && ++depth > 1)
      fail(Errc::input, "the list of nodes '{}' cannot be read: a '[' within another", list.substr(0, 200));
    if (i < list.size() && list[i] == ']') depth = std::max(0, depth - 1);
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const auto element = list.substr(begin, i - begin);
    if (element.empty() && !list.empty())
      fail(Errc::input, "the list of nodes '{}' cannot be read: a name is empty", list.substr(0, 200));
    if (!element.empty()) detail::expand_element(element, list, names);
    begin = i + 1;
  }
  return names;
}

}  // namespace hypertune::ssh
