// LocalCheckpointStore: the definitions.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/remove_tree.hpp>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>

namespace hypertune::inline v0 {

namespace detail {

/// Identifies the process that made a staging or trash folder, even if containers share a disk.
struct FolderOwner {
  std::uint32_t process = 0;  ///< random
  std::uint32_t machine = 0;  ///< a hash of the host and the pid namespace: where `pid` is valid
  pid_t pid = 0;
  friend bool operator==(const FolderOwner&, const FolderOwner&) = default;
};

FolderOwner this_process() {
  static const FolderOwner self = [] {
    FolderOwner owner;
    if (::getentropy(&owner.process, sizeof owner.process) != 0) owner.process = 0;
    std::array<char, 256> host{}, space{};
    static_cast<void>(::gethostname(host.data(), host.size() - 1));
    static_cast<void>(!::readlink("/proc/self/ns/pid", space.data(), space.size() - 1));
    const std::string digest = ContentHash::of(std::string(host.data()) + '/' + space.data());
    owner.machine = static_cast<std::uint32_t>(std::stoul(digest.substr(0, 8), nullptr, 16));
    return owner;
  }();
  FolderOwner owner = self;
  owner.pid = ::getpid();  // the rest is the same after a fork()
  return owner;
}

/// The end of the name of a staging or trash folder.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> count{0};
  const FolderOwner self = this_process();
  return detail::format("{:08x}-{:08x}-{}-{}", self.process, self.machine, self.pid,
                        count.fetch_add(1, std::memory_order_relaxed));
}

/// Whether the process that the folder is named after may still be working on it. Of processes on other machines, which
/// may share the disk, only the time of the last write is known.
bool has_living_owner(const std::filesystem::path& folder) {
  const std::string name = folder.filename();
  FolderOwner owner;
  int pid = 0;
  if (std::sscanf(name.c_str(), ".%*[a-z]-%8x-%8x-%d-", &owner.process, &owner.machine, &pid) != 3) return false;
  owner.pid = pid;
  const FolderOwner self = this_process();
  if (owner.machine == self.machine)
    return owner.pid == self.pid ? owner == self : owner.pid > 0 && (::kill(owner.pid, 0) == 0 || errno == EPERM);
  std::error_code error;
  const auto written = std::filesystem::last_write_time(folder, error);
  return !error && std::filesystem::file_time_type::clock::now() - written < std::chrono::hours(24);
}

/// The manifest's text. Error of kind `corrupt` if there is none.
std::string read_manifest_text(const std::filesystem::path& folder) {
  const auto path = folder / Manifest::file_name;
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status{};
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) {
      std::error_code ignored;
      if (!std::filesystem::exists(folder, ignored)) fail(Errc::corrupt, "its folder is missing");
      fail(Errc::corrupt, "it has no manifest.json");
    }
    if (errno == ELOOP) fail(Errc::corrupt, "its manifest.json is a symbolic link");
    fail_io(errno, "open", path);
  }
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    fail(Errc::corrupt, "its manifest.json is no ordinary file");
  if (static_cast<std::uint64_t>(status.st_size) > Manifest::max_bytes)
    fail(Errc::corrupt, "its manifest.json has {} bytes: more than any checkpoint needs", status.st_size);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const int error = read_into(file.get(), text);
  if (error == EIO) fail(Errc::corrupt, "its manifest.json cannot be read: the disk reports an error");
  if (error != 0) fail_io(error, "read", path);
  return text;
}

CheckpointInfo info_of(const Manifest& manifest, std::string name, std::string digest) {
  CheckpointInfo info{.trial = manifest.trial,
                      .steps = manifest.steps,
                      .name = std::move(name),
                      .bytes = 0,
                      .digest = std::move(digest)};
  for (const auto& file : manifest.files) info.bytes += file.size;
  return info;
}

/// The manifest in this folder, which was sealed as `info`; files are not checked. Error of kind `corrupt` if it is
/// another one.
Manifest require_manifest(const std::filesystem::path& folder, const CheckpointInfo& info) {
  const std::string text = read_manifest_text(folder);
  if (ContentHash::of(text) != info.digest)
    fail(Errc::corrupt, "its manifest.json is not the one that was sealed (digest {}, not {})", ContentHash::of(text),
         info.digest);
  Manifest manifest = parse_manifest(text);
  if (manifest.trial != info.trial || manifest.steps != info.steps)
    fail(Errc::corrupt, "its manifest.json is of trial {} after {} steps, not of trial {} after {}", manifest.trial,
         manifest.steps, info.trial, info.steps);
  return manifest;
}

}  // namespace detail

