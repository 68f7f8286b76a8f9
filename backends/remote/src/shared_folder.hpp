// SharedFolder: checkpoints on a disk that driver and hosts share. They are written once; only their names are sent.
#pragma once

#include "copies.hpp"
#include "host_folder.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

// Layout below the folder, next to the experiment's checkpoints:
//
//     .hosts/proof-<random>           written by the driver; hosts must be able to read it
//     .hosts/<incarnation>-<host>/    where one incarnation of a host writes checkpoints; no other process does
//         trials/<id>/checkpoints/    its sealed checkpoints
//         told/<transfer>/            the checkpoints offered to the driver
//     .hosts/.gone-…                  an area that is being deleted
//
// No process looks up a name before it exists, and no name is used twice, because NFS may cache for a minute that a
// name does not exist. A checkpoint is valid only after the driver has moved it out of the area. So a lost incarnation
// on a live host may continue to write without harm: its area is renamed when it is given up, and only the driver reads
// areas.

inline constexpr std::string_view shared_hosts = ".hosts";

inline std::string random_text() {
  std::random_device device;
  return hypertune::detail::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

/// The content of a small file. Error of kind `io` if it cannot be read.
inline std::string read_small_file(const std::filesystem::path& path) {
  const Descriptor file = hypertune::detail::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file) hypertune::detail::fail_io(errno, "read", path);
  char text[256];
  const ssize_t n = hypertune::detail::read_some(file.get(), text, sizeof text);
  if (n < 0) hypertune::detail::fail_io(errno, "read", path);
  return {text, static_cast<std::size_t>(n)};
}

/// Takes an area away from its host by renaming it, and deletes it. Not an error if it does not exist.
inline void retire_area(const std::filesystem::path& area) {
  std::error_code error;
  const auto gone = area.parent_path() / (".gone-" + random_text());
  std::filesystem::rename(area, gone, error);  // renamed first, so that nothing is moved out of a half-deleted area
  if (!error) hypertune::detail::remove_tree(gone);
}

// ---- The host's side ----

/// Expands "~/" in a path on this host to the home folder of the agent's user.
inline std::filesystem::path place_on_host(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr) return std::filesystem::path(home) / path.substr(2);
  return path;
}

/// The proof that a folder on the host is the driver's.
struct SharedProof {
  std::string read, wrote;
};

/// Reads the driver's file, and writes a text for the driver into the new folder `area`. Throws an Error that says what
/// is wrong with the folder on the host.
inline SharedProof prove_shared(const std::filesystem::path& root, const std::string& proof, const std::string& area) {
  std::error_code error;
  if (!std::filesystem::is_directory(root, error))
    fail(Errc::io, "there is no folder '{}' there{}", root.string(), error ? ": " + error.message() : std::string());
  SharedProof said;
  try {
    said.read = read_small_file(root / shared_hosts / proof);
  } catch (const Error&) {
    fail(Errc::io, "'{}' there is not the folder that the driver has: another disk, or none, is mounted there",
         root.string());
  }
  const auto folder = root / shared_hosts / area;
  const auto aside = folder / ".proof";
  if (!std::filesystem::create_directories(aside, error) && error)
    fail(Errc::io, "nothing can be written to '{}' there: {}", root.string(), error.message());
  // Only for the driver's user and this one (same group).
  std::filesystem::permissions(folder, std::filesystem::perms::others_all, std::filesystem::perm_options::remove,
                               error);
  said.wrote = random_text();
  hypertune::detail::write_new_file(aside / "text", said.wrote);
  hypertune::detail::sync_directory(aside);
  std::filesystem::rename(aside, folder / "proof");
  hypertune::detail::sync_directory(folder);
  hypertune::detail::sync_directory(folder.parent_path());
  return said;
}

inline std::filesystem::path offered_folder(const std::filesystem::path& area, std::uint64_t transfer) {
  return area / "told" / std::to_string(transfer);
}

/// Moves a checkpoint that was sealed in the area's store to the place from which the driver takes it. Error of kind
/// `io` if that fails.
inline void put_for_driver(const LocalCheckpointStore& written, const CheckpointInfo& made, std::uint64_t transfer) {
  const auto target = offered_folder(written.root(), transfer);
  std::error_code error;
  std::filesystem::create_directory(target.parent_path(), error);
  std::filesystem::rename(written.folder(made), target, error);
  if (error) hypertune::detail::fail_io(error.value(), "move", written.folder(made));
}

// ---- The driver's side ----

