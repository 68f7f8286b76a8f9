// Finds parts of a checkpoint in earlier checkpoints of the store.
#pragma once

#include "chunk_index.hpp"
#include "folder_text.hpp"
#include "partial_checkpoint.hpp"

#include <hypertune/checkpoint/local_store.hpp>

#include <functional>
#include <stop_token>
#include <vector>

namespace hypertune::inline v0::detail {

/// Error of kind `io` if the fetch is to stop.
void require_not_stopped(const std::stop_token& stop);

/// Checkpoints of this store that may have content in common with `wanted`: those asked for, the newest of its trial,
/// and of other trials those whose chunks are known, because these cost nothing.
std::vector<Found> find_bases(LocalCheckpointStore& store, const CheckpointInfo& wanted,
                              const std::vector<CheckpointInfo>& asked_for);

/// Takes over each file that a base has with the same size and checksum. Returns the number of bytes. `link`: by hard
/// link. A file whose content has changed is left out (`forgiving`), or is an Error of kind `corrupt`.
std::uint64_t reuse_files(PartialCheckpoint& partial, LocalCheckpointStore& store, const std::vector<Found>& bases,
                          bool link, bool forgiving);

/// Whether it pays to look for chunks in the bases: one has a file that could be an earlier version of a missing one.
bool chunks_may_help(const PartialCheckpoint& partial, const std::vector<Found>& bases);

/// Takes over each chunk that a base has, verified by its hash. Returns the number of bytes. Calls `progress`
/// repeatedly.
std::uint64_t reuse_chunks(PartialCheckpoint& partial, const ChunkList& wanted, LocalCheckpointStore& store,
                           const std::vector<Found>& bases, const std::stop_token& stop,
                           const std::function<void(std::uint64_t)>& progress);

/// Reads the ranges that are noted as arrived again, and forgets each chunk that is incomplete or wrong.
void verify_present(PartialCheckpoint& partial, const ChunkList& chunks, const std::stop_token& stop);

}  // namespace hypertune::inline v0::detail
