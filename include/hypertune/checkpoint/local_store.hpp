// LocalCheckpointStore: checkpoints as folders on a local (or shared) disk.
#pragma once

#include <hypertune/checkpoint/folder_seal.hpp>
#include <hypertune/checkpoint/manifest.hpp>
#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The checkpoints of one experiment, below its folder:
///
///     trials/<id>/checkpoints/step-27/              sealed: the trial's files and manifest.json
///     trials/<id>/checkpoints/.staging-…/           being written
///     trials/<id>/checkpoints/.trash-…/             being deleted
///     trials/<id>/checkpoints/.corrupt-step-27/     set aside
///
/// A sealed one appears by one rename after all of it is on the disk, and disappears by one rename before any of it is
/// deleted: whatever dies when, list() gives only whole ones. Safe to use from several threads; copies share one state.
/// Making one touches no file.
class LocalCheckpointStore {
 public:
  struct Options {
    bool sync = true;  ///< force to the disk what is sealed; without it a power cut may take the newest ones
    /// Folders of experiments where open() finds checkpoints, too. Nothing is ever changed there.
    std::vector<std::filesystem::path> origins = {};
    bool make_root = true;  ///< make the experiment's folder where it is missing; else begin() is an Error then
  };

  explicit LocalCheckpointStore(std::filesystem::path experiment_directory)
      : LocalCheckpointStore(std::move(experiment_directory), Options()) {}
  LocalCheckpointStore(std::filesystem::path experiment_directory, Options options)
      : state_(std::make_shared<State>(std::move(experiment_directory), std::move(options))) {}

  /// The folder to write the checkpoint of `trial` after `steps` steps into. `parent`: the name of the one that
  /// training went on from.
  CheckpointWriter begin(TrialId trial, int steps, std::string parent = {});

  /// Hashes, writes the manifest, syncs, renames: then it is listed. On an Error (kind `usage`: what the trial wrote
  /// cannot be a checkpoint; kind `io`: the disk is full or refuses) what was written is removed.
  CheckpointInfo seal(CheckpointWriter writer);

  /// Removes what was written, where a save failed.
  void discard(const CheckpointWriter& writer);

  /// Takes over a folder that a trial wrote by itself: it is moved and sealed. On an Error it is back where it was.
  CheckpointInfo adopt(TrialId trial, int steps, const std::filesystem::path& folder, std::string parent = {});

  /// Takes over a folder that holds, verified and synced, the files of a checkpoint sealed elsewhere, and `manifest` of
  /// it: it is listed as `name`, or under the next free name if another one has that. Error of kind `corrupt` if the
  /// manifest is none.
  CheckpointInfo admit(const std::filesystem::path& folder, std::string_view manifest, const std::string& name);

  /// Takes over, by one rename, the sealed checkpoint in `folder`, of another store on the same file system: that it is
  /// `info`, and whole by its files' sizes, is checked before; no byte of them is read. It is listed as info.name, or
  /// under the next free name. Error of kind `corrupt` if it is not, `io` if it is not there any more or cannot be
  /// moved.
  CheckpointInfo take_over(const std::filesystem::path& folder, const CheckpointInfo& info);

  /// Opens a sealed one after checking every byte of it. Error of kind `corrupt` that names the checkpoint, the file,
  /// and what is wrong.
  Checkpoint open(const CheckpointInfo& info);

  /// Renames a corrupt one to .corrupt-…, where it stays for a look. No error if it is gone.
  void set_aside(const CheckpointInfo& info);

  /// Deletes. No error if it is gone, or if another one has its name by now.
  void drop(const CheckpointInfo& info);

  /// The sealed ones of a trial, newest (most steps) first. Checks their manifests only; open() checks the rest.
  std::vector<CheckpointInfo> list(TrialId trial);

  /// Removes what a process that was killed left half written or half deleted. What a living one is at work on is left
  /// alone; so is, for a day, what a process of another machine has left on a shared disk.
  void recover(TrialId trial);
  /// The same for all trials.
  void recover();

  /// Whether this very content lies here, or in one of the origins, by its manifest; its files are not looked at.
  bool names(const CheckpointInfo& info) const;

  /// The experiment's folder.
  const std::filesystem::path& root() const { return state_->root; }
  /// Whether what is sealed is forced to the disk.
  bool syncs() const { return state_->options.sync; }
  /// trials/<id>/checkpoints
  std::filesystem::path folder(TrialId trial) const { return trial_directory(trial) / "checkpoints"; }
  /// Where a sealed checkpoint lies. Error of kind `usage` if `info` has no name of a checkpoint.
  std::filesystem::path folder(const CheckpointInfo& info) const;

 private:
  struct State {
    State(std::filesystem::path directory, Options o) : root(std::move(directory)), options(std::move(o)) {}
    const std::filesystem::path root;
    const Options options;
    std::mutex mutex;
    std::set<TrialId> fresh;  // trials whose folders were made and not yet synced
  };

  std::filesystem::path trial_directory(TrialId trial) const { return state_->root / "trials" / std::to_string(trial); }
  std::filesystem::path new_staging(TrialId trial);
  std::filesystem::path find(const CheckpointInfo& info) const;
  void sync_new_folders(TrialId trial);
  CheckpointInfo seal_staging(const CheckpointWriter& writer);
  std::string publish(TrialId trial, const std::filesystem::path& staging, const std::string& wanted);
  static std::optional<std::filesystem::path> move_aside(const std::filesystem::path& folder, const std::string& name);
  void sweep(const std::filesystem::path& folder);

  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/checkpoint/impl/local_store.hpp>
#endif