/// Members may be called from several threads; all of them wait for the disk.
class SharedFolder {
 public:
  /// `experiment`: its folder; `id`: distinguishes experiments that share a disk. Removes the files of earlier drivers
  /// of the experiment, whose `epoch` is smaller. Error of kind `io` if the folder is not writable.
  SharedFolder(const SharedCheckpoints& options, const std::filesystem::path& experiment, const std::string& id,
               std::uint64_t epoch)
      : experiment_(std::filesystem::absolute(experiment).lexically_normal()), root_(experiment_) {
    if (!experiment_.has_filename()) root_ = experiment_ = experiment_.parent_path();
    if (!options.folder.empty()) {
      const auto leaf = hypertune::detail::format("{}-{}", experiment_.filename().string(), id);
      root_ = std::filesystem::absolute(options.folder) / leaf;
      on_hosts_ = (options.on_hosts.empty() ? root_ : std::filesystem::path(options.on_hosts) / leaf).string();
    } else {
      on_hosts_ = options.on_hosts.empty() ? root_.string() : options.on_hosts;
    }
    const auto hosts = root_ / shared_hosts;
    std::error_code error;
    std::filesystem::create_directories(hosts, error);
    if (error) fail(Errc::io, "cannot make the shared folder '{}': {}", hosts.string(), error.message());
    clean(epoch);
    text_ = random_text();
    proof_ = "proof-" + random_text();
    hypertune::detail::write_new_file(hosts / proof_, text_);
    hypertune::detail::sync_directory(hosts);
  }

  const std::filesystem::path& root() const { return root_; }
  const std::string& on_hosts() const { return on_hosts_; }
  const std::string& proof() const { return proof_; }
  static std::string area_name(std::uint64_t incarnation, const std::string& host) {
    return hypertune::detail::format("{:016x}-{}", incarnation, folder_name(host));
  }

  /// Throws unless the host reads what is written here, this side reads what the host writes, and the driver can move
  /// it.
  void check(const std::string& area, const SharedProof& said) const {
    if (said.read != text_) fail(Errc::io, "what it reads in '{}' there is not what was written here", on_hosts_);
    const auto folder = root_ / shared_hosts / area;
    std::string seen;
    try {
      seen = read_small_file(folder / "proof" / "text");
    } catch (const Error& e) { fail(Errc::io, "what it writes is not seen here: {}", e.what()); }
    if (seen != said.wrote) fail(Errc::io, "what it writes to '{}' there is not what is seen here", on_hosts_);
    const auto taken = root_ / shared_hosts / (".gone-" + random_text());
    std::error_code error;
    std::filesystem::rename(folder / "proof", taken, error);
    if (error)
      fail(Errc::io, "what it writes to '{}' cannot be moved by this user: {}", root_.string(), error.message());
    hypertune::detail::remove_tree(taken);
  }

  /// If the experiment's own folder is elsewhere, makes its checkpoints folder of the trial a link to the shared one.
  void link(TrialId trial) const {
    if (root_ == experiment_) return;
    const auto part = std::filesystem::path("trials") / std::to_string(trial) / "checkpoints";
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(experiment_ / part, ignored))) return;
    std::filesystem::create_directories(root_ / part, ignored);
    std::filesystem::create_directories((experiment_ / part).parent_path(), ignored);
    std::filesystem::create_directory_symlink(root_ / part, experiment_ / part, ignored);
  }

  /// Moves a checkpoint that a host has offered into the experiment. Throws an Error if it does not exist or is
  /// incomplete.
  CheckpointInfo take(const std::string& area, std::uint64_t transfer, const CheckpointInfo& info,
                      LocalCheckpointStore& store) const {
    link(info.trial);
    const auto from = offered_folder(root_ / shared_hosts / area, transfer), to = store.folder(info.trial);
    struct stat there{}, here{};
    if (::stat(from.c_str(), &there) == 0 && ::stat(to.c_str(), &here) == 0 && there.st_dev != here.st_dev)
      return copy(from, info, store);  // the trial's folder is from before the folder was shared
    return store.take_over(from, info);
  }

  void retire(const std::string& area) const { retire_area(root_ / shared_hosts / area); }

  /// Removes all files of hosts. Must be called when no host is left.
  void close() const { hypertune::detail::remove_tree(root_ / shared_hosts); }

 private:
  // Removes the areas of lost incarnations, but not those of newer drivers.
  void clean(std::uint64_t epoch) const {
    std::error_code error;
    std::vector<std::filesystem::path> old;
    for (std::filesystem::directory_iterator entries(root_ / shared_hosts, error), end; !error && entries != end;
         entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      std::uint64_t incarnation = 0;
      const auto [stop, bad] =
          std::from_chars(name.data(), name.data() + std::min<std::size_t>(name.size(), 16), incarnation, 16);
      const bool area = bad == std::errc() && stop == name.data() + 16;
      if (!area || (incarnation >> 32U) < epoch) old.push_back(entries->path());
    }
    for (const auto& path : old) {
      if (std::filesystem::is_directory(path, error) && !path.filename().string().starts_with('.'))
        retire_area(path);
      else
        hypertune::detail::remove_tree(path);
    }
  }

  static CheckpointInfo copy(const std::filesystem::path& from, const CheckpointInfo& info, LocalCheckpointStore& to) {
    OutgoingCopy outgoing(from, info, 0, 0);
    IncomingCopy incoming(to, outgoing.offer());
    while (const auto piece = outgoing.next()) incoming.add(piece->bytes);
    CheckpointInfo sealed = incoming.seal();
    hypertune::detail::remove_tree(from);
    return sealed;
  }

  std::filesystem::path experiment_, root_;
  std::string on_hosts_, text_, proof_;
};

}  // namespace hypertune::inline v0::remote::detail
