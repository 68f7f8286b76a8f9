// Parsing lists of hosts.
#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/host_list.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
namespace {

double host_number(std::string_view key, std::string_view text, const std::string& where) {
  const auto value = hypertune::detail::parse_number<double>(text);
  if (!value || !(*value >= 0) || *value > 1e9)
    fail(Errc::input, "{}: '{}' must be a number from 0, not '{}'", where, key, text);
  return *value;
}

void set_label(HostOptions& host, std::string_view text, const std::string& where) {
  const auto colon = text.find_first_of(":=");
  if (text.empty() || colon == 0) fail(Errc::input, "{}: '{}' is no label: write NAME or NAME:VALUE", where, text);
  host.labels[std::string(text.substr(0, colon))] =
      colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
}

/// Sets one key of a host, as in the text formats.
void set_key(HostOptions& host, std::string_view key, std::string_view text, const std::string& where) {
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
    while (!text.empty()) set_label(host, hypertune::detail::take_until(text, ','), where);
  } else if (key.starts_with("custom.") && key.size() > 7) {
    host.custom[std::string(key.substr(7))] = host_number(key, text, where);
  } else {
    fail(Errc::input, "{}: unknown key '{}' of a host{}", where, key,
         hypertune::detail::suggestion(
             key, std::vector<std::string_view>{"slots", "cpus", "gpus", "memory", "labels", "custom.NAME"}));
  }
}

HostOptions host_from_json(const boost::json::value& value, const std::string& where) {
  HostOptions host;
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
      // JSON may write a whole number as 4.0 or 4E0.
      set_key(host, key, each.is_double() ? fmt::format("{}", each.as_double()) : text, where);
    }
  }
  return host;
}

}  // namespace

void validate_hosts(const HostList& hosts, const std::string& where) {
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

HostList parse_host_lines(std::string_view text, const std::string& where) {
  HostList hosts;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (int number = 1; !text.empty(); ++number) {
    auto line = hypertune::detail::take_until(text, '\n');
    line = line.substr(0, line.find('#'));
    const auto place = fmt::format("{}:{}", where, number);
    HostOptions host;
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
        set_key(host, word.substr(0, equals), word.substr(equals + 1), place);
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

HostList parse_hosts(std::string_view text, const std::string& where) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '[') return parse_host_lines(text, where);
  boost::system::error_code error;
  const auto value = boost::json::parse({text.data(), text.size()}, error);
  if (error) fail(Errc::input, "{}: no JSON that can be read: {}", where, error.message());
  HostList hosts;
  for (const auto& each : value.as_array()) hosts.push_back(host_from_json(each, where));
  validate_hosts(hosts, where);
  return hosts;
}

HostList read_host_file(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto text = hypertune::detail::read_file(file);
  if (!text || std::filesystem::is_directory(file, ignored))
    fail(Errc::input, "the list of hosts '{}' cannot be read: {}", file.string(),
         std::filesystem::exists(file, ignored) ? "may this account read it?" : "there is no such file");
  return parse_hosts(*text, file.string());
}

}  // namespace hypertune::inline v0::remote
