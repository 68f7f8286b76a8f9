// The workers of a trial as one of them sees them: definitions.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/trial/group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

GroupError::GroupError(Kind kind, const std::string& message, std::vector<int> ranks)
    : Error(Errc::group, message), kind_(kind), ranks_(std::move(ranks)) {}

int GroupPlace::local_rank() const { return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, host())); }

int GroupPlace::local_size() const { return static_cast<int>(std::count(hosts.begin(), hosts.end(), host())); }

const std::string& GroupPlace::host() const { return hosts.at(static_cast<std::size_t>(rank)); }

bool operator==(const GroupPlace& a, const GroupPlace& b) {
  return a.generation == b.generation && a.rank == b.rank && a.hosts == b.hosts && a.network == b.network &&
         a.cpus == b.cpus;
}

struct Group::State {
  bool broken() const { return halted && *halted >= place.generation; }
  void update() {
    pending.store(joined && (stopped || broken() || next.generation > place.generation), std::memory_order_relaxed);
  }
  void require_wanted(bool for_next = true) const {
    if (stopped) throw GroupError(GroupError::Kind::changed, "the attempt is to end");
    if (for_next && next.rank < 0) throw GroupError(GroupError::Kind::changed, "the group goes on without this worker");
  }
  [[noreturn]] void throw_broken() const {
    throw GroupError(lost.empty() ? GroupError::Kind::changed : GroupError::Kind::lost, why, lost);
  }
  GroupError why_over() {
    const std::lock_guard guard(mutex);
    if (stopped) return {GroupError::Kind::changed, "the attempt is to end"};
    return {lost.empty() ? GroupError::Kind::changed : GroupError::Kind::lost, why, lost};
  }

  std::mutex calls;  // one call of on_halt at a time, and none after it was replaced; locked before mutex
  std::mutex mutex;
  std::condition_variable changed;
  GroupPlace next = {};  // the newest place that it was given
  Send send = {};
  GroupPlace place = {};
  bool joined = false, stopped = false;
  std::optional<std::uint32_t> halted = {}, running = {};
  std::string why = {};
  std::vector<int> lost = {};
  std::map<std::string, std::string> values = {};
  std::function<void(const GroupError&)> on_halt = {};
  std::function<bool()> busy = {};
  std::atomic<bool> pending{false}, rest{false}, committed{false};
  std::atomic<int> waiting{0};
  std::atomic<std::uint64_t> beats{0};
};

Group::Group() : self_(std::make_unique<State>()) {}

Group::Group(GroupPlace place, Send send) : self_(std::make_unique<State>()) {
  self_->next = place;
  self_->place = std::move(place);
  self_->send = std::move(send);
}

Group::~Group() = default;

Group::Waiting::Waiting(Group& group) : group_(group) { group_.self_->waiting.fetch_add(1, std::memory_order_relaxed); }

Group::Waiting::~Waiting() { group_.self_->waiting.fetch_sub(1, std::memory_order_relaxed); }

GroupPlace Group::place() const {
  const std::lock_guard guard(self_->mutex);
  return self_->place;
}

bool Group::leads() const {
  const std::lock_guard guard(self_->mutex);
  return self_->next.rank == 0;
}

bool Group::formed() const { return static_cast<bool>(self_->send); }

bool Group::rest_asked() { return self_->rest.exchange(false, std::memory_order_relaxed); }

bool Group::change_pending() const { return self_->pending.load(std::memory_order_relaxed); }

bool Group::joined() const {
  const std::lock_guard guard(self_->mutex);
  return self_->joined && !self_->broken();
}

GroupPlace Group::join(bool fixed, Seconds limit) {
  std::unique_lock lock(self_->mutex);
  if (!self_->send) {
    self_->joined = true;
    return self_->place;
  }
  // A generation that was joined before and that nobody has declared broken: its ranks do not reach each other.
  const bool given_up = self_->joined && self_->running == self_->place.generation;
  std::optional<std::uint32_t> told;
  Seconds late_at = 0;
  const Waiting waits(*this);
  for (;;) {
    self_->require_wanted();
    const std::uint32_t generation = self_->next.generation;
    const bool again = given_up && generation == self_->place.generation;
    const bool over = self_->halted && *self_->halted >= generation;
    if (!over && told != generation) {
      told = generation;
      late_at = detail::steady_seconds() + limit;
      const Send send = self_->send;
      lock.unlock();
      send({.kind = again ? GroupMessage::Kind::broken : GroupMessage::Kind::joined,
            .generation = generation,
            .key = self_->committed.exchange(false, std::memory_order_relaxed) ? "committed" : "",
            .value = fixed ? "fixed" : ""});
      lock.lock();
    } else if (!over && !again && self_->running == generation) {
      self_->place = self_->next;
      self_->joined = true;
      self_->values.clear();
      self_->update();
      return self_->place;
    } else if (!over && !again && detail::steady_seconds() >= late_at) {
      late_at = detail::steady_seconds() + limit;
      const Send send = self_->send;
      lock.unlock();
      send({.kind = GroupMessage::Kind::late, .generation = generation});
      lock.lock();
    } else {
      self_->changed.wait_for(lock, std::chrono::milliseconds(200));
    }
  }
}