std::filesystem::path LocalCheckpointStore::folder(const CheckpointInfo& info) const {
  const bool named = !info.name.empty() && info.name.front() != '.' && info.name.find('/') == std::string::npos &&
                     info.name.find('\0') == std::string::npos;
  if (!named) fail(Errc::usage, "'{}' is not the name of a checkpoint", info.name);
  return folder(info.trial) / info.name;
}

std::filesystem::path LocalCheckpointStore::new_staging(TrialId trial) {
  std::error_code error;
  if (!state_->options.make_root && !std::filesystem::is_directory(state_->root, error))
    detail::fail_io(error ? error.value() : ENOENT, "save below", state_->root);
  return make_folder(trial) / (".staging-" + detail::unique_suffix());
}

/// The folder of a trial's checkpoints, made if it is missing. If that fails, whoever uses it notices.
std::filesystem::path LocalCheckpointStore::make_folder(TrialId trial) {
  require_no_link(trial);
  auto made = folder(trial);
  std::error_code error;
  if (std::filesystem::create_directories(made, error)) {
    const std::lock_guard lock(state_->mutex);
    state_->fresh.insert(trial);
  }
  return made;
}

bool LocalCheckpointStore::is_link(const std::filesystem::path& root, TrialId trial) {
  struct stat status{};
  return ::lstat(trial_directory(root, trial).c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

void LocalCheckpointStore::require_no_link(TrialId trial) const {
  if (is_link(trial))
    fail(Errc::io, "'{}' is a symbolic link, which is not followed: put a folder in its place",
         trial_directory(state_->root, trial).string());
}

CheckpointWriter LocalCheckpointStore::begin(TrialId trial, int steps, std::string parent) {
  if (trial < 0 || steps < 0)
    fail(Errc::usage, "a checkpoint of trial {} after {} steps cannot be: neither is negative", trial, steps);
  CheckpointWriter writer(trial, steps, new_staging(trial), std::move(parent));
  std::error_code error;
  if (!std::filesystem::create_directory(writer.directory(), error)) {
    discard(writer);
    detail::fail_io(error ? error.value() : EEXIST, "create", writer.directory());
  }
  return writer;
}

void LocalCheckpointStore::discard(const CheckpointWriter& writer) {
  detail::remove_tree(writer.directory());  // recover() removes whatever cannot be removed now
}

void LocalCheckpointStore::sync_new_folders(TrialId trial) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->fresh.erase(trial) == 0) return;
  }
  for (const auto& path : {trial_directory(state_->root, trial), state_->root / "trials", state_->root})
    detail::sync_directory(path);
}

CheckpointInfo LocalCheckpointStore::seal(CheckpointWriter writer) {
  try {
    return seal_staging(writer);
  } catch (const Error& e) {
    discard(writer);
    fail(e.code(), "checkpoint of trial {} after {} steps: {}", writer.trial(), writer.steps(), e.what());
  } catch (...) {
    discard(writer);
    throw;
  }
}

CheckpointInfo LocalCheckpointStore::seal_staging(const CheckpointWriter& writer) {
  const auto& staging = writer.directory();
  const bool sync = state_->options.sync;
  Manifest manifest{.trial = writer.trial(), .steps = writer.steps(), .parent = writer.parent(), .files = {}};
  manifest.files = detail::seal_files(staging, sync);
  const std::string text = to_text(manifest);
  if (text.size() > Manifest::max_bytes)
    fail(Errc::usage, "its {} files are more than a checkpoint can have", manifest.files.size());
  detail::write_new_file(staging / Manifest::file_name, text);
  if (sync) detail::sync_directory(staging);
  CheckpointInfo info =
      detail::info_of(manifest, publish(writer.trial(), staging, detail::format("step-{}", writer.steps())),
                      detail::ContentHash::of(text));
  if (sync) try {
      detail::sync_directory(folder(writer.trial()));
      sync_new_folders(writer.trial());
    } catch (...) {
      drop(info);  // otherwise nobody would know about it
      throw;
    }
  return info;
}

/// Renames the finished staging folder to the first free name, which it returns.
std::string LocalCheckpointStore::publish(TrialId trial, const std::filesystem::path& staging,
                                          const std::string& wanted) {
  const auto parent = folder(trial);
  for (int n = 1;; ++n) {
    std::string name = n == 1 ? wanted : detail::format("{}-{}", wanted, n);
    // rename(2) never replaces a folder that has files, so if two are published at once, one of them takes the next
    // name.
    if (::rename(staging.c_str(), (parent / name).c_str()) == 0) return name;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) detail::fail_io(errno, "rename", staging);
  }
}

