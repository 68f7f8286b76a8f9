// Cluster: its machines and their journal.
#include <hypertune/cluster/cluster.hpp>
#include <hypertune/cluster/detail/poll_interval.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/detail/stable_sort.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

namespace hypertune::inline v0::cluster {

struct Cluster::State {
  mutable std::mutex say;
};

namespace detail {

static const Machine* find_token(const std::vector<Machine>& machines, std::string_view token) {
  for (const auto& machine : machines)
    if (machine.token == token) return &machine;
  return nullptr;
}

// How long, in seconds, a machine may wait for something that somebody probably has to fix.
constexpr double may_fail_for = 60;

/// What a machine waits for, and since when. Times are seconds since the caller began to wait.
class Waiting {
 public:
  double may_fail_since(const Machine& machine, double now) {
    if (!machine.may_fail) may_fail_since_.reset();
    if (machine.may_fail && !may_fail_since_) may_fail_since_ = now;
    return may_fail_since_ ? now - *may_fail_since_ : 0;
  }
  /// The reason for waiting, once it has not changed for a while, and only once per reason; empty: nothing to report.
  std::string to_tell(const Machine& machine, double now) {
    constexpr double settled = 3;
    if (machine.waiting_reason != reason_) {
      reason_ = machine.waiting_reason;
      since_ = now;
    }
    if (reason_.empty() || now - since_ < settled || !told_.insert(reason_).second) return {};
    return reason_;
  }

