// fetch_checkpoint: brings a checkpoint of another node into the local store.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/checkpoint/transfer/token_bucket.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

struct FetchProgress {
  std::uint64_t bytes = 0;   ///< of the whole checkpoint
  std::uint64_t done = 0;    ///< of these, already in place
  std::uint64_t moved = 0;   ///< bytes of content received in this call (compressed ones as received)
  std::uint64_t reused = 0;  ///< bytes taken from checkpoints of the local store
};

struct FetchOptions {
  int streams = 4;  ///< connections at once, 1 to 64. All fetches of a process share 32 beyond their first ones
  std::uint64_t rate_limit = 0;              ///< bytes per second; 0: no limit
  std::shared_ptr<TokenBucket> shared_rate;  ///< a limit for several fetches together
  bool compress = true;                      ///< allow the server to compress if that pays
  bool reuse = true;                         ///< reuse content that the local store's checkpoints already have
  std::vector<CheckpointInfo> bases;  ///< to reuse, besides the newest of its trial and those whose chunks are known
  /// SHA-256 that identifies manifest and chunks (see content_id()), from a trusted source: each chunk is then verified
  /// against it when it arrives, and the peer need not be trusted. Without it, content is verified against
  /// CheckpointInfo::digest, which detects any accidental damage but not a forgery.
  std::string content_id;
  bool hard_links = false;  ///< from a SharedDirectory: hard-link files if no reflink can be made
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  ///< a peer that sends nothing for this long is given up
  int retries = 5;                                  ///< consecutive connections that may end without a byte of content
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< for the whole fetch
  std::function<void(const FetchProgress&)> on_progress;  ///< about 10 times a second, from any thread, one at a time
};

struct FetchReport {
  CheckpointInfo checkpoint;         ///< as in the local store (the name differs if it was taken)
  std::uint64_t bytes_moved = 0;     ///< content that was received
  std::uint64_t bytes_reused = 0;    ///< taken from checkpoints of the local store
  std::uint64_t bytes_resumed = 0;   ///< received in an earlier, interrupted fetch
  std::uint64_t bytes_overhead = 0;  ///< manifest and chunk index
  bool was_here = false;             ///< the store had it already; nothing was done
  int reconnects = 0;                ///< connections that were lost
  std::chrono::duration<double> took{};
};

/// Fetches `info` from the server (or shared directory) at `from` into `store`, where it appears at once and complete,
/// or not at all. If it is there already, the server is not asked. Blocks. May be called from any thread, any number of
/// times at once (for the same checkpoint, one call transfers it and the others wait). Memory is bounded for any size.
///
/// A lost connection is made again. An interrupted fetch (`stop`, the deadline, a dead process or machine) is continued
/// by the next call for the same checkpoint. Errors: `io` (the peer cannot be reached or was lost, the disk is full,
/// the fetch was stopped or reached its deadline; what has arrived is kept), `usage` (wrong token or certificate),
/// `corrupt` (the peer does not have it, or its content does not match the digest), `protocol` (the peer sent something
/// that no CheckpointServer sends).
FetchReport fetch_checkpoint(const Endpoint& from, const CheckpointInfo& info, LocalCheckpointStore& store,
                             const FetchOptions& options = {}, std::stop_token stop = {});

/// Finds the complete checkpoint with this digest in a store: each file has its size (`deep`: and its content; this
/// reads all of it). Returns its info there, or nullopt. For retention: an older checkpoint may be deleted once a newer
/// one is stored elsewhere.
std::optional<CheckpointInfo> find_checkpoint(LocalCheckpointStore& store, const CheckpointInfo& info,
                                              bool deep = false);

/// The same for a peer. Error of kind `io` if it does not answer within `timeout`.
std::optional<CheckpointInfo> find_checkpoint(const Endpoint& at, const CheckpointInfo& info, bool deep = false,
                                              std::chrono::milliseconds timeout = std::chrono::seconds(30),
                                              std::stop_token stop = {});

/// The checkpoints of a trial that a peer has, newest first.
std::vector<CheckpointInfo> list_checkpoints(const Endpoint& at, TrialId trial,
                                             std::chrono::milliseconds timeout = std::chrono::seconds(30),
                                             std::stop_token stop = {});

/// SHA-256 over the manifest and the chunks of a checkpoint of this store, 64 hexadecimal digits: an identifier that
/// nobody can forge. Reads all of the checkpoint the first time (about a second per GB), and stores the chunk index
/// beside it.
std::string content_id(LocalCheckpointStore& store, const CheckpointInfo& info, std::stop_token stop = {});

/// Removes what interrupted fetches of a trial left and nobody has touched for `age`. Running fetches are left alone.
void drop_partial_fetches(LocalCheckpointStore& store, TrialId trial, std::chrono::seconds age);

}  // namespace hypertune::inline v0
