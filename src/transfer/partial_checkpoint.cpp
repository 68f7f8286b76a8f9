// PartialCheckpoint: the partly fetched content of one checkpoint.
#include "partial_checkpoint.hpp"

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>

#include <linux/fs.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::detail {

std::filesystem::path IncomingLock::folder_of(LocalCheckpointStore& store, TrialId trial, const std::string& digest) {
  return store.folder(trial) / (".incoming-" + digest);
}

std::optional<IncomingLock> IncomingLock::take(const std::filesystem::path& folder,
                                               std::chrono::steady_clock::time_point deadline, int cancel) {
  for (;;) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail_io(error.value(), "create", folder);
    Descriptor file = open_at(AT_FDCWD, (folder / "lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
    if (!file && errno == ENOENT) continue;  // the previous holder has just finished and removed the folder
    if (!file) fail_io(errno, "open", folder / "lock");
    // Waiting for a file lock has no timeout, so it is polled.
    while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) fail_io(errno, "lock", folder / "lock");
      if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
      pollfd fd{.fd = cancel, .events = POLLIN, .revents = 0};
      if (::poll(&fd, 1, 10) > 0) return std::nullopt;
    }
    struct stat mine{}, there{};
    if (::fstat(file.get(), &mine) == 0 && ::lstat((folder / "lock").c_str(), &there) == 0 &&
        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
      return IncomingLock(std::move(file));
  }
}

/// How far the content of a file has been verified.
struct PartialCheckpoint::Check {
  std::mutex mutex;
  std::atomic<bool> more{false};
  std::uint64_t next = 0;
  ContentHash hash;
};

PartialCheckpoint::PartialCheckpoint(LocalCheckpointStore& store, CheckpointInfo info, std::string manifest_text,
                                     Manifest manifest)
    : store_(store),
      info_(std::move(info)),
      manifest_text_(std::move(manifest_text)),
      manifest_(std::move(manifest)),
      layout_(manifest_),
      folder_(IncomingLock::folder_of(store, info_.trial, info_.digest)),
      verified_(manifest_.files.size()) {
  std::error_code error;
  const auto files = folder_ / "files";
  std::filesystem::create_directory(files, error);
  if (error) fail_io(error.value(), "create", files);
  std::filesystem::remove(files / Manifest::file_name, error);  // left by an incomplete finish()
  std::set<std::filesystem::path> parents;
  for (const ManifestFile& file : manifest_.files)
    if (file.name.find('/') != std::string::npos) parents.insert(std::filesystem::path(file.name).parent_path());
  for (const auto& parent : parents) {
    std::filesystem::create_directories(files / parent, error);
    if (error) fail_io(error.value(), "create", files / parent);
  }
  files_ = open_at(AT_FDCWD, files.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  log_ = open_at(AT_FDCWD, (folder_ / "progress").c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0644);
  if (!files_ || !log_) fail_io(errno, "open", folder_);
  std::uint64_t pair[2];
  // An incomplete pair at the end is invalid, and pairs after it would be misaligned, so the log is rewritten.
  while (read_some(log_.get(), reinterpret_cast<char*>(pair), sizeof pair) == static_cast<ssize_t>(sizeof pair))
    if (pair[0] < pair[1] && pair[1] <= layout_.total()) present_.add({pair[0], pair[1]});
  // A file that shares its inode with another checkpoint must not be written to: it is fetched again.
  for (std::size_t i = 0; i < manifest_.files.size(); ++i) {
    struct stat status{};
    const char* name = manifest_.files[i].name.c_str();
    if (!present_.overlaps({layout_.begin(i), layout_.end(i)}) ||
        (::fstatat(files_.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
         status.st_nlink == 1))
      continue;
    present_.remove({layout_.begin(i), layout_.end(i)});
    ::unlinkat(files_.get(), name, 0);
  }
  rewrite_log();
  struct statvfs disk{};
  const std::uint64_t needed = layout_.total() - present_.size();
  if (::fstatvfs(files_.get(), &disk) == 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < needed)
    fail(Errc::io,
         "'{}' has {} bytes free, but the checkpoint needs {} more: free some space, or keep fewer checkpoints "
         "(keep, max_bytes)",
         store_.folder(info_.trial).string(), std::uint64_t{disk.f_bavail} * disk.f_frsize, needed);
}

void PartialCheckpoint::Writer::write(std::uint64_t offset, const char* data, std::size_t size) {
  const Layout& layout = partial_.layout_;
  while (size > 0) {
    const std::size_t index = layout.file_at(offset);
    const ManifestFile& file = partial_.manifest_.files[index];
    if (!file_ || index_ != index) {
      file_ = open_at(partial_.files_.get(), file.name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW, 0644);
      if (!file_) fail_io(errno, "create", partial_.folder_ / "files" / file.name);
      index_ = index;
    }
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(size, layout.end(index) - offset));
    for (std::size_t at = 0; at < here;) {
      const auto where = static_cast<off_t>(offset + at - layout.begin(index));
      const ssize_t n = ::pwrite(file_.get(), data + at, here - at, where);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_io(errno, "write", partial_.folder_ / "files" / file.name);
      at += static_cast<std::size_t>(n);
    }
    if (here == file.size) {  // the whole file is in this call
      if (ContentHash::of({data, here}) != file.checksum) partial_.refuse(index);
      partial_.verified_[index] = true;
    } else if (once_) {
      partial_.check_along(index, offset - layout.begin(index), data, here);
    }
    offset += here;
    data += here;
    size -= here;
  }
}

void PartialCheckpoint::note(ByteRange range) {
  const std::uint64_t pair[2] = {range.begin, range.end};
  ssize_t n = 0;
  do n = ::write(log_.get(), pair, sizeof pair);
  while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof pair)) fail_io(n < 0 ? errno : ENOSPC, "write", folder_ / "progress");
}

