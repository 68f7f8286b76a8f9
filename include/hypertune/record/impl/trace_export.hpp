// Included by trace_export.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/best_so_far.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trace_export.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::trace {

/// A thread of the trace.
struct Slot {
  int process = 0, thread = 0;
};

/// Writes events, one per line. `ts` and `dur` are whole microseconds.
class Writer {
 public:
  explicit Writer(const std::function<void(std::string_view)>& sink) : sink_(&sink) {}

  void begin() { out_.begin_object().member("displayTimeUnit", "ms").key("traceEvents").begin_array(); }
  void end(std::string_view name, Seconds start) {
    out_.white("\n").end_array().key("otherData").begin_object().member("experiment", name).member("start", start);
    out_.member("made_by", "hypertune").end_object().end_object().white("\n");
    (*sink_)(out_.take());
  }
  void first_time(Seconds time) { start_ = time; }
  Seconds start() const { return start_; }

  std::int64_t micros(Seconds time) const { return std::llround((time - start_) * 1e6); }

  /// Begins an event. The caller may add members, its `args` as the last.
  JsonWriter& event(char phase, std::string_view name, Slot slot, std::int64_t ts) {
    close();
    if (out_.size() > max_held) (*sink_)(out_.take());
    open_ = true;
    out_.next("\n").begin_object().member("ph", std::string_view(&phase, 1)).member("pid", slot.process);
    return out_.member("tid", slot.thread).member("ts", ts).member("name", name);
  }
  void close() {
    if (std::exchange(open_, false)) out_.end_object();
  }

  void meta(const char* what, std::string_view name, Slot slot) {
    event('M', what, slot, 0).key("args").begin_object().member("name", name).end_object();
  }
  void sort_index(const char* what, int index, Slot slot) {
    event('M', what, slot, 0).key("args").begin_object().member("sort_index", index).end_object();
  }
  /// An event without duration on a thread.
  JsonWriter& instant(std::string_view name, Slot slot, std::int64_t ts) {
    return event('i', name, slot, ts).member("s", "t");
  }

 private:
  static constexpr std::size_t max_held = 1U << 16U;
  const std::function<void(std::string_view)>* sink_;
  JsonWriter out_{JsonFor::file};
  bool open_ = false;
  Seconds start_ = 0;
};

/// Follows the records and keeps track of which trial runs where.
class Follower {
 public:
  explicit Follower(Writer& out) : out_(&out) {}

  void operator()(const Record& record) {
    if (record.sequence == 1) {
      out_->first_time(record.time);
      out_->meta("process_name", "experiment", drivers);
      out_->sort_index("process_sort_index", -2, drivers);
      out_->meta("process_name", "trials", trials);
      out_->sort_index("process_sort_index", -1, trials);
      out_->meta("thread_name", "drivers", drivers);
    }
    const std::int64_t now = out_->micros(record.time);
    if (std::holds_alternative<record::ExperimentStarted>(record.what) && driven_) end_driver(now_);
    now_ = std::max(now_, now);
    detail::visit(*this, record.what);
  }
  void finish() {
    if (driven_) end_driver(now_);
    for (const auto& [trial, state] : states_) async_end(trial, state);
    out_->close();
  }