 private:
  std::optional<double> may_fail_since_;
  std::string reason_;
  std::set<std::string> told_;  // two reasons may alternate: pulling an image, and waiting for the next pull
  double since_ = 0;
};

}  // namespace detail

Cluster::Cluster(ClusterConfig config, AnyAccess access, ClusterHooks hooks)
    : config_(std::move(config)),
      hooks_(std::move(hooks)),
      journal_(cluster_state(config_.name)),
      provider_(make_provider(config_, journal_.folder())),
      access_(std::move(access)),
      state_(std::make_unique<State>()) {
  recover();
}
Cluster::Cluster(ClusterConfig config, AnyProvider provider, std::filesystem::path state, ClusterHooks hooks,
                 AnyAccess access)
    : config_(std::move(config)),
      hooks_(std::move(hooks)),
      journal_(std::move(state)),
      provider_(std::move(provider)),
      access_(std::move(access)),
      state_(std::make_unique<State>()) {
  recover();
}
Cluster::~Cluster() = default;

void Cluster::say(const std::string& line) const {
  if (!hooks_.say) return;
  const std::lock_guard lock(state_->say);
  hooks_.say(line);
}
void Cluster::check_cancelled() const {
  if (cancelled()) throw Interrupted();
}

std::pair<double, double> Cluster::prices(const std::string& name, bool spot) const {
  const auto* type = config_.find_type(name);
  if (type == nullptr) return {0, 0};
  return {spot ? type->spot_price.value_or(0) : type->price, type->price};
}

void Cluster::recover() {
  // A provider call that a dead driver started may still run, and may still make a machine.
  wait_for_calls(detail::calls_lock(journal_.folder()), config_.provider.timeout + 10);
  reconcile();
}

std::vector<Machine> Cluster::reconcile() {
  using State = LedgerEntry::State;
  auto machines = provider_.list();
  const double listing_delay = provider_.listing_delay();
  detail::PollInterval pause(0.2);
  for (;;) {  // a request whose answer was lost: list() may show the machine only after a delay
    double youngest = listing_delay + 1;
    for (const auto& entry : journal_.ledger().entries)
      if (entry.state == State::requested && detail::find_token(machines, entry.token) == nullptr)
        youngest = std::min(youngest, wall_now() - entry.requested_at);
    if (youngest > listing_delay || youngest < -60) break;
    pause.wait(hooks_.stop);
    check_cancelled();
    machines = provider_.list();
  }
  auto ledger = journal_.ledger();
  for (auto& machine : machines) {
    if (machine.token.empty()) machine.token = "id:" + machine.id;
    const auto* entry = ledger.find(machine.token);
    const auto [price, on_demand] = prices(machine.node_type, machine.spot);
    if (entry == nullptr) {
      say(fmt::format("found machine {} ({}), which was made elsewhere", machine.id, machine.node_type));
      journal_.adopt(machine, price, on_demand);
    } else if (entry->state == State::requested || entry->state == State::refused || entry->state == State::gone ||
               entry->id != machine.id) {
      journal_.created(machine);
    }
    const bool stopped = machine.state == MachineState::stopped || machine.state == MachineState::stopping;
    if (entry != nullptr && entry->stopped != stopped)
      stopped ? journal_.stopped(machine.token) : journal_.started(machine.token);
  }
  for (const auto& entry : ledger.entries) {
    if (!entry.open() || detail::find_token(machines, entry.token) != nullptr) continue;
    if (entry.state == State::requested)
      journal_.refused(entry.token, "it never came to be");
    else if (wall_now() - entry.launched_at > listing_delay || wall_now() < entry.launched_at)
      journal_.gone(entry.token);
  }
  return machines;
}

std::vector<Machine> Cluster::observe() {
  using State = LedgerEntry::State;
  const auto before = journal_.ledger();  // read before the list: machines launched in between are not taken for gone
  auto machines = provider_.list();
  const double listing_delay = provider_.listing_delay();
  for (const auto& entry : before.entries) {
    if (entry.state != State::exists && entry.state != State::ending) continue;
    if (detail::find_token(machines, entry.token) == nullptr && wall_now() - entry.launched_at > listing_delay)
      journal_.gone(entry.token);
  }
  return machines;
}

Machine Cluster::launch(const NodeType& type, bool spot, bool head, const std::string& token) {
  check_cancelled();
  const auto [price, on_demand] = prices(type.name, spot);
  if (config_.provider.cache_stopped_nodes && !spot) {
    for (const auto& machine : provider_.list()) {
      if (machine.state != MachineState::stopped || machine.node_type != type.name || machine.head != head) continue;
      auto again = machine;
      journal_.started(again.token);
      provider_.start({again.id});
      again.state = MachineState::pending;
      say(fmt::format("started machine {} ({}), which had been stopped", again.id, type.name));
      return again;
    }
  }
  LaunchRequest request;
  request.token = token;
  request.node_type = type.name;
  request.node_config = type.node_config;
  request.head = head;
  request.spot = spot;
  journal_.requested(request, price, on_demand);
  try {
    auto machine = provider_.create(request);
    journal_.created(machine);
    return machine;
  } catch (const ProviderError& error) {
    if (error.kind() != ProviderFailure::failed) {
      journal_.refused(token, error.what());
      throw;
    }
    // The machine may have been made anyway: the answer was lost or could not be read.
    detail::PollInterval pause(0.2);
    const double until = wall_now() + provider_.listing_delay();
    for (;;) {
      const auto machines = provider_.list();
      if (const auto* found = detail::find_token(machines, token)) {
        journal_.created(*found);
        return *found;
      }
      if (wall_now() >= until) break;
      pause.wait(hooks_.stop);
    }
    journal_.refused(token, error.what());
    throw;
  }
}

void Cluster::terminate(const std::vector<Machine>& machines, const std::string& why, bool wait) {
  if (machines.empty()) return;
  std::vector<std::string> ids;
  std::set<std::string> waiting;
  for (const auto& machine : machines) {
    journal_.ending(machine.token, why);
    ids.push_back(machine.id);
    waiting.insert(machine.id);
  }
  for (std::size_t at = 0; at < ids.size(); at += 100)
    provider_.terminate({ids.begin() + static_cast<std::ptrdiff_t>(at),
                         ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), at + 100))});
  for (const auto& machine : machines) access_.forget(*this, machine);
  if (!wait) return;
  detail::PollInterval pause;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto left = provider_.list();
    std::erase_if(waiting, [&](const std::string& id) {
      return std::none_of(left.begin(), left.end(), [&](const Machine& machine) {
        return machine.id == id && machine.state != MachineState::terminated;
      });
    });
    for (const auto& machine : machines)
      if (!waiting.contains(machine.id)) {
        const auto ledger = journal_.ledger();
        const auto* entry = ledger.find_id(machine.id);
        if (entry != nullptr && entry->open()) journal_.gone(machine.token);
      }
    if (waiting.empty()) return;
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > config_.provider.timeout)
      fail(Errc::io, "the provider still shows {} of {} machines that it was told to end ({}, …): repeat the command",
           waiting.size(), machines.size(), *waiting.begin());
    check_cancelled();
    pause.wait(hooks_.stop);
  }
}