// The mutex must be held, or no other thread be running.
void PartialCheckpoint::rewrite_log() {
  if (::ftruncate(log_.get(), 0) != 0) fail_io(errno, "write", folder_ / "progress");
  for (const ByteRange& range : present_.all()) note(range);
}

void PartialCheckpoint::arrived(ByteRange range) {
  if (range.begin >= range.end) return;
  {
    const std::lock_guard lock(mutex_);
    note(range);
    present_.add(range);
  }
  for (std::size_t index = layout_.file_at(range.begin); index < manifest_.files.size(); ++index) {
    if (layout_.begin(index) >= range.end) break;
    if (!verified_[index] && manifest_.files[index].size > 0) check(index, false);
  }
}

std::shared_ptr<PartialCheckpoint::Check> PartialCheckpoint::check_of(std::size_t index) {
  const std::lock_guard lock(mutex_);
  auto& slot = checks_[index];
  if (!slot) slot = std::make_shared<Check>();
  return slot;
}

/// Hashes data that directly follows the verified part, so that inspect() need not read it again.
void PartialCheckpoint::check_along(std::size_t index, std::uint64_t at, const char* data, std::size_t size) {
  const auto check = check_of(index);
  const std::unique_lock lock(check->mutex, std::try_to_lock);
  if (!lock || check->next != at) return;
  check->hash.add(data, size);
  check->next += size;
}

/// The thread that has added to a file verifies as much of it as possible; if another thread is doing so, that one
/// continues.
void PartialCheckpoint::check(std::size_t index, bool wait) {
  const std::shared_ptr<Check> check = check_of(index);
  check->more = true;
  while (check->more) {
    std::unique_lock lock(check->mutex, std::defer_lock);
    if (wait)
      lock.lock();
    else if (!lock.try_lock())
      return;
    while (check->more.exchange(false)) inspect(index, *check);
  }
}

void PartialCheckpoint::inspect(std::size_t index, Check& check) {
  const ManifestFile& entry = manifest_.files[index];
  const std::uint64_t begin = layout_.begin(index);
  if (verified_[index]) return;
  const auto reaches = [&] {
    const std::lock_guard lock(mutex_);
    return std::min(present_.reaches(begin + check.next), layout_.end(index)) - begin;
  };
  std::uint64_t end = reaches();
  if (end <= check.next && end < entry.size) return;
  const Descriptor file = open_regular(files_.get(), entry.name);
  constexpr std::size_t block = std::size_t{64} << 10U;
  const auto buffer = std::make_unique_for_overwrite<char[]>(block);
  while (file && check.next < end) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(block, end - check.next));
    const ssize_t n = ::pread(file.get(), buffer.get(), size, static_cast<off_t>(check.next));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // shorter than recorded
    check.hash.add(buffer.get(), static_cast<std::size_t>(n));
    check.next += static_cast<std::uint64_t>(n);
    if (check.next == end) end = reaches();
  }
  if (check.next < end || (end == entry.size && check.hash.hex() != entry.checksum)) refuse(index);
  if (end < entry.size) return;
  verified_[index] = true;
  const std::lock_guard lock(mutex_);
  checks_.erase(index);
}

std::vector<ByteRange> PartialCheckpoint::missing() const {
  const std::lock_guard lock(mutex_);
  return present_.gaps(layout_.total());
}

std::vector<ByteRange> PartialCheckpoint::present() const {
  const std::lock_guard lock(mutex_);
  return present_.all();
}

std::uint64_t PartialCheckpoint::have() const {
  const std::lock_guard lock(mutex_);
  return present_.size();
}

bool PartialCheckpoint::read(std::uint64_t offset, char* into, std::size_t size) {
  while (size > 0) {
    const std::size_t index = layout_.file_at(offset);
    const Descriptor file = open_regular(files_.get(), manifest_.files[index].name);
    if (!file) return false;
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(size, layout_.end(index) - offset));
    for (std::size_t at = 0; at < here;) {
      const auto where = static_cast<off_t>(offset + at - layout_.begin(index));
      const ssize_t n = ::pread(file.get(), into + at, here - at, where);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += static_cast<std::size_t>(n);
    }
    offset += here;
    into += here;
    size -= here;
  }
  return true;
}

