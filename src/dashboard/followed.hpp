// Followed: an experiment's folder, whose Journal is read as it grows.
#pragma once

#include <hypertune/record/journal_reader.hpp>
#include <hypertune/show/view/experiment_view.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace hypertune::inline v0::dashboard {

/// Read by one thread, looked at by any.
class Followed {
 public:
  Followed(std::string id, std::filesystem::path folder) : id(std::move(id)), folder(std::move(folder)) {}

  const std::string id;  ///< as requests name it
  const std::filesystem::path folder;

  /// Calls `f(const view::ExperimentView&)` while nobody changes it. Error of the kind that reading had, where nothing
  /// could be read.
  template <class F>
  auto look(F&& f) {
    const std::lock_guard guard(mutex_);
    if (view_ == nullptr || view_->version() == 0) throw_trouble();
    view_->refresh();
    return f(static_cast<const view::ExperimentView&>(*view_));
  }

  struct Brief {
    std::int64_t version = 0;
    std::string state;
    bool operator==(const Brief&) const = default;
  };
  Brief brief() const;
  std::string trouble() const;

  // --- by the thread that reads

  /// Reads on, for a few milliseconds. Whether there is more to be read.
  bool read();
  /// Looks whether the folder and its driver are still there; now and then, and after a change of the folder.
  void look_round();

  int watch = -1;  ///< of inotify

 private:
  struct Identity {
    dev_t device = 0;
    ino_t file = 0;
    bool operator==(const Identity&) const = default;
  };

  [[noreturn]] void throw_trouble() const;
  void begin_anew();
  void troubled(const Error& error);
  std::optional<Identity> identity() const;
  view::Standing standing() const;

  mutable std::mutex mutex_;
  std::unique_ptr<view::ExperimentView> view_;
  std::optional<Error> trouble_;

  std::unique_ptr<JournalReader> reader_;
  Identity read_from_;
  bool settled_ = false;
  bool rests_ = false;
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace hypertune::inline v0::dashboard
