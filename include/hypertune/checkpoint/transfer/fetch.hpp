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
  std::uint64_t done = 0;    ///< of these, in place
  std::uint64_t moved = 0;   ///< bytes of content that came over the wire in this call (compressed ones as they came)
  std::uint64_t reused = 0;  ///< bytes taken from checkpoints that are here already
};

struct FetchOptions {
  int streams = 4;  ///< connections at once, 1 to 64. All fetches of a process share some 32 beyond the first
  std::uint64_t rate_limit = 0;              ///< bytes per second; 0: none
  std::shared_ptr<TokenBucket> shared_rate;  ///< a limit for several fetches together
  bool compress = true;                      ///< let the server compress where that pays
  bool reuse = true;                         ///< take over what earlier checkpoints here have in common with it
  std::vector<CheckpointInfo> bases;  ///< which ones, besides the newest of its trial and those whose chunks are known
  /// SHA-256 that names manifest and chunks (see content_id()), from somebody trusted: each chunk is then verified
  /// against it at arrival, and the peer need not be trusted at all. Without it, content is verified against
  /// CheckpointInfo::digest, which finds any accident but is no proof against a forger.
  std::string content_id;
  bool hard_links = false;  ///< from a SharedDirectory: share the files themselves where no reflink can be made
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  ///< a peer that sends nothing for so long is given up
  int retries = 5;                                  ///< connections in a row that end without a byte of content
  std::optional<std::chrono::steady_clock::time_point> deadline;  ///< for all of it
  std::function<void(const FetchProgress&)> on_progress;  ///< some 10 times a second, one call at a time, on any thread
};

struct FetchReport {
  CheckpointInfo checkpoint;         ///< as the local store knows it (its name may differ if the name was taken)
  std::uint64_t bytes_moved = 0;     ///< content that came over the wire
  std::uint64_t bytes_reused = 0;    ///< taken from checkpoints that were here
  std::uint64_t bytes_resumed = 0;   ///< had arrived in an earlier, interrupted fetch
  std::uint64_t bytes_overhead = 0;  ///< manifest and chunk index
  bool was_here = false;             ///< the store had it already: nothing was done
  int reconnects = 0;                ///< connections that were lost on the way
  std::chrono::duration<double> took{};
};

/// Fetches `info` from the server (or shared directory) at `from` into `store`, where it appears at once and whole, or
/// not at all. If it is there already, nothing is asked. Blocks; any thread; any number at once (of the same
/// checkpoint, one moves it and the others wait). Memory is bounded whatever the size.
///
/// A lost connection is made again. An interrupted fetch (`stop`, the deadline, a dead process or machine) is resumed
/// by the next call for the same checkpoint. Errors: `io` (the peer cannot be reached or was lost, the disk is full,
/// it was stopped or ran out of time: what has arrived is kept), `usage` (the token or certificate is not the right
/// one), `corrupt` (the peer does not have it, or its content is not what the digest names), `protocol` (the peer sent
/// what no CheckpointServer sends).
FetchReport fetch_checkpoint(const Endpoint& from, const CheckpointInfo& info, LocalCheckpointStore& store,
                             const FetchOptions& options = {}, std::stop_token stop = {});

/// Whether a store has the checkpoint with this digest completely: each file is there with its size (`deep`: and its
/// content; that reads all of it). Its info there, or nullopt. For retention: an older one may go once a newer one is
/// held elsewhere.
std::optional<CheckpointInfo> find_checkpoint(LocalCheckpointStore& store, const CheckpointInfo& info,
                                              bool deep = false);

/// The same, asked of a peer. Error of kind `io` if it cannot be asked within `timeout`.
std::optional<CheckpointInfo> find_checkpoint(const Endpoint& at, const CheckpointInfo& info, bool deep = false,
                                              std::chrono::milliseconds timeout = std::chrono::seconds(30),
                                              std::stop_token stop = {});

/// What a peer has of a trial, newest first.
std::vector<CheckpointInfo> list_checkpoints(const Endpoint& at, TrialId trial,
                                             std::chrono::milliseconds timeout = std::chrono::seconds(30),
                                             std::stop_token stop = {});

/// SHA-256 over the manifest and the chunks of a checkpoint of this store, 64 hexadecimal digits: a name that nobody
/// can forge. Reads all of it the first time (about a second per GB), and keeps the chunk index beside it.
std::string content_id(LocalCheckpointStore& store, const CheckpointInfo& info, std::stop_token stop = {});

/// Removes what interrupted fetches of a trial left and nobody has touched for `age`. Those under way are left alone.
void drop_partial_fetches(LocalCheckpointStore& store, TrialId trial, std::chrono::seconds age);

}  // namespace hypertune::inline v0
