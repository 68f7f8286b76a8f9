// A checkpoint as a trial sees it: named files to write or to read.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// A sealed checkpoint as described in the records.
struct CheckpointInfo {
  TrialId trial = -1;
  int steps = 0;            ///< steps done when it was saved: training continues with step number `steps`
  std::string name;         ///< the name of its folder below trials/<id>/checkpoints
  std::uint64_t bytes = 0;  ///< of all files together
  std::string digest;       ///< of the manifest, in hexadecimal: identifies the content
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

/// Throws an Error of kind `usage` unless `name` is a relative path that stays below its folder (no "..", no root, no
/// empty part).
void require_safe_name(std::string_view name);

/// A checkpoint that is being written, in a separate folder that nobody else reads. Write each file to the path that
/// file() returns, and close it before returning. Not thread-safe.
class CheckpointWriter {
 public:
  /// `parent`: the name of the checkpoint that the trial continued from, if any.
  CheckpointWriter(TrialId trial, int steps, std::filesystem::path staging, std::string parent = {})
      : trial_(trial), steps_(steps), staging_(std::move(staging)), parent_(std::move(parent)) {}

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
  Checkpoint(CheckpointInfo info, std::filesystem::path directory)
      : info_(std::move(info)), directory_(std::move(directory)) {}

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

inline void require_safe_name(std::string_view name) {
  const std::filesystem::path path(name);
  bool safe = !name.empty() && path.is_relative() && name.find('\0') == std::string_view::npos;
  for (const auto& part : path) safe = safe && !part.empty() && part != ".." && part != ".";
  if (!safe)
    fail(Errc::usage, "'{}' cannot be a checkpoint file's name: use a relative path without '.', '..' or empty parts",
         name);
}

inline std::filesystem::path CheckpointWriter::file(std::string_view name) const {
  require_safe_name(name);
  auto path = staging_ / name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", path.parent_path().string(), error.message());
  return path;
}

inline bool Checkpoint::has(std::string_view name) const {
  require_safe_name(name);
  return std::filesystem::is_regular_file(directory_ / name);
}

inline std::filesystem::path Checkpoint::file(std::string_view name) const {
  if (!has(name)) fail(Errc::usage, "checkpoint '{}' of trial {} has no file '{}'", info_.name, info_.trial, name);
  return directory_ / name;
}

}  // namespace hypertune::inline v0
