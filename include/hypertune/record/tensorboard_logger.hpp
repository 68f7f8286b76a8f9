// TensorBoard: an event file per trial, with its curves and its hyperparameters.
#pragma once

#include <hypertune/record/callback.hpp>
#include <hypertune/record/detail/log_files.hpp>
#include <hypertune/record/detail/tensorboard_events.hpp>
#include <hypertune/record/record.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

/// A Callback that writes `trials/<id>/events.out.tfevents.0.hypertune`: `tensorboard --logdir DIR` shows each trial as
/// a run, its metrics as scalars over the steps, and parameters beside metrics in the HPARAMS tab. (TensorBoard stores
/// 32-bit floats.) Neither TensorBoard nor protobuf is needed to write them.
///
/// After a resume the files continue where they ended, with the guarantees of CsvLogger.
class TensorBoardLogger {
 public:
  void on_open(const std::filesystem::path& directory) { logs_.open(directory); }
  void on_record(const Record& record) {
    logs_.follow(record, [&](const Record& r) {
      add(r);
      if (logs_.changed() > 8192 || ++unwritten_ > 65536) flush();  // catching up with the Journal may take many
    });
  }
  void on_batch_end() {
    if (!logs_.opened()) return;
    flush();
    logs_.save_position();
  }
  std::string name() const { return "tensorboard"; }

 private:
  struct Trial {
    std::string records;  // not written yet
    bool ended = false;
    bool changed = false;  // is in changed_
  };

  void add(const Record& record) {
    namespace tb = detail::tensorboard;
    if (const auto* created = std::get_if<record::TrialCreated>(&record.what)) {
      detail::remove_trial_file(logs_.file(created->trial));
      Trial& trial = logs_.trials()[created->trial] = {};
      trial.records = tb::version_record(record.time);
      const std::string group = std::to_string(created->trial);
      tb::put_summary_record(trial.records, record.time, 0, tb::session_start(created->params, group, record.time));
      logs_.note(created->trial, trial);
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

  // The trial whose next report is of `step`. At its first use in this run, its file is cut to the valid part: complete
  // records of earlier steps, without the trial's end.
  Trial& known(TrialId id, int step, Seconds time) {
    namespace tb = detail::tensorboard;
    const auto [found, inserted] = logs_.trials().try_emplace(id);
    Trial& trial = found->second;
    logs_.note(id, trial);
    if (!inserted) return trial;
    const auto path = logs_.file(id);
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

  void flush() {
    logs_.flush([this](TrialId id, Trial& trial) {
      if (!trial.records.empty()) detail::append_to(logs_.file(id), trial.records);
      trial.records = std::string();
    });
    unwritten_ = 0;
  }

  detail::TrialLogs<Trial> logs_{"events.out.tfevents.0.hypertune", ".tensorboard"};
  std::size_t unwritten_ = 0;
};

static_assert(Callback<TensorBoardLogger>);

}  // namespace hypertune::inline v0