void Cluster::stop_or_terminate(const std::vector<Machine>& machines, const std::string& why) {
  std::vector<Machine> rest;
  for (const auto& machine : machines) {
    bool stopped = false;
    if (config_.provider.cache_stopped_nodes && !machine.spot) {
      try {
        if (machine.state != MachineState::stopped) provider_.stop({machine.id});
        journal_.stopped(machine.token);
        stopped = true;
      } catch (const ProviderError& error) {
        if (error.kind() != ProviderFailure::unsupported) throw;
      }
    }
    if (!stopped) rest.push_back(machine);
  }
  terminate(rest, why);
}

Machine Cluster::await_address(const Machine& wanted) {
  detail::PollInterval pause;
  const auto begin = std::chrono::steady_clock::now();
  detail::Waiting waiting;
  for (;;) {
    check_cancelled();
    if (wanted.state == MachineState::running && !wanted.address.empty()) return wanted;
    std::optional<std::vector<Machine>> machines;
    std::string trouble;
    try {
      machines = provider_.list();
    } catch (const ProviderError& error) {  // for example, too many requests
      if (error.kind() == ProviderFailure::invalid || error.kind() == ProviderFailure::unsupported) throw;
      trouble = error.what();
    }
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const Machine* found = nullptr;
    if (machines)
      for (const auto& machine : *machines)
        if (machine.id == wanted.id) found = &machine;
    if (found != nullptr && found->state == MachineState::running && !found->address.empty()) {
      journal_.created(*found);
      return *found;
    }
    if (machines && found == nullptr && waited > provider_.listing_delay()) {
      const auto why = provider_.explain(wanted.id);
      throw CannotStart(fmt::format("machine {}: {}", wanted.id,
                                    why.empty() ? "it is gone before it was up" : fmt::format("it {}", why)));
    }
    if (found != nullptr) {
      const double limit = std::min(detail::may_fail_for, config_.provider.start_timeout);
      if (found->cannot_start || waiting.may_fail_since(*found, waited) > limit)
        throw CannotStart(fmt::format("machine {}: it {}", wanted.id, found->waiting_reason));
      if (const auto why = waiting.to_tell(*found, waited); !why.empty())
        say(fmt::format("{} {}", detail::machine_label(*found), why));
    }
    if (waited > config_.provider.start_timeout) {
      const std::string seen = !machines          ? "the provider could not be asked about it (" + trouble + ")"
                               : found == nullptr ? "not shown"
                               : !found->waiting_reason.empty() ? "it " + found->waiting_reason
                               : found->address.empty()         ? "without an address"
                                                                : to_string(found->state);
      const auto why = fmt::format("machine {}: {} after {:.0f} s (provider.start_timeout)", wanted.id, seen, waited);
      if (found != nullptr && found->may_fail) throw CannotStart(why);
      throw Error(Errc::io, why);
    }
    pause.wait(hooks_.stop);
  }
}

