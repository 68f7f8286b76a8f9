// A checkpoint as a trial sees it: named files to write or to read.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

/// A sealed checkpoint as described in the records.
struct CheckpointInfo {
  TrialId trial = -1;
  int steps = 0;            ///< steps done when it was saved: training continues with step number `steps`
  std::string name;         ///< the name of its folder below trials/<id>/checkpoints
  std::uint64_t bytes = 0;  ///< of all files together
  std::string digest;       ///< of the manifest, in hexadecimal: identifies the content
  friend bool operator==(const CheckpointInfo& a, const CheckpointInfo& b);
};

/// Throws an Error of kind `usage` unless `name` is a relative path that stays below its folder (no "..", no root, no
/// empty part).
void require_safe_name(std::string_view name);

/// A checkpoint that is being written, in a separate folder that nobody else reads. Write each file to the path that
/// file() returns, and close it before returning. Not thread-safe.
class CheckpointWriter {
 public:
  /// `parent`: the name of the checkpoint that the trial continued from, if any.
  CheckpointWriter(TrialId trial, int steps, std::filesystem::path staging, std::string parent = {});

  /// The path for writing the file called `name` ("model.bin", "shards/0"). Folders in between are created. Error of
  /// kind `usage` if require_safe_name() refuses the name, of kind `io` if a folder cannot be created. Control characters
  /// and "manifest.json" are refused later, when the checkpoint is sealed.
  std::filesystem::path file(std::string_view name) const;

  TrialId trial() const { return trial_; }
  int steps() const { return steps_; }
  const std::filesystem::path& directory() const { return staging_; }
  const std::string& parent() const { return parent_; }

 private:
  TrialId trial_;
  int steps_;
  std::filesystem::path staging_;
  std::string parent_;
};

/// A sealed checkpoint, verified when it was opened.
class Checkpoint {
 public:
  Checkpoint(CheckpointInfo info, std::filesystem::path directory);

  /// The path of the file called `name`; Error of kind `usage` if the checkpoint has no such file.
  std::filesystem::path file(std::string_view name) const;
  /// Whether it has a file of this name. Errors as of require_safe_name().
  bool has(std::string_view name) const;

  const CheckpointInfo& info() const { return info_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  CheckpointInfo info_;
  std::filesystem::path directory_;
};

}  // namespace hypertune::inline v0
