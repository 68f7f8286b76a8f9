// The checkpoints that are served: which one is the best, and its files, which stay as long as they are served.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/descriptor.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/serve/serve.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::serving {

/// A folder for the files of one server, locked as long as it lives: `serving/N` in the experiment's folder, or a temporary
/// one of this user alone if that cannot be written. Those in the experiment's folder of servers that were killed are removed.
class ServingFolder {
 public:
  explicit ServingFolder(const std::filesystem::path& experiment);
  ServingFolder(const ServingFolder&) = delete;
  ServingFolder& operator=(const ServingFolder&) = delete;
  ~ServingFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  bool make_in(const std::filesystem::path& folder);
  std::filesystem::path path_;
  hypertune::detail::Descriptor lock_;
};

/// A verified checkpoint, in hard links or copies of its files: what deletes the experiment's does not touch them. They are
/// removed by the destructor.
struct ModelFiles {
  ModelFiles(CheckpointInfo info, Params params, std::optional<BestReport> value, std::filesystem::path folder);
  ModelFiles(const ModelFiles&) = delete;
  ModelFiles& operator=(const ModelFiles&) = delete;
  ~ModelFiles();

  const std::string version;  ///< "TRIAL-STEPS"
  const CheckpointInfo info;
  const Params params;
  const std::optional<BestReport> value;  ///< the trial's best report, if this is its checkpoint
  const std::filesystem::path folder;
};

std::string version_of(const CheckpointInfo& checkpoint);

/// Reads an experiment while it goes on. To be used by one thread.
class ModelSource {
 public:
  ModelSource(const std::filesystem::path& experiment, const std::filesystem::path& folder);

  const ExperimentInfo& experiment() const { return results_.experiment(); }
  /// Reads what was added to the record. False: nothing.
  bool update();
  /// The files of `pin`, or of the best trial that has an intact checkpoint: the one of its best step if it is kept, else
  /// its newest. nullptr: it is `current`, or there is none. Errors: `usage` (no such version), `io`.
  std::shared_ptr<const ModelFiles> newest(const std::string& pin, const std::string& current);
  /// Whether the experiment has ended, as far as is recorded.
  bool ended() const { return results_.experiment().ended.has_value(); }

 private:
  std::shared_ptr<const ModelFiles> take(const TrialResult& trial, const CheckpointInfo& checkpoint);
  std::optional<std::shared_ptr<const ModelFiles>> first_intact(const TrialResult& trial, const std::string& current);

  Results results_;
  LocalCheckpointStore store_;
  std::filesystem::path folder_;
  int made_ = 0;
};

}  // namespace hypertune::inline v0::serving
