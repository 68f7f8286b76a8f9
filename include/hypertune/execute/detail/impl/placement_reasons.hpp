// Placement: messages that say why a request is not placed.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/execute/detail/host_text.hpp>
#include <hypertune/execute/detail/placement.hpp>

#include <algorithm>

namespace hypertune::inline v0 {

std::string Placement::why_not(const Resources& request, const Excluded& excluded) const {
  const Amounts need = amounts(request);
  if (!sound(request))
    return detail::format("{} gpus cannot be had: ask for a whole number, or for a fraction below 1 of one",
                          request.gpus);
  if (hosts_.empty()) return "there is no host";
  const HostState* widest = nullptr;
  const HostState* freest = nullptr;
  for (const auto& host : hosts_) {
    if (host.gone || excluded.contains(host.name)) continue;
    if (missing(need, host.total).empty() && missing_now(need, host).empty() && !full(host)) return "";
    if (widest == nullptr || missing(need, host.total).size() < missing(need, widest->total).size()) widest = &host;
    if (fits(need, host.total) && (freest == nullptr || host.free.cpus > freest->free.cpus)) freest = &host;
  }
  if (freest == nullptr && possible(request, excluded)) return waits_for_host() + losses(": ");
  if (widest == nullptr) return "every host is lost or excluded" + losses(": ");
  if (freest == nullptr)
    return detail::format("needs {}, which no host has (host '{}' {})", list(need, missing(need, widest->total)),
                          widest->name, has(*widest, missing(need, widest->total)));
  if (full(*freest))
    return detail::format("waits for a place: host '{}' has {} trial{} of {} at once", freest->name, freest->trials,
                          freest->trials == 1 ? "" : "s", freest->slots);
  const auto lacking = missing_now(need, *freest);
  return detail::format("waits for {}: on host '{}' {} in use", list(need, lacking), freest->name,
                        used(*freest, lacking));
}

std::string Placement::why_not(const Resources& each, const Workers& workers, const Excluded& excluded) const {
  if (workers.min == 1 || !possible(each, excluded)) return why_not(each, excluded);
  const auto here = [&](const HostState& host) { return !host.gone && !excluded.contains(host.name); };
  const Amounts need = amounts(each);
  std::vector<std::string> names;
  if (need.cpus > 0) names.emplace_back("cpus");
  if (need.gpus > 0) names.emplace_back("gpus");
  if (need.memory > 0) names.emplace_back("memory");
  for (const auto& [name, amount] : need.custom) names.push_back(name);
  std::string own;
  for (const auto& name : names) {
    own += (own.empty() ? " with " : " and ") + amount_text(need, name);
    if (own.ends_with(" 1 cpus") || own.ends_with(" 1 gpus")) own.pop_back();
  }
  const std::string what = detail::format("{} workers{}{}", workers.min, own.empty() ? own : own + " each",
                                          workers.strategy == Strategy::strict_pack     ? " on one host"
                                          : workers.strategy == Strategy::strict_spread ? " on a host of its own each"
                                                                                        : "");
  const Workers apart{.strategy = workers.strategy};  // ignores whether hosts reach each other
  if (!possible(each, workers, excluded)) {
    const auto counts = [&](const auto& host) { return !host.for_good && !excluded.contains(host.name); };
    const int most = room(each, workers, counts);
    if (room(each, apart, counts) < workers.min)
      return detail::format("needs {}, but the hosts have room for {}", what, most) + losses("; ", true);
    return detail::format(
        "needs {}, but hosts that reach each other have room for {}: {}; name {} that all of them are in, as in "
        "`group: {{network: 10.1.0.0/16}}`",
        what, most, network_.why(), network_.is_named() ? "a network" : "one");
  }
  const int free = room(each, workers, here, max_room, true);
  if (free >= workers.min) return "";
  if (room(each, apart, here, max_room, true) >= workers.min)
    return detail::format("waits for {}: {} {} free on hosts that reach each other, as {}", what, free,
                          free == 1 ? "is" : "are", network_.why());
  std::string text = detail::format("waits for {}: {} {} free", what, free, free == 1 ? "is" : "are");
  if (room(each, workers, here) >= workers.min) return text;
  return text + (has_lost_host() ? "; a host that is lost now must come back" + losses(": ") : losses("; "));
}

std::string Placement::losses(const char* before, bool for_good) const {
  constexpr std::size_t most = 3;
  detail::HostTroubles all;
  for (const auto& host : hosts_)
    if (host.gone && !host.why.empty() && (host.for_good || !for_good)) all.emplace_back(host.name, host.why);
  return all.empty() ? std::string() : before + detail::host_troubles_text(all, most);
}

std::string Placement::waits_for_host() const {
  if (has_lost_host()) return "waits for a host that is lost now to come back";
  const bool workers =
      std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return detail::is_worker_name(host.name); });
  return workers ? "waits for a worker" : "waits for a host";
}

std::vector<std::string> Placement::missing(const Amounts& need, const Amounts& have) {
  std::vector<std::string> names;
  if (need.cpus > have.cpus) names.emplace_back("cpus");
  if (need.gpus > have.gpus) names.emplace_back("gpus");
  if (have.memory != 0 && need.memory > have.memory) names.emplace_back("memory");
  for (const auto& [name, amount] : need.custom) {
    const auto found = have.custom.find(name);
    if (amount > 0 && (found == have.custom.end() || amount > found->second)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Placement::missing_now(const Amounts& need, const HostState& host) {
  Amounts have = host.free;
  if (host.total.memory > 0 && need.memory > have.memory) have.memory = -1;  // 0 would mean "not accounted for"
  if (host.total.memory == 0) have.memory = 0;
  auto lacking = missing(need, have);
  if (lacking.empty() && need.gpus > 0 && !devices_for(host, need.gpus)) lacking.emplace_back("gpus");
  return lacking;
}

std::string Placement::amount_text(const Amounts& a, const std::string& name) {
  if (name == "memory") return detail::format("{} MiB of memory", a.memory >> 20U);
  const std::int64_t amount = name == "cpus"            ? a.cpus
                              : name == "gpus"          ? a.gpus
                              : a.custom.contains(name) ? a.custom.at(name)
                                                        : 0;
  return detail::format("{:g} {}", static_cast<double>(amount) / unit, name);
}

std::string Placement::used(const HostState& host, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    Amounts busy = host.total;
    busy.cpus -= host.free.cpus;
    busy.gpus -= host.free.gpus;
    busy.memory -= host.free.memory;
    for (auto& [key, amount] : busy.custom) amount -= host.free.custom.at(key);
    const std::string whole = amount_text(host.total, name);
    const std::string taken = amount_text(busy, name);
    text += detail::format("{}{} of {} are", text.empty() ? "" : ", ", taken.substr(0, taken.find(' ')), whole);
  }
  return text;
}

}  // namespace hypertune::inline v0
