// Stream: fetches pieces of a checkpoint's content over one connection.
#include "stream.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

constexpr std::uint64_t piece_size = std::uint64_t{1} << 20U;
constexpr std::size_t block = std::size_t{256} << 10U;
constexpr std::uint64_t max_ahead = std::uint64_t{8} << 20U;  // requested bytes that have not arrived, per stream
constexpr std::size_t max_requests = 32;
// zstd's fastest level produces about 400 MB/s per core, so it only helps links that are clearly slower.
constexpr double worth_compressing = 150e6;

/// Fetches pieces over one connection until none is left.
class Stream {
 public:
  Stream(FetchShared& shared, std::unique_ptr<Peer> peer)
      : shared_(shared),
        peer_(std::move(peer)),
        writer_(shared.partial, shared.chunks == nullptr),
        block_(std::make_unique_for_overwrite<char[]>(block)) {}

  void run();

 private:
  void ask_ahead();
  void receive_next();
  void receive_body(const Peer::Head& head, ByteRange piece);
  void take_content(const char* data, std::size_t size);
  void give_back();

  FetchShared& shared_;
  std::unique_ptr<Peer> peer_;
  PartialCheckpoint::Writer writer_;
  std::unique_ptr<char[]> block_, unpacked_;
  Decompressor decompressor_;
  std::optional<Sha256> hash_;
  std::deque<ByteRange> asked_;  // in the order of their answers
  std::uint64_t ahead_ = 0;      // bytes in asked_
  std::uint64_t window_ = piece_size;
  bool moved_ = false;  // whether this connection has received anything
  // The current piece:
  ByteRange piece_{};
  std::uint64_t at_ = 0;     // written up to here
  std::uint64_t sound_ = 0;  // verified up to here; without chunks, equal to at_
  std::size_t chunk_ = 0;
};

void Stream::run() {
  for (int failures = 0;;) {
    try {
      if (!peer_) peer_ = std::make_unique<Peer>(shared_.from, shared_.limits, shared_.alarm.descriptor());
      for (;;) {
        ask_ahead();
        if (asked_.empty()) return;
        receive_next();
      }
    } catch (const ConnectionLost&) {
      give_back();
      peer_.reset();
      failures = moved_ ? 1 : failures + 1;
      moved_ = false;
      if (failures > shared_.options.retries || shared_.alarm.raised()) throw;
      shared_.reconnects += 1;
      if (!back_off(failures - 1, shared_.limits, shared_.alarm.descriptor())) throw;
    } catch (...) {
      give_back();
      throw;
    }
  }
}

/// Records the verified part of the current piece, and returns the rest to the queue.
void Stream::give_back() {
  if (piece_.begin < piece_.end) {
    shared_.partial.arrived({piece_.begin, sound_});
    if (sound_ < piece_.end) shared_.put_back({sound_, piece_.end});
    piece_ = {};
  }
  while (!asked_.empty()) {
    shared_.put_back(asked_.back());
    asked_.pop_back();
  }
  ahead_ = 0;
  window_ = piece_size;
}

void Stream::ask_ahead() {
  const Target target{.what = Target::What::data, .info = shared_.info, .deep = false};
  while (asked_.size() < max_requests && (asked_.empty() || ahead_ < window_)) {
    // Leave the last pieces to streams that are free.
    if (!asked_.empty() && shared_.queued() < static_cast<std::size_t>(shared_.options.streams)) return;
    const auto piece = shared_.take();
    if (!piece) return;
    asked_.push_back(*piece);
    ahead_ += piece->size();
    const double rate = peer_->rate();
    const bool zstd = shared_.options.compress && rate > 0 && rate < worth_compressing;
    peer_->ask(target, *piece, zstd);
  }
}

void Stream::receive_next() {
  const ByteRange piece = asked_.front();
  const Peer::Head head = peer_->receive_head(std::max<std::uint64_t>(piece.size(), 4096));
  if (head.status != 206) peer_->refuse(head);
  if (head.range != detail::format("bytes {}-{}/{}", piece.begin, piece.end - 1, shared_.partial.layout().total()))
    fail(Errc::protocol, "{}: it gives another range than it was asked for", shared_.from.to_string());
  if (head.zstd ? head.length > piece.size() : head.length != piece.size())
    fail(Errc::protocol, "{}: it gives {} bytes where it was asked for {}", shared_.from.to_string(), head.length,
         piece.size());
  asked_.pop_front();
  ahead_ -= piece.size();
  piece_ = piece;
  at_ = sound_ = piece.begin;
  if (shared_.chunks != nullptr) {
    hash_.emplace();
    chunk_ = static_cast<std::size_t>(
        std::lower_bound(shared_.chunk_begins.begin(), shared_.chunk_begins.end(), piece.begin) -
        shared_.chunk_begins.begin());
  }
  receive_body(head, piece);
  shared_.partial.arrived({piece.begin, piece.end});
  piece_ = {};
  window_ = std::min(window_ + piece.size(), max_ahead);
  shared_.show();
}

