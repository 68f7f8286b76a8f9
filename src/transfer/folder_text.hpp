// Small files of the transfer, and the manifests of stores.
#pragma once

#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// The contents of a regular file. Error of kind `io` if it cannot be read, `corrupt` if it is longer than `most`.
std::string read_text(const std::filesystem::path& path, std::size_t most);

/// A checkpoint of a store, with its manifest.
struct Found {
  CheckpointInfo info;  ///< with its name in that store
  std::string text;     ///< of the manifest
  Manifest manifest;
};

/// The manifest of the checkpoint `info.name`; nullopt if there is none, it is damaged, or it has another digest.
std::optional<Found> read_manifest(LocalCheckpointStore& store, const CheckpointInfo& info);

/// The checkpoint with this trial and digest: looked for by its name first, then under any name.
std::optional<Found> find_by_digest(LocalCheckpointStore& store, const CheckpointInfo& info);

/// Error of kind `usage` unless `info` can name a checkpoint: trial, name, digest.
void require_checkpoint_info(const CheckpointInfo& info);

/// Whether each file exists with its size.
bool files_present(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace hypertune::inline v0::detail
