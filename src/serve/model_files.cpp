#include "model_files.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/tune/best_folder.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::serving {

namespace fs = std::filesystem;

namespace {

hypertune::detail::Descriptor lock_of(const fs::path& folder) {
  auto lock = hypertune::detail::open_at(AT_FDCWD, (folder / "lock").c_str(), O_RDWR | O_CREAT, 0644);
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return lock;
}

// What servers have left that were killed.
void remove_abandoned(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && fs::exists(entry.path() / "lock", ignored))
      if (const auto lock = lock_of(entry.path())) fs::remove_all(entry.path(), ignored);
}

}  // namespace

ServingFolder::ServingFolder(const fs::path& experiment) {
  remove_abandoned(experiment / "serving");
  if (make_in(experiment / "serving")) return;
  // A folder of a name that nobody knows, and that nobody else may enter: what is in it is executed, if it is a pickle.
  std::error_code error;
  std::string own = (fs::temp_directory_path(error) / "hypertune-serving-XXXXXX").string();
  if (error || ::mkdtemp(own.data()) == nullptr || !make_in(own))
    fail(Errc::io, "cannot make a folder for what is served, in '{}' or '{}': are the disks full?",
         (experiment / "serving").string(), own);
}

ServingFolder::~ServingFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  fs::remove(path_.parent_path(), ignored);  // if it is empty
}

bool ServingFolder::make_in(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  for (int i = 0; i < 1000 && !error; ++i) {
    const auto path = folder / std::to_string(i);
    if (!fs::create_directory(path, error)) continue;
    lock_ = lock_of(path);
    if (!lock_) continue;  // another one has taken it for abandoned: it removes it
    path_ = path;
    return true;
  }
  return false;
}

std::string version_of(const CheckpointInfo& checkpoint) {
  return fmt::format("{}-{}", checkpoint.trial, checkpoint.steps);
}

ModelFiles::ModelFiles(CheckpointInfo of, Params its_params, std::optional<BestReport> its_value, fs::path its_folder)
    : version(version_of(of)),
      info(std::move(of)),
      params(std::move(its_params)),
      value(its_value && its_value->step + 1 == info.steps ? std::move(its_value) : std::nullopt),
      folder(std::move(its_folder)) {}

ModelFiles::~ModelFiles() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

ModelSource::ModelSource(const fs::path& experiment, const fs::path& folder)
    : results_(experiment), store_(experiment, {.make_root = false}), folder_(folder) {
  results_.update();
}

bool ModelSource::update() {
  const auto before = results_.experiment().records;
  results_.update();
  return results_.experiment().records != before;
}

std::shared_ptr<const ModelFiles> ModelSource::take(const TrialResult& trial, const CheckpointInfo& checkpoint) {
  const auto folder = folder_ / fmt::format("{}.{}", version_of(checkpoint), ++made_);
  auto files = std::make_shared<const ModelFiles>(checkpoint, trial.params, trial.best, folder);
  try {
    detail::link_or_copy(store_.open(checkpoint).directory(), folder);
  } catch (const fs::filesystem_error& error) {  // its files are being deleted, or there is no room
    fail(error.code() == std::errc::no_such_file_or_directory ? Errc::corrupt : Errc::io, "cannot copy '{}': {}",
         store_.folder(checkpoint).string(), error.code().message());
  }
  return files;
}

// nullopt: it has none that is intact. nullptr: it is `current`.
std::optional<std::shared_ptr<const ModelFiles>> ModelSource::first_intact(const TrialResult& trial,
                                                                           const std::string& current) {
  for (const auto& checkpoint : detail::checkpoints_best_first(trial)) {
    if (version_of(checkpoint) == current) return nullptr;
    try {
      return take(trial, checkpoint);
    } catch (const Error& error) {  // damaged, or deleted meanwhile: the next one
      if (error.code() != Errc::corrupt) throw;
      hypertune::detail::say(
          fmt::format("hypertune: version {} is passed over: {}", version_of(checkpoint), error.what()));
    }
  }
  return std::nullopt;
}

std::shared_ptr<const ModelFiles> ModelSource::newest(const std::string& pin, const std::string& current) {
  if (!pin.empty()) {
    if (pin == current) return nullptr;
    for (const auto& trial : results_.trials())
      for (const auto& checkpoint : trial.checkpoints)
        if (version_of(checkpoint) == pin) return take(trial, checkpoint);
    fail(Errc::usage, "there is no version '{}': a version is TRIAL-STEPS, of a checkpoint that is kept", pin);
  }
  // Trials that have a checkpoint are few of those that are ranked: a trial without one is passed over.
  for (const TrialId id : results_.ranked()) {
    const TrialResult trial = results_.trial(id);
    if (!trial.best || !results_.experiment().admits(trial)) continue;
    if (auto files = first_intact(trial, current)) return *files;
  }
  return nullptr;
}

}  // namespace hypertune::inline v0::serving
