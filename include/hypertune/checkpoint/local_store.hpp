// LocalCheckpointStore: checkpoints as folders on a local (or shared) disk.
#pragma once

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
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
/// A sealed checkpoint appears by one rename after all of it is on the disk, and disappears by one rename before any of
/// it is deleted. So list() returns only complete ones, whatever dies at any time. Thread-safe; copies share one state.
/// Constructing a store does not touch any file. A trials/<id> that is a symbolic link is not followed: there is nothing
/// behind it, nothing is deleted there, and saving is an Error of kind `io`. (trials/<id>/checkpoints may be one.)
class LocalCheckpointStore {
 public:
  struct Options {
    bool sync = true;  ///< force sealed checkpoints to the disk; without it a power cut may lose the newest ones
    /// Folders of experiments in which open() finds checkpoints, too. Nothing is ever changed there.
    std::vector<std::filesystem::path> origins = {};
    bool make_root = true;  ///< create the experiment's folder if it is missing; else begin() throws then
  };

  explicit LocalCheckpointStore(std::filesystem::path experiment_directory)
      : LocalCheckpointStore(std::move(experiment_directory), Options()) {}
  LocalCheckpointStore(std::filesystem::path experiment_directory, Options options)
      : state_(std::make_shared<State>(std::move(experiment_directory), std::move(options))) {}

  /// Creates the folder for writing the checkpoint of `trial` after `steps` steps. `parent`: the name of the checkpoint
  /// that training continued from. Errors: `usage` (a negative number), `io` (the folder cannot be made, or the
  /// experiment's is missing and Options::make_root is false).
  CheckpointWriter begin(TrialId trial, int steps, std::string parent = {});

  /// Hashes the files, writes the manifest, syncs and renames; then the checkpoint is listed. On an Error (kind
  /// `usage`: what the trial wrote cannot be a checkpoint; kind `io`: the disk is full or fails) the written files are
  /// removed.
  CheckpointInfo seal(CheckpointWriter writer);

  /// Removes what was written, after a failed save. If that fails, recover() removes it later.
  void discard(const CheckpointWriter& writer);

  /// Takes over a folder that a trial wrote by itself: moves and seals it. On an Error (kind `usage`: there is no such
  /// folder, or it cannot be a checkpoint; kind `io`) it is back in its place.
  CheckpointInfo adopt(TrialId trial, int steps, const std::filesystem::path& folder, std::string parent = {});

  /// Takes over a folder with the verified and synced files of a checkpoint that was sealed elsewhere, and its
  /// `manifest`. It is listed as `name`, or under the next free name if another one has that. Errors: `corrupt` (the
  /// manifest is invalid), `usage` (`name` is not a checkpoint's name), `io`.
  CheckpointInfo admit(const std::filesystem::path& folder, std::string_view manifest, const std::string& name);

  /// Takes over, by one rename, the sealed checkpoint in `folder`, which belongs to another store on the same file
  /// system. Before that, its manifest is compared with `info` and the sizes of its files are checked; their contents
  /// are not read. It is listed as info.name, or under the next free name. Error of kind `corrupt` if a check fails,
  /// `io` if it no longer exists or cannot be moved.
  CheckpointInfo take_over(const std::filesystem::path& folder, const CheckpointInfo& info);

  /// Opens a sealed checkpoint after verifying every byte of it. The Error of kind `corrupt` names the checkpoint, the
  /// file, and the problem; a missing checkpoint is one, too. Error of kind `io` if it cannot be read now.
  Checkpoint open(const CheckpointInfo& info);

  /// Renames a corrupt checkpoint to .corrupt-…, where it can be examined. No error if it is gone; `io` if it cannot be
  /// renamed.
  void set_aside(const CheckpointInfo& info);

  /// Deletes a checkpoint, also a damaged one. No error if it is gone, or if another one has its name by now. Error of
  /// kind `io` if it cannot be read, renamed or deleted.
  void drop(const CheckpointInfo& info);

  /// The sealed checkpoints of a trial, the newest (most steps) first; none if the trial has no folder. Checks only
  /// their manifests, and leaves out damaged ones; open() checks the rest. Error of kind `io` if the folder or a
  /// manifest cannot be read.
  std::vector<CheckpointInfo> list(TrialId trial);

  /// Removes what killed processes left half written or half deleted. Folders of living processes are left alone, and
  /// for a day also those of processes of other machines on a shared disk. What cannot be removed is left, without an
  /// error.
  void recover(TrialId trial);
  /// The same for all trials.
  void recover();

  /// Whether exactly this content is here or in an origin, according to its manifest; its files are not checked.
  bool names(const CheckpointInfo& info) const;

  /// Whether a symbolic link is in the place of the trial's folder.
  bool is_link(TrialId trial) const { return is_link(state_->root, trial); }
  /// Error of kind `io` if it is.
  void require_no_link(TrialId trial) const;

  /// The experiment's folder.
  const std::filesystem::path& root() const { return state_->root; }
  /// Whether sealed checkpoints are forced to the disk.
  bool syncs() const { return state_->options.sync; }
  /// trials/<id>/checkpoints
  std::filesystem::path folder(TrialId trial) const { return trial_directory(state_->root, trial) / "checkpoints"; }
  /// The folder of a sealed checkpoint. Error of kind `usage` if info.name is not a checkpoint's name.
  std::filesystem::path folder(const CheckpointInfo& info) const;

 private:
  struct State {
    State(std::filesystem::path directory, Options o) : root(std::move(directory)), options(std::move(o)) {}
    const std::filesystem::path root;
    const Options options;
    std::mutex mutex;
    std::set<TrialId> fresh;  // trials whose folders were created and are not synced yet
  };

  static std::filesystem::path trial_directory(const std::filesystem::path& root, TrialId trial) {
    return root / "trials" / std::to_string(trial);
  }
  static bool is_link(const std::filesystem::path& root, TrialId trial);
  std::filesystem::path make_folder(TrialId trial);
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