CheckpointInfo LocalCheckpointStore::admit(const std::filesystem::path& folder, std::string_view text,
                                           const std::string& name) {
  const Manifest manifest = parse_manifest(text);
  CheckpointInfo info = detail::info_of(manifest, name, detail::ContentHash::of(text));
  static_cast<void>(this->folder(info));  // throws if the name is invalid
  const auto parent = make_folder(manifest.trial);
  detail::write_new_file(folder / Manifest::file_name, text);
  if (state_->options.sync) detail::sync_directory(folder);
  info.name = publish(manifest.trial, folder, name);
  if (state_->options.sync) {
    detail::sync_directory(parent);
    sync_new_folders(manifest.trial);
  }
  return info;
}

CheckpointInfo LocalCheckpointStore::take_over(const std::filesystem::path& folder, const CheckpointInfo& info) {
  static_cast<void>(this->folder(info));  // throws if the name is invalid
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0) detail::fail_io(errno, "look at", folder);
  if (!S_ISDIR(status.st_mode)) fail(Errc::corrupt, "'{}' is no folder", folder.string());
  const Manifest manifest = detail::require_manifest(folder, info);
  detail::verify_sizes(folder, manifest);
  const auto parent = make_folder(info.trial);
  CheckpointInfo taken = detail::info_of(manifest, publish(info.trial, folder, info.name), info.digest);
  if (state_->options.sync) {
    detail::sync_directory(parent);
    sync_new_folders(info.trial);
  }
  return taken;
}

/// The folder with exactly this content, here or in an origin; if there is none, the folder where it should be. Error of
/// kind `corrupt` if a link is in the place of the trial's folder.
std::filesystem::path LocalCheckpointStore::find(const CheckpointInfo& info) const {
  auto own = folder(info);
  const bool linked = is_link(info.trial);
  if (state_->options.origins.empty() && !linked) return own;
  const auto is_it = [&](const std::filesystem::path& candidate) {
    try {
      return detail::ContentHash::of(detail::read_manifest_text(candidate)) == info.digest;
    } catch (const Error& e) {
      if (e.code() != Errc::corrupt) throw;
      return false;
    }
  };
  if (!linked && is_it(own)) return own;
  for (const auto& origin : state_->options.origins) {
    const auto there = trial_directory(origin, info.trial) / "checkpoints" / info.name;
    if (!is_link(origin, info.trial) && is_it(there)) return there;
  }
  if (linked)
    fail(Errc::corrupt, "the trial's folder '{}' is a symbolic link, which is not followed",
         trial_directory(state_->root, info.trial).string());
  return own;
}

bool LocalCheckpointStore::names(const CheckpointInfo& info) const {
  try {
    return detail::ContentHash::of(detail::read_manifest_text(find(info))) == info.digest;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupt) throw;
    return false;
  }
}

CheckpointInfo LocalCheckpointStore::adopt(TrialId trial, int steps, const std::filesystem::path& source,
                                           std::string parent) {
  const auto status = std::filesystem::symlink_status(source);
  if (!std::filesystem::is_directory(status))
    fail(Errc::usage, "trial {} named '{}' as its checkpoint, but that is {}: name a folder that is complete", trial,
         source.string(), std::filesystem::exists(status) ? "no folder" : "missing");
  if (trial < 0 || steps < 0)
    fail(Errc::usage, "a checkpoint of trial {} after {} steps cannot be: neither is negative", trial, steps);
  const CheckpointWriter writer(trial, steps, new_staging(trial), std::move(parent));
  try {
    if (::rename(source.c_str(), writer.directory().c_str()) != 0) {
      if (errno != EXDEV) detail::fail_io(errno, "rename", source);
      std::error_code error;  // on another file system: copy instead of move
      std::filesystem::copy(source, writer.directory(),
                            std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks,
                            error);
      if (error) detail::fail_io(error.value(), "copy", source);
    }
    CheckpointInfo info = seal_staging(writer);
    detail::remove_tree(source);  // exists only after a copy
    return info;
  } catch (const Error& e) {
    std::error_code ignored;
    std::filesystem::remove(writer.directory() / Manifest::file_name, ignored);
    if (!std::filesystem::exists(source, ignored)) std::filesystem::rename(writer.directory(), source, ignored);
    discard(writer);
    fail(e.code(), "checkpoint '{}' of trial {}: {}", source.string(), trial, e.what());
  }
}

