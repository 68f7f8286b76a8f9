// Common parts of the loggers: appending to files, and continuing without gaps or repetitions after the driver was
// killed.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/record.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// Appends `text` to the file, which is created if necessary, with its folders. `keep`: truncates it to this many bytes
/// first. The file is closed again, so that a logger with a file per trial keeps none open.
inline void append_to(const std::filesystem::path& path, std::string_view text,
                      std::optional<std::uint64_t> keep = std::nullopt) {
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  int fd = ::open(path.c_str(), flags, 0666);
  if (fd < 0 && errno == ENOENT) {
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    fd = ::open(path.c_str(), flags, 0666);
  }
  int error = fd < 0 ? errno : 0;
  if (error == 0 && keep && ::ftruncate(fd, static_cast<off_t>(*keep)) != 0) error = errno;
  if (error == 0) error = write_all(fd, text);
  if (fd >= 0) ::close(fd);
  if (error != 0) fail(Errc::io, "cannot write '{}': {}", path.string(), std::strerror(error));
}

/// The file's bytes; empty if there is none.
inline std::string read_whole(const std::filesystem::path& path) { return read_file(path).value_or(""); }

/// Gives a logger every record once, in order. Records that were committed but did not reach the logger before a kill
/// (or before the logger was added to a resumed experiment) are read from the Journal.
class LogFollower {
 public:
  /// `after`: the last record that is safely in the log; 0: none.
  void open(std::filesystem::path directory, std::int64_t after) {
    directory_ = std::move(directory);
    last_ = after;
    started_ = false;
  }

  template <class Process>
  void follow(const Record& record, Process&& process) {
    if (!started_) {
      started_ = true;
      if (record.sequence > last_ + 1 && std::filesystem::exists(journal_path(directory_)))
        JournalReader(directory_)
            .read(
                [&](const Record& missed) {
                  if (missed.sequence >= record.sequence) return false;
                  process(missed);
                  return true;
                },
                last_ + 1);
    }
    process(record);
    last_ = record.sequence;
  }

  std::int64_t last() const { return last_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::int64_t last_ = 0;
  bool started_ = false;
};

/// Remembers up to which record a logger of many files has written. The files are not synced, so this is valid only on
/// the same machine and until it restarts: the position is stored with the id of the boot.
class LogPosition {
 public:
  /// The position stored in `file`, or 0 if there is none that can be trusted.
  std::int64_t load(std::filesystem::path file) {
    file_ = std::move(file);
    boot_ = read_whole("/proc/sys/kernel/random/boot_id");
    while (!boot_.empty() && boot_.back() == '\n') boot_.pop_back();
    const std::string text = read_whole(file_);
    std::int64_t position = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    return error == std::errc() && position > 0 && !boot_.empty() && rest == detail::format(" {}\n", boot_) ? position
                                                                                                            : 0;
  }
  void save(std::int64_t position) { append_to(file_, detail::format("{} {}\n", position, boot_), 0); }

 private:
  std::filesystem::path file_;
  std::string boot_;
};

inline std::filesystem::path trial_file(const std::filesystem::path& directory, TrialId trial, const char* name) {
  return directory / "trials" / std::to_string(trial) / name;
}

/// Removes what an earlier trial has left. Not where a symbolic link is in the place of the trial's folder: what is
/// there is not this experiment's.
inline void remove_trial_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(file.parent_path(), ignored)))
    std::filesystem::remove(file, ignored);
}

/// The state of a logger with a file per trial, except the contents: which trials have not ended, which of them have
/// something to write, and up to which record everything is written. `Trial` is the logger's own type, with a `bool
/// ended` and a `bool changed`, both false at first.
template <class Trial>
class TrialLogs {
 public:
  /// `file_name`: the name of each trial's file; `mark`: the name of the file below `trials/` that stores the position.
  TrialLogs(const char* file_name, const char* mark) : file_name_(file_name), mark_(mark) {}

  void open(const std::filesystem::path& directory) {
    trials_.clear();
    follower_.open(directory, position_.load(directory / "trials" / mark_));
  }
  template <class Process>
  void follow(const Record& record, Process&& process) {
    follower_.follow(record, process);
  }
  /// Calls `write(id, trial)` for each trial that was changed, and forgets those that have ended.
  template <class Write>
  void flush(Write&& write) {
    for (const TrialId id : changed_) {
      const auto found = trials_.find(id);
      if (found == trials_.end()) continue;
      write(id, found->second);
      found->second.changed = false;
      if (found->second.ended) trials_.erase(found);
    }
    changed_.clear();
  }
  /// To be called after a flush at the end of a batch, when everything is written.
  void save_position() {
    if (follower_.last() > 0) position_.save(follower_.last());
  }

  bool opened() const { return !follower_.directory().empty(); }
  std::unordered_map<TrialId, Trial>& trials() { return trials_; }
  std::size_t changed() const { return changed_.size(); }
  void note(TrialId id, Trial& trial) {
    if (!std::exchange(trial.changed, true)) changed_.push_back(id);
  }
  std::filesystem::path file(TrialId trial) const { return trial_file(follower_.directory(), trial, file_name_); }

 private:
  const char *file_name_, *mark_;
  LogFollower follower_;
  LogPosition position_;
  std::unordered_map<TrialId, Trial> trials_;
  std::vector<TrialId> changed_;
};

}  // namespace hypertune::inline v0::detail
