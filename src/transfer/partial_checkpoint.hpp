// A checkpoint that is arriving: its temporary folder, which parts are there, and whether they are correct.
#pragma once

#include "folder_text.hpp"
#include "intervals.hpp"
#include "layout.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/checkpoint/local_store.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The lock of trials/<id>/checkpoints/.incoming-<digest>/, so that one fetch at a time writes there.
class IncomingLock {
 public:
  /// nullopt if `deadline` has passed or `cancel` can be read.
  static std::optional<IncomingLock> take(const std::filesystem::path& folder,
                                          std::chrono::steady_clock::time_point deadline, int cancel);
  static std::filesystem::path folder_of(LocalCheckpointStore& store, TrialId trial, const std::string& digest);

 private:
  explicit IncomingLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

///     .incoming-<digest>/lock       held by whoever fetches
///     .incoming-<digest>/progress   pairs of 64-bit numbers: a range of the content that has been written
///     .incoming-<digest>/files/     becomes the checkpoint, by one rename
///
/// A range is noted after it was written, so that the death of the process loses only what was being written. Losses by
/// a power cut are found when the files are checked. Each file is checked as far as it has arrived without a gap, while
/// the rest is still on its way.
class PartialCheckpoint {
 public:
  /// Continues with what is there. The lock must be held.
  PartialCheckpoint(LocalCheckpointStore& store, CheckpointInfo info, std::string manifest_text, Manifest manifest);

  const Manifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }
  const Layout& layout() const { return layout_; }

  /// Writes files. Each thread has its own.
  class Writer {
   public:
    /// `once`: no byte is ever written twice, so that data arriving in order can be checked in the caller's buffer.
    explicit Writer(PartialCheckpoint& partial, bool once = false) : partial_(partial), once_(once) {}
    /// Writes at `offset` of the content. Error of kind `io` if the disk fails, `corrupt` if a file turns out to be
    /// wrong.
    void write(std::uint64_t offset, const char* data, std::size_t size);

   private:
    PartialCheckpoint& partial_;
    bool once_;
    std::size_t index_ = 0;
    Descriptor file_;
  };

  /// Notes that a range has been written, and checks files as far as possible. Thread-safe.
  void arrived(ByteRange range);
  /// Copies a whole file from elsewhere, by reflink if the file system can; `link`: tries a hard link before a copy.
  /// False if it cannot be read.
  bool take_file(std::size_t index, const std::filesystem::path& from, bool link);

  std::vector<ByteRange> missing() const;
  std::uint64_t have() const;
  std::vector<ByteRange> present() const;
  /// Reads what was written. False if it is not there.
  bool read(std::uint64_t offset, char* into, std::size_t size);
  /// Undoes arrived() for a range.
  void forget(ByteRange range);

  /// Checks what has not been checked: Error of kind `corrupt` if a file differs from the manifest. Only if nothing is
  /// missing.
  void check_all();
  /// Forgets the file that caused the last Error of kind `corrupt`. False if there is none.
  bool drop_wrong();
  /// Makes it a checkpoint of the store.
  CheckpointInfo finish();

 private:
  struct Check;

  [[noreturn]] void refuse(std::size_t index);
  std::shared_ptr<Check> check_of(std::size_t index);
  void check_along(std::size_t index, std::uint64_t at, const char* data, std::size_t size);
  void check(std::size_t index, bool wait);
  void inspect(std::size_t index, Check& check);
  void note(ByteRange range);
  void rewrite_log();
  void sync_files();

  LocalCheckpointStore& store_;
  const CheckpointInfo info_;
  const std::string manifest_text_;
  const Manifest manifest_;
  const Layout layout_;
  const std::filesystem::path folder_;
  Descriptor files_, log_;
  mutable std::mutex mutex_;
  Intervals present_;
  std::map<std::size_t, std::shared_ptr<Check>> checks_;  // of files that have begun to arrive, until they are verified
  std::vector<std::atomic<bool>> verified_;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::atomic<std::size_t> wrong_{none};
};

}  // namespace hypertune::inline v0::detail
