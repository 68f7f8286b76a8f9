// The chunks of a checkpoint: its content, file after file in the manifest's order, cut and identified by SHA-256.
#pragma once

#include "net/openssl.hpp"

#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/checkpoint/local_store.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

struct Chunk {
  std::uint32_t size = 0;
  Sha256Digest hash{};
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// No chunk crosses from a file into the next; an empty file has none.
using ChunkList = std::vector<Chunk>;

/// Cuts and hashes the files. Error of kind `corrupt` if a file is not as long as the manifest says, `io` if stopped.
ChunkList chunk_folder(const std::filesystem::path& folder, const Manifest& manifest, std::stop_token stop);

/// The chunks as bytes: a line that names the format, then 36 bytes for each.
std::string encode_chunks(const ChunkList& chunks);
/// The inverse, for untrusted bytes: Error of kind `corrupt` unless they are chunks of files of these sizes.
ChunkList decode_chunks(std::string_view bytes, const Manifest& manifest);
/// The maximum size of encode_chunks() for such a checkpoint.
std::uint64_t max_chunk_bytes(const Manifest& manifest);

/// SHA-256 over the manifest and the encoded chunks.
std::string content_id_of(std::string_view manifest_text, std::string_view chunk_bytes);

/// Stores chunk lists in trials/<id>/checkpoints/.chunks/<digest>, so that each is computed once. Stored lists are not
/// trusted when they are read. If the folder cannot be written, nothing is stored.
class ChunkCache {
 public:
  /// The encoded chunks; empty if none are stored or they are damaged.
  static std::string load(const std::filesystem::path& trial_folder, const std::string& digest);
  /// Also removes those of checkpoints of this trial that are gone.
  static void keep(LocalCheckpointStore& store, TrialId trial, const std::string& digest, std::string_view bytes);
};

/// The encoded chunks of a sealed checkpoint: either loaded, or computed and stored.
std::string chunks_of(LocalCheckpointStore& store, const CheckpointInfo& info, const Manifest& manifest,
                      std::stop_token stop);

}  // namespace hypertune::inline v0::detail