  void operator()(const record::ExperimentStarted& e) {
    driven_ = true;
    name_ = e.name;
    if (!best_ && !e.objectives.empty()) best_.emplace(e.objectives.front(), e.constraints);
    auto& out = out_->event('B', e.resumed ? "resumed" : "started", drivers, now_).key("args").begin_object();
    out.member("search", e.searcher).member("schedule", e.scheduler).member("executor", e.executor).end_object();
  }
  void operator()(const record::ExperimentEnded& e) {
    if (!e.why.empty())
      out_->instant("ended", drivers, now_).key("args").begin_object().member("why", e.why).end_object();
    end_driver(now_);
  }
  void operator()(const record::TrialCreated& e) { begin_state(e.trial, "pending").key("args").pairs(e.params); }
  void operator()(const record::TrialStarted& e) {
    leave(e.trial);
    Running& trial = running_[e.trial];
    trial.since = now_;
    std::vector<record::WorkerPlace> places{{e.host, e.cpus, e.gpus}};
    places.insert(places.end(), e.others.begin(), e.others.end());
    occupy(e.trial, trial, places, e.attempt, e.generation, e.next_step);
    begin_state(e.trial, "running");
    arrive(e.trial, trial);
    count();
  }
  void operator()(const record::TrialResized& e) {
    const auto found = running_.find(e.trial);
    if (found == running_.end()) return;
    auto& out = out_->instant("resized", found->second.slots.front(), now_).key("args").begin_object();
    out.member("workers", e.workers.size()).member("why", e.why).end_object();
    const std::vector<Slot> before = found->second.slots;  // a worker that stays on its host keeps its slot
    release(e.trial, found->second);
    occupy(e.trial, found->second, e.workers, e.attempt, e.generation, found->second.next_step, before);
    found->second.since = now_;
  }
  void operator()(const record::TrialReported& e) {
    if (const auto found = running_.find(e.trial); found != running_.end()) {
      Running& trial = found->second;
      auto& out = out_->event('X', detail::format("step {}", e.step), trial.slots.front(), trial.since);
      out.member("dur", now_ - trial.since).key("args").pairs(e.metrics);
      trial.since = now_;
      trial.reported = now_;
      trial.next_step = e.step + 1;
    }
    const auto value = best_ ? best_->add(e.trial, e.metrics) : std::nullopt;
    if (!value) return;
    out_->event('C', "best so far", drivers, now_).key("args").begin_object().member("value", *value).end_object();
  }
  void operator()(const record::TrialCheckpointed& e) {
    const auto found = running_.find(e.trial);
    const Slot where = found == running_.end() ? trials : found->second.slots.front();
    auto& out = out_->instant("checkpoint", where, now_).key("args").begin_object().member("trial", e.trial);
    out.member("steps", e.checkpoint.steps).member("bytes", e.checkpoint.bytes);
    out.member("name", e.checkpoint.name).end_object();
    if (found != running_.end() && found->second.reported) {
      span('b', "saving", "checkpoint", e.trial, *found->second.reported).key("args").begin_object();
      out.member("steps", e.checkpoint.steps).member("bytes", e.checkpoint.bytes).end_object();
      span('e', "saving", "checkpoint", e.trial, now_);
    }
    saved_[e.trial] = {where, now_, e.checkpoint.name};
  }
  void operator()(const record::CheckpointDropped&) {}
  void operator()(const record::TrialPaused& e) {
    leave(e.trial);
    begin_state(e.trial, "paused");
  }
  void operator()(const record::TrialExploited& e) {
    mark(e.trial, "exploited").member("donor", e.donor).member("steps", e.checkpoint.steps).end_object();
    if (const auto donor = saved_.find(e.donor); donor != saved_.end()) saved_[e.trial] = donor->second;
  }
  void operator()(const record::AttemptFailed& e) {
    auto& out = mark(e.trial, "failed").member("why", e.cause.text).member("source", to_string(e.cause.source));
    out.member("attempt", e.attempt).end_object();
    leave(e.trial);
    if (e.retry) begin_state(e.trial, "pending");
  }
  void operator()(const record::TrialEnded& e) {
    auto& out = mark(e.trial, "ended").member("state", to_string(e.state));
    if (e.cause) out.member("why", e.cause->text);
    out.end_object();
    leave(e.trial);
    if (const auto state = states_.find(e.trial); state != states_.end()) {
      async_end(e.trial, state->second);
      states_.erase(state);
    }
    saved_.erase(e.trial);
    if (best_) best_->ended(e.trial);
  }
  void operator()(const record::HostGained& e) { host_mark("host gained", e.host, ""); }
  void operator()(const record::HostLost& e) { host_mark("host lost", e.host, e.why); }
  void operator()(const record::AttributesSet& e) {
    auto& out = mark(e.trial, "note");
    for (const auto& [name, value] : e.attributes) out.member(name, value);
    out.end_object();
  }
  void operator()(const record::WorkersRequested& e) {
    mark(e.trial, "workers asked").member("workers", e.workers).end_object();
  }

  const std::string& name() const { return name_; }

 private:
  static constexpr Slot drivers{1, 0}, trials{2, 0};

  struct Running {
    std::vector<Slot> slots;  // by rank
    std::int64_t since = 0;
    std::optional<std::int64_t> reported;
    int next_step = 0;
  };
  struct Host {
    int process = 0;
    std::vector<bool> taken;
  };
  struct Saved {
    Slot where;
    std::int64_t time = 0;
    std::string name;
  };

  JsonWriter& span(char phase, std::string_view name, const char* category, TrialId trial, std::int64_t ts) {
    return out_->event(phase, name, trials, ts)
        .member("cat", category)
        .member("id", detail::format("{}-{}", category, trial));
  }
  void async_end(TrialId trial, const char* state) { span('e', state, "trial", trial, now_); }
  JsonWriter& begin_state(TrialId trial, const char* state) {
    if (const auto found = states_.find(trial); found != states_.end()) async_end(trial, found->second);
    states_[trial] = state;
    return span('b', state, "trial", trial, now_);
  }

