// ListedRun: keeps a pool of agents in step with a list of hosts.
#include "pool_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::remote {
namespace {

HostOptions with_limits(HostOptions host, const HostOptions& limits) {
  if (host.slots == 0 && host.cpus == 0) host.slots = limits.slots;
  if (host.cpus == 0 && host.slots == 0) host.cpus = limits.cpus;
  if (host.gpus < 0) host.gpus = limits.gpus;
  if (host.memory == 0) host.memory = limits.memory;
  for (const auto& [name, amount] : limits.custom) host.custom.emplace(name, amount);
  return host;
}

}  // namespace

namespace detail {

class ListedRun final : public PoolRun {
 public:
  ListedRun(ListedHosts hosts, ElasticHooks hooks, std::shared_ptr<Notices> notices,
            std::shared_ptr<DemandTracker> tracker)
      : PoolRun(std::move(hooks), std::move(notices), std::move(tracker)), listed_(std::move(hosts)) {
    // If all hosts are refused, a list that can change gets time to be corrected.
    auto options = listed_.remote;
    if (interval() > 0) options.all_refused = std::max(options.all_refused, std::max(60.0, 3 * interval()));
    executor_.emplace(pool_, std::move(options));
  }
  ~ListedRun() override { stop_following(); }

  std::vector<Host> hosts() override {
    if (hooks_.ready) hooks_.ready();
    begin();
    return PoolRun::hosts();
  }
  void start(ExecutorStart start) override {
    begin();
    PoolRun::start(std::move(start));
  }
  void shutdown() override {
    PoolRun::shutdown();
    begun_ = false;  // for a further run
    list_ = {};
  }

 private:
  /// Reads the list for the first time; throws if it is invalid.
  void begin() {
    const std::lock_guard hold(begin_mutex_);
    if (begun_) return;
    auto& source = listed_.hosts;
    if (!source.given())
      fail(Errc::usage,
           "there are no hosts to run trials on: name them (.hosts), or set HYPERTUNE_HOSTS to their names, "
           "separated by commas, or to @FILE");
    {
      // Tells the user if reading the list takes long.
      const std::jthread overdue([&](const std::stop_token& read) {
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock waiting(mutex);
        never.wait_for(waiting, read, std::chrono::seconds(1), [] { return false; });
        if (!read.stop_requested())
          notices_->say_now(fmt::format("waits for {}: they are not known yet", source.what()));
      });
      look();
    }
    if (source.hosts().empty() && source.interval() == 0)
      fail(Errc::usage, "there are no hosts to run trials on: {} is empty", source.what());
    begun_ = true;
    follow();
  }

  Seconds interval() const override { return listed_.hosts.interval(); }
  std::string failure() const override { return listed_.hosts.what() + " cannot be followed"; }
  void interrupt() override { list_.request_stop(); }

  void look() override {
    auto& source = listed_.hosts;
    const auto change = source.poll(list_.get_token());
    if (list_.stop_requested()) return;
    const bool empty = source.kept_outside() && source.hosts().empty() && !change.error;
    if (empty && !std::exchange(empty_told_, empty))
      notices_->say_now(fmt::format("there is no host to run trials on: {} are none; looks again every {:g} s",
                                    source.what(), source.interval()));
    empty_told_ = empty;
    if (change.error && change.error != list_error_)
      notices_->say(fmt::format("{} cannot be read, the last ones hold: {}", source.what(), *change.error));
    list_error_ = change.error;
    for (const auto& name : change.left) {
      const bool again =
          std::any_of(change.joined.begin(), change.joined.end(), [&](const auto& host) { return host.name == name; });
      if (!again) pool_.remove(name);
    }
    for (const auto& host : change.joined)
      pool_.add({.name = host.name, .dialer = listed_.dialer(with_limits(host, listed_.limits))});
  }

  ListedHosts listed_;
  std::mutex begin_mutex_;
  bool begun_ = false, empty_told_ = false;
  std::stop_source list_;  // interrupts the program that lists hosts
  std::optional<std::string> list_error_;
};

std::unique_ptr<PoolRun> make_listed_run(ListedHosts hosts, ElasticHooks hooks, std::shared_ptr<Notices> notices,
                                         std::shared_ptr<DemandTracker> tracker) {
  return std::make_unique<ListedRun>(std::move(hosts), std::move(hooks), std::move(notices), std::move(tracker));
}

}  // namespace detail

}  // namespace hypertune::inline v0::remote
