// The streams of a fetch: connections that take pieces from a common queue.
#pragma once

#include "chunk_index.hpp"
#include "compression.hpp"
#include "partial_checkpoint.hpp"
#include "peer.hpp"

#include <hypertune/checkpoint/transfer/fetch.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail {

/// What all threads of a fetch share.
struct FetchShared {
  FetchShared(const Endpoint& f, const CheckpointInfo& i, const FetchOptions& o, PartialCheckpoint& a)
      : from(f), info(i), options(o), partial(a), rate(o.rate_limit) {}

  const Endpoint& from;
  const CheckpointInfo& info;
  const FetchOptions& options;
  PartialCheckpoint& partial;
  TokenBucket rate;
  Alarm alarm;  ///< all must stop: the caller asked for it, or one has failed
  PeerLimits limits;
  /// If the chunks are known: where each begins, followed by the end; and the chunks themselves.
  std::vector<std::uint64_t> chunk_begins;
  const ChunkList* chunks = nullptr;

  std::atomic<std::uint64_t> moved{0}, reused{0};
  std::atomic<int> reconnects{0};

  /// Splits what is missing into pieces of about 1 MiB; if the chunks are known, at their borders.
  void queue_missing();
  /// The next pieces, as one contiguous range.
  std::optional<ByteRange> take();
  void put_back(ByteRange piece);
  std::size_t queued() const;
  /// Reports a failure. The first one is kept; all threads stop.
  void failed(std::exception_ptr why);
  void rethrow() const;
  void show(bool last = false);

 private:
  mutable std::mutex mutex_;
  std::deque<ByteRange> pieces_;
  std::exception_ptr failure_;
  std::mutex show_mutex_;
  std::chrono::steady_clock::time_point shown_{};
};

/// Takes pieces until none is left. A lost connection is made again; throws ConnectionLost after too many in a row
/// without a byte of content. `first`: a connection to begin with.
void run_stream(FetchShared& shared, std::unique_ptr<Peer> first);

/// Reserves streams beyond the first one. All fetches of the process share a limit.
class ExtraStreams {
 public:
  static constexpr int most = 32;
  explicit ExtraStreams(int wanted);
  ExtraStreams(const ExtraStreams&) = delete;
  ExtraStreams& operator=(const ExtraStreams&) = delete;
  ~ExtraStreams();
  int count() const { return count_; }

 private:
  int count_ = 0;
};

}  // namespace hypertune::inline v0::detail