  /// The caller adds the arguments, and closes their object.
  JsonWriter& mark(TrialId trial, const char* what) {
    const auto found = running_.find(trial);
    const Slot where = trial < 0 ? drivers : found == running_.end() ? trials : found->second.slots.front();
    const auto name = trial < 0 ? what : detail::format("trial {} {}", trial, what);
    return out_->instant(name, where, now_).key("args").begin_object();
  }
  void host_mark(const char* what, const std::string& host, const std::string& why) {
    auto& out = out_->instant(what, drivers, now_).key("args").begin_object();
    out.member("host", host).member("why", why).end_object();
  }

  Slot take_slot(const std::string& name, const std::vector<Slot>& before) {
    const auto [found, added] = hosts_.try_emplace(name);
    Host& host = found->second;
    if (added) {
      host.process = 2 + static_cast<int>(hosts_.size());
      out_->meta("process_name", name.empty() ? "here" : name, {host.process, 0});
    }
    std::size_t slot = 0;
    while (slot < host.taken.size() && host.taken[slot]) ++slot;
    for (const Slot old : before)
      if (old.process == host.process && !host.taken[static_cast<std::size_t>(old.thread) - 1]) {
        slot = static_cast<std::size_t>(old.thread) - 1;
        break;
      }
    const Slot out{host.process, static_cast<int>(slot) + 1};
    if (slot == host.taken.size()) {
      host.taken.push_back(false);
      out_->meta("thread_name", detail::format("slot {}", slot), out);
      out_->sort_index("thread_sort_index", static_cast<int>(slot), out);
    }
    host.taken[slot] = true;
    return out;
  }
  void occupy(TrialId id, Running& trial, const std::vector<record::WorkerPlace>& places, Attempt attempt,
              std::uint32_t generation, int step, const std::vector<Slot>& before = {}) {
    trial.next_step = step;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      trial.slots.push_back(take_slot(places[rank].host, before));
      auto& out = out_->event('B', detail::format("trial {}", id), trial.slots.back(), now_).key("args").begin_object();
      out.member("trial", id).member("attempt", attempt).member("generation", generation).member("rank", rank);
      out.member("from_step", step).member("cpus", places[rank].cpus).member("gpus", places[rank].gpus).end_object();
    }
  }
  void release(TrialId id, Running& trial) {
    for (const Slot slot : trial.slots) {
      out_->event('E', detail::format("trial {}", id), slot, now_);
      for (auto& [name, host] : hosts_)
        if (host.process == slot.process) host.taken[static_cast<std::size_t>(slot.thread) - 1] = false;
    }
    trial.slots.clear();
  }
  void leave(TrialId id) {
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    release(id, found->second);
    running_.erase(found);
    count();
  }
  // Draws an arrow from a checkpoint to the attempt that continues from it.
  void arrive(TrialId id, const Running& trial) {
    const auto saved = saved_.find(id);
    if (saved == saved_.end() || trial.next_step == 0) return;
    const auto flow = [&](char phase, Slot slot, std::int64_t ts) -> JsonWriter& {
      auto& out = out_->event(phase, "goes on from", slot, ts).member("cat", "checkpoint");
      return out.member("id", detail::format("flow-{}", flows_));
    };
    ++flows_;
    flow('s', saved->second.where, saved->second.time);
    flow('f', trial.slots.front(), now_).member("bp", "e");
  }
  void count() {
    auto& out = out_->event('C', "running trials", drivers, now_).key("args").begin_object();
    out.member("trials", running_.size()).end_object();
  }
  // A driver that was killed could not record that its trials no longer run.
  void end_driver(std::int64_t ts) {
    if (!std::exchange(driven_, false)) return;
    while (!running_.empty()) {
      const TrialId id = running_.begin()->first;
      leave(id);
      begin_state(id, "pending");
    }
    out_->event('E', "driver", drivers, ts);
  }

  Writer* out_;
  std::string name_;
  std::optional<BestSoFar> best_;
  std::int64_t now_ = 0, flows_ = 0;
  bool driven_ = false;
  std::map<std::string, Host> hosts_;
  std::map<TrialId, Running> running_;
  std::map<TrialId, const char*> states_;  // of the trials that have not ended
  std::map<TrialId, Saved> saved_;         // the last checkpoint of each
};

}  // namespace detail::trace

void export_trace(const std::filesystem::path& directory, const std::function<void(std::string_view)>& sink) {
  JournalReader journal(directory);
  detail::trace::Writer out(sink);
  detail::trace::Follower follower(out);
  out.begin();
  journal.read([&](const Record& record) { follower(record); });
  follower.finish();
  out.end(follower.name(), out.start());
}

}  // namespace hypertune::inline v0