void Group::note_commit() { self_->committed.store(true, std::memory_order_relaxed); }

void Group::waits_while(std::function<bool()> busy) {
  const std::lock_guard guard(self_->mutex);
  self_->busy = std::move(busy);
}

void Group::set(const std::string& key, const std::string& value) {
  std::unique_lock lock(self_->mutex);
  if (!self_->send) {
    self_->values[key] = value;
    return;
  }
  const auto generation = self_->place.generation;
  lock.unlock();
  self_->send({.kind = GroupMessage::Kind::set, .generation = generation, .key = key, .value = value});
}

std::optional<std::string> Group::wait(const std::string& key, Seconds seconds) {
  std::unique_lock lock(self_->mutex);
  const auto there = [&] { return self_->values.contains(key); };
  if (!self_->send) return there() ? std::optional(self_->values.at(key)) : std::nullopt;
  const auto generation = self_->place.generation;
  if (!there()) {
    lock.unlock();
    self_->send({.kind = GroupMessage::Kind::want, .generation = generation, .key = key});
    lock.lock();
  }
  const Waiting waits(*this);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e7));
  self_->changed.wait_until(lock, std::chrono::time_point_cast<std::chrono::steady_clock::duration>(until),
                            [&] { return there() || self_->broken() || self_->stopped; });
  if (there()) return self_->values.at(key);
  self_->require_wanted(false);
  if (self_->broken()) self_->throw_broken();
  return std::nullopt;
}

void Group::report_late(const std::vector<int>& ranks) {
  if (self_->send) self_->send({.kind = GroupMessage::Kind::late, .generation = place().generation, .ranks = ranks});
}

void Group::on_halt(std::function<void(const GroupError&)> halted) {
  const std::lock_guard order(self_->calls);
  {
    const std::lock_guard guard(self_->mutex);
    if (!halted || (!self_->broken() && !self_->stopped)) {
      self_->on_halt = std::move(halted);
      return;
    }
    self_->on_halt = nullptr;
  }
  halted(self_->why_over());
}

std::uint64_t Group::beats() {
  bool waits = self_->waiting.load(std::memory_order_relaxed) > 0;
  if (!waits) {
    const std::lock_guard guard(self_->mutex);
    waits = self_->busy && self_->busy();
  }
  return self_->beats.fetch_add(waits ? 1 : 0, std::memory_order_relaxed) + (waits ? 1 : 0);
}

void Group::receive(GroupMessage message) {
  const std::lock_guard order(self_->calls);
  std::function<void(const GroupError&)> halted;
  {
    const std::lock_guard guard(self_->mutex);
    switch (message.kind) {
      case GroupMessage::Kind::form:
        if (message.place.generation > self_->next.generation) self_->next = std::move(message.place);
        break;
      case GroupMessage::Kind::run: self_->running = message.generation; break;
      case GroupMessage::Kind::halt:
        self_->halted = std::max(self_->halted.value_or(0), message.generation);
        self_->why = std::move(message.value);
        self_->lost = std::move(message.ranks);
        break;
      case GroupMessage::Kind::value:
        if (message.generation == self_->place.generation) self_->values[message.key] = std::move(message.value);
        break;
      case GroupMessage::Kind::rest: self_->rest.store(true, std::memory_order_relaxed); break;
      default: return;
    }
    self_->update();
    if (self_->joined && self_->broken()) halted = std::exchange(self_->on_halt, nullptr);
  }
  self_->changed.notify_all();
  if (halted) halted(self_->why_over());
}

void Group::stop() {
  const std::lock_guard order(self_->calls);
  std::function<void(const GroupError&)> halted;
  {
    const std::lock_guard guard(self_->mutex);
    self_->stopped = true;
    self_->update();
    halted = std::exchange(self_->on_halt, nullptr);
  }
  self_->changed.notify_all();
  if (halted) halted(self_->why_over());
}

}  // namespace hypertune::inline v0