Checkpoint LocalCheckpointStore::open(const CheckpointInfo& info) {
  try {
    const auto directory = find(info);
    const Manifest manifest = detail::require_manifest(directory, info);
    detail::verify_files(directory, manifest);
    return Checkpoint(info, directory);
  } catch (const Error& e) { fail(e.code(), "checkpoint '{}' of trial {}: {}", info.name, info.trial, e.what()); }
}

/// Renames `folder` to a free name beside it that starts with `name`; nullopt if it is not there.
std::optional<std::filesystem::path> LocalCheckpointStore::move_aside(const std::filesystem::path& folder,
                                                                      const std::string& name) {
  for (int n = 1;; ++n) {
    auto target = folder.parent_path() / (n == 1 ? name : detail::format("{}-{}", name, n));
    struct stat status{};
    if (::lstat(target.c_str(), &status) == 0) continue;
    if (::rename(folder.c_str(), target.c_str()) == 0) return target;
    if (errno == ENOENT) return std::nullopt;
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) detail::fail_io(errno, "rename", folder);
  }
}

void LocalCheckpointStore::set_aside(const CheckpointInfo& info) {
  const auto directory = folder(info);
  if (is_link(info.trial)) return;
  if (move_aside(directory, ".corrupt-" + info.name) && state_->options.sync)
    detail::sync_directory(directory.parent_path());
}

void LocalCheckpointStore::drop(const CheckpointInfo& info) {
  const auto directory = folder(info);
  if (is_link(info.trial)) return;  // what is there is not this experiment's
  try {
    const std::string text = detail::read_manifest_text(directory);
    if (detail::ContentHash::of(text) != info.digest) {
      static_cast<void>(parse_manifest(text));
      return;  // intact, but another one: the name was used again
    }
  } catch (const Error& e) {
    if (e.code() != Errc::corrupt) throw;  // a damaged one is deleted, too
  }
  const auto trash = move_aside(directory, ".trash-" + detail::unique_suffix());
  if (!trash) return;
  std::error_code error;
  detail::remove_tree(*trash, error);
  // Somebody else may be deleting there as well (a person, or the whole experiment).
  if (error && error != std::errc::no_such_file_or_directory) detail::fail_io(error.value(), "delete", *trash);
}

std::vector<CheckpointInfo> LocalCheckpointStore::list(TrialId trial) {
  std::vector<CheckpointInfo> found;
  if (is_link(trial)) return found;
  const auto parent = folder(trial);
  std::error_code error;
  std::filesystem::directory_iterator entries(parent, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::string name = entries->path().filename().string();
    if (name.empty() || name.front() == '.') continue;
    try {
      const std::string text = detail::read_manifest_text(entries->path());
      const Manifest manifest = parse_manifest(text);
      if (manifest.trial == trial)
        found.push_back(detail::info_of(manifest, std::move(name), detail::ContentHash::of(text)));
    } catch (const Error& e) {
      if (e.code() != Errc::corrupt) throw;  // damaged, or dropped meanwhile: not a checkpoint
    }
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    detail::fail_io(error.value(), "list", parent);
  // With equal steps, the longer name (then the greater one) was sealed later.
  std::sort(found.begin(), found.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    if (a.steps != b.steps) return a.steps > b.steps;
    return a.name.size() != b.name.size() ? a.name.size() > b.name.size() : a.name > b.name;
  });
  return found;
}

void LocalCheckpointStore::sweep(const std::filesystem::path& parent) {
  std::error_code error;
  for (std::filesystem::directory_iterator entries(parent, error), end; !error && entries != end;
       entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(".staging-") && !name.starts_with(".trash-")) continue;
    if (detail::has_living_owner(entries->path())) continue;
    detail::remove_tree(entries->path());
  }
}

void LocalCheckpointStore::recover(TrialId trial) {
  if (!is_link(trial)) sweep(folder(trial));
}

void LocalCheckpointStore::recover() {
  std::error_code error;
  for (std::filesystem::directory_iterator trials(state_->root / "trials", error), end; !error && trials != end;
       trials.increment(error)) {
    std::error_code ignored;
    if (!trials->is_symlink(ignored)) sweep(trials->path() / "checkpoints");
  }
}

}  // namespace hypertune::inline v0