void PartialCheckpoint::forget(ByteRange range) {
  if (range.begin >= range.end) return;
  const std::lock_guard lock(mutex_);
  present_.remove(range);
  for (std::size_t index = layout_.file_at(range.begin); index < manifest_.files.size(); ++index) {
    if (layout_.begin(index) >= range.end) break;
    verified_[index] = false;
    checks_.erase(index);
  }
  rewrite_log();
}

void PartialCheckpoint::refuse(std::size_t index) {
  wrong_ = index;
  fail(Errc::corrupt, "the content of file '{}' is not what was sealed", manifest_.files[index].name);
}

bool PartialCheckpoint::drop_wrong() {
  const std::size_t index = wrong_.exchange(none);
  if (index == none) return false;
  forget({layout_.begin(index), layout_.end(index)});
  ::unlinkat(files_.get(), manifest_.files[index].name.c_str(), 0);
  return true;
}

void PartialCheckpoint::check_all() {
  for (std::size_t index = 0; index < manifest_.files.size(); ++index) {
    const ManifestFile& entry = manifest_.files[index];
    if (entry.size > 0) {
      if (!verified_[index]) check(index, true);
      continue;
    }
    const Descriptor made = open_at(files_.get(), entry.name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
    if (!made) fail_io(errno, "create", folder_ / "files" / entry.name);
    if (entry.checksum != ContentHash::of({})) refuse(index);
  }
}

bool PartialCheckpoint::take_file(std::size_t index, const std::filesystem::path& from, bool link) {
  const ManifestFile& entry = manifest_.files[index];
  const Descriptor source = open_at(AT_FDCWD, from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status{};
  if (!source || ::fstat(source.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != entry.size)
    return false;
  const char* name = entry.name.c_str();
  const ByteRange whole{layout_.begin(index), layout_.end(index)};
  bool begun = false;
  {
    const std::lock_guard lock(mutex_);
    begun = present_.overlaps(whole);
  }
  if (begun) forget(whole);
  ::unlinkat(files_.get(), name, 0);
  Descriptor target = open_at(files_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
  if (!target) fail_io(errno, "create", folder_ / "files" / entry.name);
  if (::ioctl(target.get(), FICLONE, source.get()) != 0) {
    if (link) {
      ::unlinkat(files_.get(), name, 0);
      if (::linkat(AT_FDCWD, from.c_str(), files_.get(), name, 0) == 0) {
        arrived(whole);
        return true;
      }
      target = open_at(files_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
      if (!target) fail_io(errno, "create", folder_ / "files" / entry.name);
    }
    std::unique_ptr<char[]> buffer;
    for (std::uint64_t left = entry.size; left > 0;) {
      ssize_t n = buffer ? -1
                         : ::copy_file_range(source.get(), nullptr, target.get(), nullptr,
                                             static_cast<std::size_t>(std::min<std::uint64_t>(left, 64U << 20U)), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == ENOSPC || errno == EDQUOT)) fail_io(errno, "write", folder_ / "files" / entry.name);
      if (n < 0) {  // not supported between these file systems
        if (!buffer) buffer = std::make_unique_for_overwrite<char[]>(ReadBuffer::size);
        n = read_some(source.get(), buffer.get(), ReadBuffer::size);
        for (ssize_t at = 0; at < n;) {
          const ssize_t written = ::write(target.get(), buffer.get() + at, static_cast<std::size_t>(n - at));
          if (written < 0 && errno != EINTR) fail_io(errno, "write", folder_ / "files" / entry.name);
          if (written > 0) at += written;
        }
      }
      if (n <= 0) return false;
      left -= std::min<std::uint64_t>(left, static_cast<std::uint64_t>(n));
    }
  }
  arrived(whole);
  return true;
}

void PartialCheckpoint::sync_files() {
  // Syncing each file waits for the disk each time; for more than some tens of files, one sync of the file system is
  // faster.
  if (manifest_.files.size() > 64) {
    if (::syncfs(files_.get()) != 0) fail_io(errno, "sync", folder_ / "files");
    return;
  }
  for (const ManifestFile& entry : manifest_.files) {
    const Descriptor file = open_regular(files_.get(), entry.name);
    if (!file || ::fsync(file.get()) != 0) fail_io(errno, "sync", folder_ / "files" / entry.name);
  }
  for (const std::string& directory : list_folder(folder_ / "files").directories)
    sync_directory(folder_ / "files" / directory);
}

CheckpointInfo PartialCheckpoint::finish() {
  if (store_.syncs()) sync_files();
  CheckpointInfo info = store_.admit(folder_ / "files", manifest_text_, info_.name);
  remove_tree(folder_);
  return info;
}

}  // namespace hypertune::inline v0::detail
