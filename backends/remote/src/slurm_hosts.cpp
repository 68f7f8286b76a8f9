// slurm_hosts(): the hosts of a Slurm allocation.
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/host_list.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {
namespace {

// Appends all names that one element ("rack[1-2]node[01-03]") stands for.
void expand_element(std::string_view element, std::string_view list, std::vector<std::string>& names) {
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
      const auto range = hypertune::detail::take_until(ranges, ',');
      const auto dash = range.find('-');
      const auto first = range.substr(0, dash);
      const auto last = dash == std::string_view::npos ? first : range.substr(dash + 1);
      const auto low = hypertune::detail::parse_number<std::uint64_t>(first);
      const auto high = hypertune::detail::parse_number<std::uint64_t>(last);
      if (!low || !high || *high < *low) bad("a range must be like 01-16");
      if (*high - *low >= 100000) bad("it stands for more than 100,000 names");
      room(numbers.size() + (*high - *low));
      for (auto value = *low; value <= *high; ++value)  // keeps leading zeros
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

// Expands SLURM_JOB_CPUS_PER_NODE: "4(x2),8" is 4, 4, 8. Empty if it does not match the number of nodes.
std::vector<double> expand_counts(std::string_view text, std::size_t nodes) {
  std::vector<double> counts;
  while (!text.empty()) {
    const auto part = hypertune::detail::take_until(text, ',');
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

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
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
    if (!element.empty()) expand_element(element, list, names);
    begin = i + 1;
  }
  return names;
}

HostList slurm_hosts() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  auto list = variable("SLURM_JOB_NODELIST");
  if (list.empty()) list = variable("SLURM_NODELIST");
  if (list.empty())
    fail(Errc::usage,
         "there is no Slurm allocation here (SLURM_JOB_NODELIST is not set): start this with sbatch or within salloc");
  std::vector<std::string> names;
  // Slurm supports more formats; the common one is parsed here if scontrol is not available.
  if (const auto printed = detail::printed_by({"scontrol", "show", "hostnames", list}, 20);
      printed && printed->code() == 0 && !printed->late)
    for (const auto& host : parse_host_lines(printed->out, "scontrol show hostnames")) names.push_back(host.name);
  if (names.empty()) names = expand_node_list(list);
  const auto cpus = expand_counts(variable("SLURM_JOB_CPUS_PER_NODE"), names.size());
  const auto gpus = variable("SLURM_GPUS_ON_NODE");
  HostList hosts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    HostOptions host{.name = names[i]};
    if (!cpus.empty()) host.cpus = cpus[i];
    if (!gpus.empty() && gpus.find_first_not_of("0123456789") == std::string::npos) host.gpus = std::atof(gpus.c_str());
    hosts.push_back(std::move(host));
  }
  validate_hosts(hosts, "the Slurm allocation");
  return hosts;
}

}  // namespace hypertune::inline v0::remote
