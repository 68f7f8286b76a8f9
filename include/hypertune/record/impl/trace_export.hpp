// Included by trace_export.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/best_so_far.hpp>
#include <hypertune/record/journal_reader.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trace_export.hpp>

#include <fmt/ranges.h>

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

  void begin() { text_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"; }
  void end(std::string_view name, Seconds start) {
    text_ += "\n], \"otherData\": {\"experiment\": ";
    append_json(text_, name);
    append_json(text_ += ", \"start\": ", start);
    text_ += ", \"made_by\": \"hypertune\"}}\n";
    (*sink_)(text_);
    text_.clear();
  }
  void first_time(Seconds time) { start_ = time; }
  Seconds start() const { return start_; }

  std::int64_t micros(Seconds time) const { return std::llround((time - start_) * 1e6); }

  /// Begins an event. The caller may append its `args` to the result.
  std::string& event(char phase, std::string_view name, Slot slot, std::int64_t ts) {
    close();
    if (text_.size() > most_held) {
      (*sink_)(text_);
      text_.clear();
    }
    text_ += std::exchange(separator_, ",\n");
    text_ += detail::format("{{\"ph\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}, \"name\": ", phase, slot.process,
                            slot.thread, ts);
    append_json(text_, name);
    open_ = true;
    return text_;
  }
  void close() {
    if (std::exchange(open_, false)) text_ += '}';
  }

  void meta(const char* what, std::string_view name, Slot slot) {
    append_json(event('M', what, slot, 0) += ", \"args\": {\"name\": ", name);
    text_ += '}';
  }
  void sort_index(const char* what, int index, Slot slot) {
    event('M', what, slot, 0) += detail::format(", \"args\": {{\"sort_index\": {}}}", index);
  }
  /// An event without duration on a thread.
  std::string& instant(std::string_view name, Slot slot, std::int64_t ts) {
    return event('i', name, slot, ts) += ", \"s\": \"t\"";
  }
  /// The text of the event that was begun last.
  std::string& text() { return text_; }
  void args(const auto& pairs) { append_json_object(text_ += ", \"args\": ", pairs); }

 private:
  static constexpr std::size_t most_held = 1U << 16U;
  const std::function<void(std::string_view)>* sink_;
  std::string text_;
  const char* separator_ = "";
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
    auto& text = out_->event('B', e.resumed ? "resumed" : "started", drivers, now_);
    append_json(text += ", \"args\": {\"search\": ", e.searcher);
    append_json(text += ", \"schedule\": ", e.scheduler);
    append_json(text += ", \"executor\": ", e.executor);
    text += '}';
  }
  void operator()(const record::ExperimentEnded& e) {
    if (!e.why.empty()) {
      append_json(out_->instant("ended", drivers, now_) += ", \"args\": {\"why\": ", e.why);
      text_end();
    }
    end_driver(now_);
  }
  void operator()(const record::TrialCreated& e) {
    begin_state(e.trial, "pending");
    out_->args(e.params);
  }
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
    append_json(out_->instant("resized", found->second.slots.front(), now_) +=
                detail::format(", \"args\": {{\"workers\": {}, \"why\": ", e.workers.size()),
                e.why);
    text_end();
    const std::vector<Slot> before = found->second.slots;  // a worker that stays on its host keeps its slot
    release(e.trial, found->second);
    occupy(e.trial, found->second, e.workers, e.attempt, e.generation, found->second.next_step, before);
    found->second.since = now_;
  }
  void operator()(const record::TrialReported& e) {
    if (const auto found = running_.find(e.trial); found != running_.end()) {
      Running& trial = found->second;
      out_->event('X', detail::format("step {}", e.step), trial.slots.front(), trial.since) +=
          detail::format(", \"dur\": {}", now_ - trial.since);
      out_->args(e.metrics);
      trial.since = now_;
      trial.reported = now_;
      trial.next_step = e.step + 1;
    }
    const auto value = best_ ? best_->add(e.trial, e.metrics) : std::nullopt;
    if (!value) return;
    append_json(out_->event('C', "best so far", drivers, now_) += ", \"args\": {\"value\": ", *value);
    text_end();
  }
  void operator()(const record::TrialCheckpointed& e) {
    const auto found = running_.find(e.trial);
    const Slot where = found == running_.end() ? trials : found->second.slots.front();
    append_json(out_->instant("checkpoint", where, now_) +=
                detail::format(", \"args\": {{\"trial\": {}, \"steps\": {}, \"bytes\": {}, \"name\": ", e.trial,
                               e.checkpoint.steps, e.checkpoint.bytes),
                e.checkpoint.name);
    text_end();
    if (found != running_.end() && found->second.reported) {
      span('b', "saving", "checkpoint", e.trial, *found->second.reported) +=
          detail::format(", \"args\": {{\"steps\": {}, \"bytes\": {}}}", e.checkpoint.steps, e.checkpoint.bytes);
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
    mark(e.trial, "exploited", detail::format("{{\"donor\": {}, \"steps\": {}}}", e.donor, e.checkpoint.steps));
    if (const auto donor = saved_.find(e.donor); donor != saved_.end()) saved_[e.trial] = donor->second;
  }
  void operator()(const record::AttemptFailed& e) {
    std::string args = "{\"why\": ";
    append_json(args, e.cause.text);
    args += detail::format(", \"source\": \"{}\", \"attempt\": {}}}", to_string(e.cause.source), e.attempt);
    mark(e.trial, "failed", args);
    leave(e.trial);
    if (e.retry) begin_state(e.trial, "pending");
  }
  void operator()(const record::TrialEnded& e) {
    std::string args = detail::format("{{\"state\": \"{}\"", to_string(e.state));
    if (e.cause) append_json(args += ", \"why\": ", e.cause->text);
    mark(e.trial, "ended", args += '}');
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
    std::string args;
    append_json_object(args, e.attributes);
    mark(e.trial, "note", args);
  }
  void operator()(const record::WorkersRequested& e) {
    mark(e.trial, "workers asked", detail::format("{{\"workers\": {}}}", e.workers));
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

  void text_end() { out_->text() += '}'; }

  std::string& span(char phase, std::string_view name, const char* category, TrialId trial, std::int64_t ts) {
    return out_->event(phase, name, trials, ts) +=
           detail::format(", \"cat\": \"{}\", \"id\": \"{}-{}\"", category, category, trial);
  }
  void async_end(TrialId trial, const char* state) { span('e', state, "trial", trial, now_); }
  void begin_state(TrialId trial, const char* state) {
    if (const auto found = states_.find(trial); found != states_.end()) async_end(trial, found->second);
    states_[trial] = state;
    span('b', state, "trial", trial, now_);
  }

  void mark(TrialId trial, const char* what, const std::string& args) {
    const auto found = running_.find(trial);
    const Slot where = trial < 0 ? drivers : found == running_.end() ? trials : found->second.slots.front();
    auto& text = out_->instant(trial < 0 ? what : detail::format("trial {} {}", trial, what), where, now_);
    (text += ", \"args\": ") += args;
  }
  void host_mark(const char* what, const std::string& host, const std::string& why) {
    append_json(out_->instant(what, drivers, now_) += ", \"args\": {\"host\": ", host);
    append_json(out_->text() += ", \"why\": ", why);
    text_end();
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
      auto& text = out_->event('B', detail::format("trial {}", id), trial.slots.back(), now_);
      text += detail::format(
          ", \"args\": {{\"trial\": {}, \"attempt\": {}, \"generation\": {}, \"rank\": {}, \"from_step\": {}", id,
          attempt, generation, rank, step);
      for (const auto& [what, numbers] : {std::pair("cpus", &places[rank].cpus), std::pair("gpus", &places[rank].gpus)})
        text += detail::format(", \"{}\": [{}]", what, fmt::join(*numbers, ", "));
      text += '}';
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
    const auto flow = [&](char phase, Slot slot, std::int64_t ts) -> std::string& {
      return out_->event(phase, "goes on from", slot, ts) +=
             detail::format(", \"cat\": \"checkpoint\", \"id\": \"flow-{}\"", flows_);
    };
    ++flows_;
    flow('s', saved->second.where, saved->second.time);
    flow('f', trial.slots.front(), now_) += ", \"bp\": \"e\"";
  }
  void count() {
    out_->event('C', "running trials", drivers, now_) +=
        detail::format(", \"args\": {{\"trials\": {}}}", running_.size());
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
