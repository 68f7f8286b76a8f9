// Small files of the transfer's own, and the manifests of stores.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/manifest.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// The whole of an ordinary file. Error of kind `io` if it cannot be read, `corrupt` if it is longer than `most`.
std::string read_text(const std::filesystem::path& path, std::size_t most);

/// A checkpoint of a store, with what its manifest says.
struct Found {
  CheckpointInfo info;  ///< as it is called there
  std::string text;     ///< of the manifest
  Manifest manifest;
};

/// The manifest of the checkpoint `info.name`; nullopt if there is none, it is damaged, or its digest is another one.
std::optional<Found> read_manifest(LocalCheckpointStore& store, const CheckpointInfo& info);

/// The checkpoint with this trial and digest, first by its name, then whatever it is called.
std::optional<Found> find_by_digest(LocalCheckpointStore& store, const CheckpointInfo& info);

/// Error of kind `usage` unless `info` can name a checkpoint: trial, name, digest.
void require_checkpoint_info(const CheckpointInfo& info);

/// Whether each file is there with its size.
bool files_present(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace hypertune::inline v0::detail
