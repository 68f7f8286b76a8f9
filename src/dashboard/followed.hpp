// Followed: an experiment's folder, whose Journal is read while it grows.
#pragma once

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/show/detail/view/experiment_view.hpp>

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace hypertune::inline v0::dashboard {

/// Read by one thread; look() may be called from any thread.
class Followed {
 public:
  /// `expected`: the experiment may not have begun yet.
  Followed(std::string id, std::filesystem::path folder, bool expected = false)
      : id(std::move(id)), folder(std::move(folder)), expected_(expected) {}

  const std::string id;  ///< used in requests
  const std::filesystem::path folder;

  /// Calls `f(const view::ExperimentView&)` with the view locked. While the first records are being read it waits for
  /// them, up to first_patience. If nothing could be read, throws the Error of reading.
  template <class F>
  auto look(F&& f) {
    std::unique_lock guard(mutex_);
    const auto begun = [&] { return view_ != nullptr && view_->version() > 0; };
    if (!begun()) {
      begun_.wait_for(guard, first_patience, [&] { return begun() || error_ || closing_; });
      if (!begun()) throw_error();
    }
    view_->refresh();
    return f(static_cast<const view::ExperimentView&>(*view_));
  }

  struct Brief {
    std::int64_t version = 0;
    std::string state;
    bool operator==(const Brief&) const = default;
  };
  Brief brief() const;
  std::string error_text() const;
  /// Ends all waits in look().
  void close();

  // --- called only by the reading thread

  /// Continues to read, for a few milliseconds. Returns whether there is more.
  bool read();
  /// Checks whether the folder and its driver still exist. Called now and then, and after a change of the folder.
  void check_state();

  int watch = -1;  ///< descriptor of its inotify watch

 private:
  struct Identity {
    dev_t device = 0;
    ino_t file = 0;
    bool operator==(const Identity&) const = default;
  };

  static constexpr std::chrono::milliseconds first_patience{1000};

  [[noreturn]] void throw_error() const;
  [[noreturn]] void vanished() const;
  void restart();
  void set_error(const Error& error);
  std::optional<Identity> identity() const;
  view::ExperimentStatus status(bool driven) const;

  const bool expected_;
  mutable std::mutex mutex_;
  std::condition_variable begun_;
  bool closing_ = false;
  std::unique_ptr<view::ExperimentView> view_;
  std::optional<Error> error_;

  std::unique_ptr<JournalReader> reader_;
  Identity read_from_;
  bool settled_ = false;  // whether the state was updated after the newest record
  bool paused_ = false;
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace hypertune::inline v0::dashboard