void Stream::receive_body(const Peer::Head& head, ByteRange piece) {
  if (head.zstd) {
    decompressor_.begin();
    if (!unpacked_) unpacked_ = std::make_unique_for_overwrite<char[]>(block / 2);
  }
  bool ended = !head.zstd;
  for (std::uint64_t left = head.length; left > 0;) {
    const auto want = static_cast<std::size_t>(
        std::min({left, std::uint64_t{block}, shared_.rate.slice(block),
                  shared_.options.shared_rate ? shared_.options.shared_rate->slice(block) : std::uint64_t{block}}));
    const std::size_t n = peer_->receive(block_.get(), want);
    left -= n;
    moved_ = true;
    shared_.moved += n;
    shared_.show();
    auto until = shared_.rate.take(n);
    if (shared_.options.shared_rate) until = std::max(until, shared_.options.shared_rate->take(n));
    if (until > Wire::Clock::now()) {
      Wire::ErrorCode error;
      peer_->wire().set_deadline(shared_.limits.deadline);  // this wait is not the peer's fault
      peer_->wire().wait_until(until, error);
      if (error) throw ConnectionLost("stopped");
      peer_->wire().set_stall(shared_.limits.stall, shared_.limits.deadline);
    }
    if (!head.zstd) {
      take_content(block_.get(), n);
      continue;
    }
    for (std::size_t used = 0;;) {
      if (ended && used < n)
        fail(Errc::protocol, "{}: something follows the compressed content", shared_.from.to_string());
      const auto step = decompressor_.run(block_.get() + used, n - used, unpacked_.get(), block / 2);
      used += step.consumed;
      if (step.produced > piece.end - at_)
        fail(Errc::protocol, "{}: its content is longer than it was asked for when it is unpacked",
             shared_.from.to_string());
      take_content(unpacked_.get(), step.produced);
      ended = step.ended;
      if (used == n && (step.produced < block / 2 || ended)) break;
    }
  }
  if (!ended || at_ != piece.end)
    fail(Errc::protocol, "{}: its content is shorter than it was asked for when it is unpacked",
         shared_.from.to_string());
}

void Stream::take_content(const char* data, std::size_t size) {
  if (shared_.chunks == nullptr) {
    if (size > 0) writer_.write(at_, data, size);
    at_ += size;
    sound_ = at_;
    return;
  }
  while (size > 0) {
    const std::uint64_t end = shared_.chunk_begins[chunk_ + 1];
    const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(size, end - at_));
    hash_->add(data, here);
    if (at_ + here == end && hash_->take() != (*shared_.chunks)[chunk_].hash)
      fail(Errc::corrupt, "{}: what it gives is not what its chunk list names (bytes {} to {} of the content)",
           shared_.from.to_string(), shared_.chunk_begins[chunk_], end);
    writer_.write(at_, data, here);
    at_ += here;
    if (at_ == end) {
      sound_ = at_;
      ++chunk_;
    }
    data += here;
    size -= here;
  }
}

}  // namespace

void FetchShared::queue_missing() {
  const std::lock_guard lock(mutex_);
  pieces_.clear();
  for (const ByteRange& gap : partial.missing()) {
    if (chunks == nullptr) {
      for (std::uint64_t at = gap.begin; at < gap.end;) {
        const std::uint64_t end = std::min(gap.end, (at / piece_size + 1) * piece_size);
        pieces_.push_back({at, end});
        at = end;
      }
      continue;
    }
    auto begin = std::lower_bound(chunk_begins.begin(), chunk_begins.end(), gap.begin);
    while (*begin < gap.end) {
      auto end = begin + 1;
      while (*end < gap.end && *(end + 1) - *begin <= piece_size) ++end;
      pieces_.push_back({*begin, *end});
      begin = end;
    }
  }
}

std::optional<ByteRange> FetchShared::take() {
  const std::lock_guard lock(mutex_);
  if (pieces_.empty()) return std::nullopt;
  const ByteRange piece = pieces_.front();
  pieces_.pop_front();
  return piece;
}

void FetchShared::put_back(ByteRange piece) {
  const std::lock_guard lock(mutex_);
  pieces_.push_front(piece);
}

std::size_t FetchShared::queued() const {
  const std::lock_guard lock(mutex_);
  return pieces_.size();
}

void FetchShared::failed(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
  }
  alarm.raise();
}

void FetchShared::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void FetchShared::show(bool last) {
  if (!options.on_progress) return;
  const auto now = std::chrono::steady_clock::now();
  const std::unique_lock held(show_mutex_, std::try_to_lock);
  if (!held || (!last && now - shown_ < std::chrono::milliseconds(100))) return;
  shown_ = now;
  options.on_progress({.bytes = partial.layout().total(), .done = partial.have(), .moved = moved, .reused = reused});
}

void run_stream(FetchShared& shared, std::unique_ptr<Peer> first) { Stream(shared, std::move(first)).run(); }

namespace {
std::atomic<int> extra_streams{0};
}  // namespace

ExtraStreams::ExtraStreams(int wanted) {
  int now = extra_streams.load();
  do count_ = std::clamp(most - now, 0, std::max(wanted, 0));
  while (count_ > 0 && !extra_streams.compare_exchange_weak(now, now + count_));
}

ExtraStreams::~ExtraStreams() { extra_streams -= count_; }

}  // namespace hypertune::inline v0::detail
