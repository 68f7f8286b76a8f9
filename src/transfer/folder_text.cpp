// Reading manifests and checking folders of checkpoints.
#include "folder_text.hpp"

#include "net/private_file.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <cerrno>

namespace hypertune::inline v0::detail {

std::string read_text(const std::filesystem::path& path, std::size_t most) {
  const Descriptor file = open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) fail_io(errno, "open", path);
  if (!S_ISREG(status.st_mode)) fail(Errc::corrupt, "'{}' is no ordinary file", path.string());
  if (static_cast<std::uint64_t>(status.st_size) > most)
    fail(Errc::corrupt, "'{}' has {} bytes: more than it can need", path.string(), status.st_size);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (const int error = read_into(file.get(), text)) fail_io(error, "read", path);
  return text;
}

std::optional<Found> read_manifest(LocalCheckpointStore& store, const CheckpointInfo& info) {
  Found found{.info = info, .text = {}, .manifest = {}};
  try {
    found.text = read_text(store.folder(info) / Manifest::file_name, Manifest::max_bytes);
    if (ContentHash::of(found.text) != info.digest) return std::nullopt;
    found.manifest = parse_manifest(found.text);
  } catch (const Error&) { return std::nullopt; }
  if (found.manifest.trial != info.trial) return std::nullopt;
  found.info.steps = found.manifest.steps;
  found.info.bytes = 0;
  for (const ManifestFile& file : found.manifest.files) found.info.bytes += file.size;
  return found;
}

std::optional<Found> find_by_digest(LocalCheckpointStore& store, const CheckpointInfo& info) {
  if (!info.name.empty())
    if (auto found = read_manifest(store, info)) return found;
  for (const CheckpointInfo& other : store.list(info.trial))
    if (other.digest == info.digest)
      if (auto found = read_manifest(store, other)) return found;
  return std::nullopt;
}

void require_checkpoint_info(const CheckpointInfo& info) {
  if (info.trial < 0) fail(Errc::usage, "no trial has the number {}", info.trial);
  if (!ContentHash::well_formed(info.digest))
    fail(Errc::usage, "'{}' is no digest of a checkpoint: 32 digits of 0-9a-f", info.digest);
  require_manifest_name(info.name);
  if (info.name.front() == '.' || info.name.find('/') != std::string::npos || info.name.size() > 200)
    fail(Errc::usage, "'{}' is not the name of a checkpoint", info.name);
}

bool files_present(const std::filesystem::path& folder, const Manifest& manifest) {
  const Descriptor directory = open_at(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) return false;
  for (const ManifestFile& entry : manifest.files) {
    const Descriptor file = open_regular(directory.get(), entry.name);
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0 || static_cast<std::uint64_t>(status.st_size) != entry.size)
      return false;
  }
  return true;
}

}  // namespace hypertune::inline v0::detail
