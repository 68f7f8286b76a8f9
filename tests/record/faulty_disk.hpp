// A disk that fails when told to, below SQLite: a VFS that passes everything on to the real one.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace support {

/// While it lives, every SQLite file opened in this process is on a disk that takes `bytes` more and then is full, or
/// that fails `syncs` syncs from now.
class FaultyDisk {
 public:
  static constexpr std::int64_t never = INT64_MAX;

  explicit FaultyDisk(std::int64_t bytes, std::int64_t syncs = never) {
    state() = {bytes, syncs, 0, {}};
    real() = sqlite3_vfs_find(nullptr);
    vfs_ = *real();
    vfs_.zName = "faulty";
    vfs_.xOpen = open;
    sqlite3_vfs_register(&vfs_, 1);
  }
  ~FaultyDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real(), 1);
  }
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  static int faults() {
    const std::lock_guard guard(mutex());
    return state().faults;
  }
  /// The names of the files that were synced, in this order.
  static std::vector<std::string> synced() {
    const std::lock_guard guard(mutex());
    return state().synced;
  }

 private:
  struct State {
    std::int64_t bytes = never, syncs = never;
    int faults = 0;
    std::vector<std::string> synced{};
  };
  static std::map<const sqlite3_file*, std::string>& names() {
    static std::map<const sqlite3_file*, std::string> map;
    return map;
  }
  static State& state() {
    static State s;
    return s;
  }
  static std::mutex& mutex() {
    static std::mutex m;
    return m;
  }
  static sqlite3_vfs*& real() {
    static sqlite3_vfs* vfs = nullptr;
    return vfs;
  }
  // The real methods of each open file, and the patched copies (one per kind of file).
  struct Methods {
    const sqlite3_io_methods* real;
    sqlite3_io_methods patched;
  };
  static std::map<const sqlite3_io_methods*, Methods>& patched() {
    static std::map<const sqlite3_io_methods*, Methods> map;
    return map;
  }
  static const sqlite3_io_methods* methods_of(sqlite3_file* file) {
    const std::lock_guard guard(mutex());
    for (const auto& [methods, entry] : patched())
      if (&entry.patched == file->pMethods) return entry.real;
    return nullptr;
  }

  static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    const int rc = real()->xOpen(real(), name, file, flags, out);
    if (file->pMethods == nullptr) return rc;
    const std::lock_guard guard(mutex());
    names()[file] = name != nullptr ? std::filesystem::path(name).filename().string() : std::string();
    const auto [at, fresh] = patched().try_emplace(file->pMethods, Methods{file->pMethods, *file->pMethods});
    at->second.patched.xWrite = write;
    at->second.patched.xSync = sync;
    file->pMethods = &at->second.patched;
    return rc;
  }
  static int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    {
      const std::lock_guard guard(mutex());
      if (state().bytes < size) {
        ++state().faults;
        return SQLITE_FULL;
      }
      if (state().bytes != never) state().bytes -= size;
    }
    return with_real(file, [&](const auto* methods) { return methods->xWrite(file, data, size, offset); });
  }
  static int sync(sqlite3_file* file, int flags) {
    {
      const std::lock_guard guard(mutex());
      if (state().syncs == 0) {
        ++state().faults;
        return SQLITE_IOERR_FSYNC;
      }
      if (state().syncs != never) --state().syncs;
      state().synced.push_back(names()[file]);
    }
    return with_real(file, [&](const auto* methods) { return methods->xSync(file, flags); });
  }
  // The real method may look at the file's table itself: it sees its own during the call.
  template <class Call>
  static int with_real(sqlite3_file* file, const Call& call) {
    const sqlite3_io_methods* own = file->pMethods;
    const sqlite3_io_methods* methods = methods_of(file);
    file->pMethods = methods;
    const int rc = call(methods);
    file->pMethods = own;
    return rc;
  }

  sqlite3_vfs vfs_{};
};

}  // namespace support
