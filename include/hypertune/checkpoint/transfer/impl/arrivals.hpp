// A checkpoint that is arriving: its folder aside, what of it is there, and whether that is right.
#pragma once

#include <hypertune/checkpoint/content_hash.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/checkpoint/transfer/impl/folder_text.hpp>
#include <hypertune/checkpoint/transfer/impl/intervals.hpp>
#include <hypertune/checkpoint/transfer/impl/layout.hpp>

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
  /// nullopt when `deadline` has come or `cancel` can be read.
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
/// A range is noted after it was written, so that the death of the process loses what was under way and no more. What a
/// power cut takes is found when the files are checked: that is done for each of them, as far as it has arrived without
/// a gap, while the rest is still on its way.
class Arrivals {
 public:
  /// Goes on with what is there. With the lock held.
  Arrivals(LocalCheckpointStore& store, CheckpointInfo info, std::string manifest_text, Manifest manifest);

  const Manifest& manifest() const { return manifest_; }
  const std::string& manifest_text() const { return manifest_text_; }
  const Layout& layout() const { return layout_; }

  /// Writes files, one thread each.
  class Writer {
   public:
    /// `once`: no byte is ever written twice, so that what comes in order is checked out of the buffer it comes in.
    explicit Writer(Arrivals& arrivals, bool once = false) : arrivals_(arrivals), once_(once) {}
    /// At `offset` of the content. Error of kind `io` if the disk does not take it, `corrupt` if a file turns out
    /// wrong.
    void write(std::uint64_t offset, const char* data, std::size_t size);

   private:
    Arrivals& arrivals_;
    bool once_;
    std::size_t index_ = 0;
    Descriptor file_;
  };

  /// Notes that a range has been written, and checks files as far as they go. Thread-safe.
  void arrived(ByteRange range);
  /// Copies a whole file from elsewhere, by reflink where the file system can; `link`: by hard link before that is
  /// tried by copying. False if it cannot be read.
  bool take_file(std::size_t index, const std::filesystem::path& from, bool link);

  std::vector<ByteRange> missing() const;
  std::uint64_t have() const;
  std::vector<ByteRange> present() const;
  /// Reads what was written. False if it is not there.
  bool read(std::uint64_t offset, char* into, std::size_t size);
  /// Takes back what arrived() noted.
  void forget(ByteRange range);

  /// Checks what was not yet: Error of kind `corrupt` if a file is not what the manifest says. With nothing missing
  /// only.
  void check_all();
  /// Forgets the file that an Error of kind `corrupt` from here was about. False if there is none.
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
  std::map<std::size_t, std::shared_ptr<Check>> checks_;  // of files begun, until they are verified
  std::vector<std::atomic<bool>> verified_;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::atomic<std::size_t> wrong_{none};
};

}  // namespace hypertune::inline v0::detail
