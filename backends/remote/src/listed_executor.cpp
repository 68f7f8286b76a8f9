// ListedExecutor: keeps a pool of agents in step with a list of hosts.
#include <hypertune/remote/listed_executor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::remote {
namespace {

/// Calls a function if the object still exists after the given seconds.
class Overdue {
 public:
  Overdue(double seconds, std::function<void()> then)
      : thread_([this, seconds, then = std::move(then)] {
          std::unique_lock hold(mutex_);
          if (!over_.wait_for(hold, std::chrono::duration<double>(seconds), [this] { return done_; })) then();
        }) {}
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;
  ~Overdue() {
    {
      const std::lock_guard hold(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

HostOptions with_limits(HostOptions host, const HostOptions& limits) {
  if (host.slots == 0 && host.cpus == 0) host.slots = limits.slots;
  if (host.cpus == 0 && host.slots == 0) host.cpus = limits.cpus;
  if (host.gpus < 0) host.gpus = limits.gpus;
  if (host.memory == 0) host.memory = limits.memory;
  for (const auto& [name, amount] : limits.custom) host.custom.emplace(name, amount);
  return host;
}

}  // namespace

/// If the list can change, a separate thread updates the pool.
class ListedExecutor::State final : public hypertune::detail::ExecutorState {
 public:
  State(ListedOptions options, MakeDialer dialer, std::shared_ptr<Notices> notices)
      : options_(std::move(options)),
        dialer_(std::move(dialer)),
        notices_(std::move(notices)),
        executor_(pool_, patient(options_)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() override { stop_following(); }

  std::vector<Host> hosts() override {
    begin();
    return executor_.hosts();
  }
  void start(ExecutorStart start) override {
    begin();
    notices_->start(start.sink);
    executor_.start(std::move(start));
  }
  void perform(Command command) override {
    notices_->take();
    executor_.perform(std::move(command));
  }
  void wait(Seconds deadline) override {
    notices_->flush();
    executor_.wait(deadline);
  }
  void notify() override { executor_.notify(); }
  void shutdown() override {
    stop_following();
    notices_->end();
    executor_.shutdown();
  }
  const std::string& name() const { return options_.name; }
  std::vector<HostAccount> accounts() const { return executor_.accounts(); }

 private:
  /// Reads the list for the first time; throws if it is invalid.
  void begin() {
    const std::lock_guard hold(begin_mutex_);
    if (begun_) return;
    if (!options_.hosts.given())
      fail(Errc::usage,
           "there are no hosts to run trials on: name them (.hosts), or set HYPERTUNE_HOSTS to their names, "
           "separated by commas, or to @FILE");
    {
      // Tells the user if reading the list takes long.
      const Overdue overdue(
          1, [this] { notices_->say_now(fmt::format("waits for {}: they are not known yet", options_.hosts.what())); });
      follow_once();
    }
    if (options_.hosts.hosts().empty() && options_.hosts.interval() == 0)
      fail(Errc::usage, "there are no hosts to run trials on: {} is empty", options_.hosts.what());
    begun_ = true;
    if (options_.hosts.interval() > 0) thread_ = std::thread([this] { follow(); });
  }

  void stop_following() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    list_.request_stop();
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
    stopping_ = begun_ = false;  // for a further run
    list_ = {};
  }

  // If all hosts are refused, a list that can change gets time to be corrected.
  static RemoteOptions patient(const ListedOptions& listed) {
    auto options = listed.remote;
    if (listed.hosts.interval() > 0)
      options.all_refused = std::max(options.all_refused, std::max(60.0, 3 * listed.hosts.interval()));
    return options;
  }

  void follow_once() {
    const auto change = options_.hosts.poll(list_.get_token());
    if (list_.stop_requested()) return;
    const bool empty = options_.hosts.kept_outside() && options_.hosts.hosts().empty() && !change.error;
    if (empty && !std::exchange(empty_told_, empty))
      notices_->say_now(fmt::format("there is no host to run trials on: {} are none; looks again every {:g} s",
                                    options_.hosts.what(), options_.hosts.interval()));
    empty_told_ = empty;
    if (change.error && change.error != list_error_)
      notices_->say(fmt::format("{} cannot be read, the last ones hold: {}", options_.hosts.what(), *change.error));
    list_error_ = change.error;
    for (const auto& name : change.left) {
      const bool again =
          std::any_of(change.joined.begin(), change.joined.end(), [&](const auto& host) { return host.name == name; });
      if (!again) pool_.remove(name);
    }
    for (const auto& host : change.joined) {
      pool_.add({.name = host.name, .dialer = dialer_(with_limits(host, options_.limits))});
    }
  }

  void follow() {
    std::string failed;
    std::unique_lock hold(mutex_);
    while (!stop_.wait_for(hold, std::chrono::duration<double>(options_.hosts.interval()), [&] { return stopping_; })) {
      hold.unlock();
      try {
        follow_once();
        failed.clear();
      } catch (const std::exception& error) {
        if (std::exchange(failed, error.what()) != error.what())
          notices_->say(fmt::format("{} cannot be followed, tries again: {}", options_.hosts.what(), error.what()));
      }
      hold.lock();
    }
  }

  ListedOptions options_;
  MakeDialer dialer_;
  std::shared_ptr<Notices> notices_;
  HostPool pool_;
  RemoteExecutor executor_;
  std::mutex begin_mutex_, mutex_;
  std::condition_variable stop_;
  bool begun_ = false, stopping_ = false, empty_told_ = false;
  std::stop_source list_;  // interrupts the program that lists hosts
  std::optional<std::string> list_error_;
  std::thread thread_;
};

ListedExecutor::ListedExecutor(ListedOptions options, MakeDialer dialer, std::shared_ptr<Notices> notices)
    : ExecutorHandle(std::make_shared<State>(std::move(options), std::move(dialer), std::move(notices))) {}
std::string ListedExecutor::name() const { return state<State>().name(); }
std::vector<HostAccount> ListedExecutor::accounts() const { return state<State>().accounts(); }

}  // namespace hypertune::inline v0::remote
