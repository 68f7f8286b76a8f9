// LocalProvider: existing hosts.
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/detail/json.hpp>
#include <hypertune/cluster/providers.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace hypertune::inline v0::cluster {

LocalProvider::LocalProvider(const ClusterConfig& config, const std::filesystem::path& state)
    : head_(config.provider.head_ip), workers_(config.provider.worker_ips), file_(state / "local.json") {}

std::vector<Machine> LocalProvider::read() const {
  std::vector<Machine> machines;
  const auto text = detail::read_file(file_);
  if (!text) return machines;
  const auto value = detail::parse_json(*text);
  const auto* list = value && value->is_array() ? &value->get_array() : nullptr;
  if (list == nullptr)
    throw ProviderError(
        ProviderFailure::invalid,
        fmt::format("'{}' is damaged: remove it when no host of the cluster is in use", file_.string()));
  for (const auto& entry : *list) {
    if (!entry.is_object()) continue;
    const auto& object = entry.get_object();
    Machine machine;
    machine.id = machine.address = detail::text_of(object, "host");
    machine.token = detail::text_of(object, "token");
    machine.node_type = detail::text_of(object, "type");
    machine.head = detail::flag_in(object, "head");
    machine.state = MachineState::running;
    machines.push_back(std::move(machine));
  }
  return machines;
}

void LocalProvider::write(const std::vector<Machine>& machines) const {
  detail::json::array list;
  for (const auto& machine : machines)
    list.push_back(
        {{"host", machine.id}, {"token", machine.token}, {"type", machine.node_type}, {"head", machine.head}});
  detail::replace_file(file_, detail::json::serialize(list) + "\n");
}

std::vector<Machine> LocalProvider::list() {
  const std::lock_guard lock(*mutex_);
  return read();
}

Machine LocalProvider::create(const LaunchRequest& request) {
  const std::lock_guard lock(*mutex_);
  auto machines = read();
  const auto taken = [&](const std::string& host) {
    return std::any_of(machines.begin(), machines.end(), [&](const Machine& machine) { return machine.id == host; });
  };
  for (const auto& machine : machines)
    if (machine.token == request.token) return machine;
  Machine machine;
  if (request.head) {
    if (taken(head_))
      throw ProviderError(ProviderFailure::capacity, fmt::format("the host '{}' is in use already", head_));
    machine.id = head_;
  } else {
    const auto pick = [&](bool again) {
      for (const auto& host : workers_)
        if (!taken(host) && (again || std::find(tried_.begin(), tried_.end(), host) == tried_.end())) return host;
      return std::string();
    };
    machine.id = pick(false);
    if (machine.id.empty()) {
      machine.id = pick(true);
      tried_.clear();
    }
    if (machine.id.empty())
      throw ProviderError(ProviderFailure::capacity,
                          fmt::format("all {} hosts of provider.worker_ips are in use", workers_.size()));
  }
  machine.token = request.token;
  machine.node_type = request.node_type;
  machine.head = request.head;
  machine.address = machine.id;
  machine.state = MachineState::running;
  machines.push_back(machine);
  write(machines);
  return machine;
}

void LocalProvider::terminate(const std::vector<std::string>& ids) {
  const std::lock_guard lock(*mutex_);
  auto machines = read();
  std::erase_if(machines, [&](const Machine& machine) {
    const bool gone = std::find(ids.begin(), ids.end(), machine.id) != ids.end();
    if (gone) tried_.push_back(machine.id);
    return gone;
  });
  write(machines);
}

void LocalProvider::stop(const std::vector<std::string>&) {
  throw ProviderError(ProviderFailure::unsupported, "the local provider does not stop hosts");
}
void LocalProvider::start(const std::vector<std::string>&) {
  throw ProviderError(ProviderFailure::unsupported, "the local provider does not start hosts");
}

}  // namespace hypertune::inline v0::cluster
