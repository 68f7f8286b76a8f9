// TensorBoard: an event file per trial, with its curves and its hyperparameters.
#pragma once

#include <hypertune/record/callback.hpp>
#include <hypertune/record/log_files.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/tensorboard_events.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune {

/// A Callback that writes `trials/<id>/events.out.tfevents.0.hypertune`: `tensorboard --logdir DIR` shows each trial as
/// a run, its metrics as scalars over the steps, and parameters beside metrics in the HPARAMS tab. (TensorBoard keeps
/// 32-bit floats.) Nothing of TensorBoard or protobuf is needed to write them.
///
/// After a resume the files go on where they ended; see CsvLogger, whose promises hold here too.
class TensorBoardLogger {
 public:
  void on_open(const std::filesystem::path& directory) {
    trials_.clear();
    follower_.open(directory, position_.load(directory / "trials" / ".tensorboard"));
  }
  void on_record(const Record& record) {
    follower_.follow(record, [&](const Record& r) {
      add(r);
      if (changed_.size() > 8192 || ++unwritten_ > 65536) flush();  // while catching up with the Journal
    });
  }
  void on_batch_end() {
    if (follower_.directory().empty()) return;
    flush();
    if (follower_.last() > 0) position_.save(follower_.last());
  }
  std::string name() const { return "tensorboard"; }

 private:
  struct Trial {
    std::string records;  // not written yet
    bool ended = false;
    bool changed = false;  // is in changed_
  };

  static constexpr const char* file_name = "events.out.tfevents.0.hypertune";

  void add(const Record& record) {
    namespace tb = detail::tensorboard;
    if (const auto* created = std::get_if<record::TrialCreated>(&record.what)) {
      std::error_code none;
      std::filesystem::remove(detail::trial_file(follower_.directory(), created->trial, file_name), none);
      Trial& trial = trials_[created->trial] = {};
      trial.records = tb::version_record(record.time);
      const std::string group = std::to_string(created->trial);
      tb::put_summary_record(trial.records, record.time, 0, tb::session_start(created->params, group, record.time));
      note(created->trial, trial);
    } else if (const auto* report = std::get_if<record::TrialReported>(&record.what)) {
      Trial& trial = known(report->trial, report->step, record.time);
      std::string summary;
      for (const auto& [metric, value] : report->metrics) tb::put_scalar(summary, metric, value);
      tb::put_summary_record(trial.records, record.time, report->step, summary);
    } else if (const auto* ended = std::get_if<record::TrialEnded>(&record.what)) {
      Trial& trial = known(ended->trial, std::numeric_limits<int>::max(), record.time);
      const auto status = ended->state == TrialState::failed ? tb::Status::failure : tb::Status::success;
      tb::put_summary_record(trial.records, record.time, 0, tb::session_end(status, record.time));
      trial.ended = true;
    }
  }

  // The trial whose next report is of `step`. If this run has not met it yet, its file is cut to what holds: whole
  // records of the steps before, and no end.
  Trial& known(TrialId id, int step, Seconds time) {
    namespace tb = detail::tensorboard;
    const auto [found, inserted] = trials_.try_emplace(id);
    Trial& trial = found->second;
    note(id, trial);
    if (!inserted) return trial;
    const auto path = detail::trial_file(follower_.directory(), id, file_name);
    const std::string bytes = detail::read_whole(path);
    std::string_view rest = bytes;
    std::size_t keep = 0;
    while (const auto message = tb::take_record(rest)) {
      if (tb::event_step(*message) >= step && keep > 0 &&
          message->find(tb::session_start_tag) == std::string_view::npos)
        break;
      if (message->find(tb::session_end_tag) != std::string_view::npos) break;
      keep = bytes.size() - rest.size();
    }
    if (keep < bytes.size()) detail::append_to(path, {}, keep);
    if (keep == 0) trial.records = tb::version_record(time);
    return trial;
  }

  void note(TrialId id, Trial& trial) {
    if (!std::exchange(trial.changed, true)) changed_.push_back(id);
  }

  void flush() {
    for (const TrialId id : changed_) {
      const auto found = trials_.find(id);
      if (found == trials_.end()) continue;
      Trial& trial = found->second;
      if (!trial.records.empty())
        detail::append_to(detail::trial_file(follower_.directory(), id, file_name), trial.records);
      trial.records = std::string();
      trial.changed = false;
      if (trial.ended) trials_.erase(found);
    }
    changed_.clear();
    unwritten_ = 0;
  }

  detail::LogFollower follower_;
  detail::LogPosition position_;
  std::unordered_map<TrialId, Trial> trials_;
  std::vector<TrialId> changed_;
  std::size_t unwritten_ = 0;
};

static_assert(Callback<TensorBoardLogger>);

}  // namespace hypertune