int Cluster::down(const DownOptions& options) {
  int ended = 0;
  for (int round = 0; round < 5; ++round) {
    auto machines = reconcile();
    std::erase_if(machines, [&](const Machine& machine) {
      const bool resting = machine.state == MachineState::stopped || machine.state == MachineState::stopping;
      return machine.state == MachineState::terminated || (options.workers_only && machine.head) ||
             (config_.provider.cache_stopped_nodes && resting);
    });
    if (options.keep_min_workers) {
      int keep = config_.min_workers;
      std::erase_if(machines, [&](const Machine& machine) {
        return machine.head || (machine.state == MachineState::running && keep-- > 0);
      });
    }
    if (machines.empty()) {
      if (!options.workers_only && !options.keep_min_workers) provider_.clear();
      return ended;
    }
    if (config_.provider.type == "local")
      for (const auto& machine : machines) access_.clean(*this, machine);
    stop_or_terminate(machines, options.why);
    ended += static_cast<int>(machines.size());
    if (options.keep_min_workers) return ended;
  }
  fail(Errc::busy, "machines of '{}' appear again and again: does another computer drive this cluster?", config_.name);
}

ClusterView view_cluster(const ClusterConfig& config) {
  return view_cluster(config, make_provider(config, cluster_state(config.name)));
}

ClusterView view_cluster(const ClusterConfig& config, AnyProvider provider) {
  ClusterView view;
  const auto state = cluster_state(config.name);
  view.driver = ClusterJournal::driver_of(state);
  view.ledger = ClusterJournal::read(state);
  std::vector<Machine> machines;
  try {
    std::error_code ignored;
    std::filesystem::create_directories(state, ignored);
    machines = provider.list();
  } catch (const ProviderError& error) {
    view.error = error.what();
    for (const auto& entry : view.ledger.entries)
      if (entry.state == LedgerEntry::State::exists || entry.state == LedgerEntry::State::ending) {
        Machine machine;
        machine.id = entry.id;
        machine.token = entry.token;
        machine.node_type = entry.node_type;
        machine.head = entry.head;
        machine.spot = entry.spot;
        machine.address = entry.address;
        machines.push_back(std::move(machine));
      }
  }
  for (auto& machine : machines) {
    MachineStatus status;
    if (const auto* entry = view.ledger.find_id(machine.id)) {
      status.ready = entry->ready;
      status.launched_at = entry->launched_at;
    }
    status.machine = std::move(machine);
    view.machines.push_back(std::move(status));
  }
  hypertune::detail::stable_sort(
      view.machines.begin(), view.machines.end(), [](const MachineStatus& a, const MachineStatus& b) {
        return std::pair(!a.machine.head, a.launched_at) < std::pair(!b.machine.head, b.launched_at);
      });
  view.cost = view.ledger.cost(wall_now(), config.currency);
  return view;
}

std::string setup_problem(const ClusterConfig& config, const Machine& machine) {
  const auto state = cluster_state(config.name);
  const auto ledger = ClusterJournal::read(state);
  const auto* entry = ledger.find_id(machine.id);
  if (entry == nullptr) return {};
  const auto driver = entry->ready ? std::string() : ClusterJournal::driver_of(state);
  const auto label = detail::machine_label(machine);
  if (!driver.empty()) return fmt::format("{} is not set up: {} works on it", label, driver);
  if (!entry->ready)
    return fmt::format("{} is not set up: its last set-up has failed, or was interrupted; run `hypertune up {}`", label,
                       config.file.filename().string());
  if (!entry->setup.empty() && entry->setup != setup_fingerprint(config, machine))
    return fmt::format("{} was set up by another file, or by this one before it changed; run `hypertune up {}`", label,
                       config.file.filename().string());
  return {};
}

Machine find_head(const ClusterConfig& config) {
  return find_head(config, make_provider(config, cluster_state(config.name)));
}

Machine find_head(const ClusterConfig& config, AnyProvider provider) {
  std::error_code ignored;
  std::filesystem::create_directories(cluster_state(config.name), ignored);
  for (const auto& machine : provider.list())
    if (machine.head && machine.state == MachineState::running && !machine.address.empty()) return machine;
  fail(Errc::usage, "the cluster '{}' is not up: run `hypertune up {}` first, or add --start", config.name,
       config.file.filename().string());
}

}  // namespace hypertune::inline v0::cluster
