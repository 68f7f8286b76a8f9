// executor: {type: slurm, …} from YAML.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/transfer.hpp>
#include <hypertune/config/yaml.hpp>

#include <charconv>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// The seconds of a time in Slurm's notation: "30:00" (minutes), "4:00:00", "1-12", "1-12:30", "2-12:00:00". nullopt
/// for anything else, including a plain number: it means seconds here but minutes in Slurm.
inline std::optional<Seconds> slurm_time(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<double> {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
    return value;
  };
  Seconds seconds = 0;
  const auto dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  if (days) {
    const auto count = number(text.substr(0, dash));
    if (!count) return std::nullopt;
    seconds = *count * 86400;
    text.remove_prefix(dash + 1);
  }
  std::vector<double> parts;
  for (bool more = true; more;) {
    const auto colon = text.find(':');
    more = colon != std::string_view::npos;
    const auto part = number(text.substr(0, colon));
    if (!part || parts.size() == 3) return std::nullopt;
    parts.push_back(*part);
    if (more) text.remove_prefix(colon + 1);
  }
  if (!days && parts.size() == 1) return std::nullopt;
  // After days the first part is hours; else the last parts are minutes and seconds.
  double unit = days || parts.size() == 3 ? 3600 : 60;
  for (const double part : parts) {
    seconds += part * unit;
    unit /= 60;
  }
  return seconds;
}

/// Reads all options. `time` may be in Slurm's notation, too.
struct SlurmOptionReader {
  OptionReader read;

  template <class M, class... Rest>
    requires(!std::same_as<M, Seconds>)
  void operator()(const char* name, M& value, Rest&&... rest) const {
    read(name, value, std::forward<Rest>(rest)...);
  }
  void operator()(const char* name, Seconds& value, const Bounds& bounds, const char* text) const {
    if (std::string_view(name) != "time") return read(name, value, bounds, text);
    const auto given = read.node.find(name);
    if (!given) return;
    const auto written = given->is_scalar() ? to_string(given->scalar()) : std::string();
    const auto time = slurm_time(written);
    value = time ? *time : given->duration();
    if (!bounds.allow(value))
      given->fail("'{}' is {}, but must be 0 or from {} to {}d", given->path(), written, written_duration(bounds.least),
                  bounds.most / 86400);
  }
  void operator()(const char* name, auto& value, std::initializer_list<const char*> words, const char* text) const {
    read(name, value, words, text);
  }
};

inline SlurmOptions slurm_from_yaml(const Node& node) {
  SlurmOptions slurm;
  if (!node.is_map()) return slurm;
  check_keys(node, slurm_keys());
  SlurmOptions::describe(slurm, SlurmOptionReader{{node}});
  if (const auto pool = node.find("pool")) slurm.pool = pool_size_from_yaml(*pool);
  if (const auto transfer = node.find("transfer")) slurm.transfer = transfer_from_yaml(*transfer);
  checked(node, [&] {
    check_options(slurm);
    return 0;
  });
  return slurm;
}

}  // namespace hypertune::inline v0::detail
