// fetch_checkpoint().

#include "chunk_index.hpp"
#include "partial_checkpoint.hpp"
#include "peer.hpp"
#include "reuse.hpp"
#include "stream.hpp"

#include <hypertune/checkpoint/transfer/fetch.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

namespace {

using detail::Target;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t worth_a_stream = std::uint64_t{4} << 20U;

void require_sound(const FetchOptions& options) {
  if (options.streams < 1 || options.streams > 64)
    fail(Errc::usage, "a fetch can have 1 to 64 streams, not {}", options.streams);
  if (options.retries < 0) fail(Errc::usage, "the retries of a fetch cannot be negative");
  if (options.connect_timeout.count() <= 0 || options.stall_timeout.count() <= 0)
    fail(Errc::usage, "the time limits of a fetch must be above 0");
  const auto& id = options.content_id;
  if (!id.empty() && !detail::is_hex(id, 64)) fail(Errc::usage, "'{}' is no content id: 64 digits of 0-9a-f", id);
}

class Fetch {
 public:
  Fetch(const Endpoint& from, const CheckpointInfo& info, LocalCheckpointStore& store, const FetchOptions& options,
        std::stop_token stop)
      : from_(from), info_(info), store_(store), options_(options), stop_(std::move(stop)), on_stop_(stop_, [this] {
          stopped_.raise();
        }) {
    limits_ = {.connect = options.connect_timeout,
               .stall = options.stall_timeout,
               .deadline = options.deadline.value_or(Clock::time_point::max())};
  }

  FetchReport run();

 private:
  bool is_here();
  template <class Ask>
  auto asked(const Ask& ask);
  void take_manifest(std::string text);
  std::string chunks_of_peer(const std::vector<detail::Found>& bases);
  void fetch_from_server();
  void fetch_content(detail::FetchShared& shared);
  void take_from(LocalCheckpointStore source);
  void require_time() const;

  const Endpoint& from_;
  const CheckpointInfo& info_;
  LocalCheckpointStore& store_;
  const FetchOptions& options_;
  const std::stop_token stop_;
  detail::Alarm stopped_;
  const std::stop_callback<std::function<void()>> on_stop_;
  detail::PeerLimits limits_;
  std::unique_ptr<detail::Peer> peer_;
  std::optional<detail::PartialCheckpoint> partial_;
  FetchReport report_;
};

void Fetch::require_time() const {
  detail::require_not_stopped(stop_);
  if (Clock::now() >= limits_.deadline) fail(Errc::io, "out of time; what has arrived is kept for the next try");
}

bool Fetch::is_here() {
  auto found = find_checkpoint(store_, info_);
  if (!found) return false;
  report_.checkpoint = std::move(*found);
  report_.was_here = true;
  return true;
}

/// The result of `ask` for the peer; reconnects if the connection is lost.
template <class Ask>
auto Fetch::asked(const Ask& ask) {
  for (int failures = 0;; ++failures) try {
      require_time();
      if (!peer_) peer_ = std::make_unique<detail::Peer>(from_, limits_, stopped_.descriptor());
      return ask(*peer_);
    } catch (const detail::ConnectionLost&) {
      peer_.reset();
      require_time();
      if (failures >= options_.retries) throw;
      ++report_.reconnects;
      static_cast<void>(detail::back_off(failures, limits_, stopped_.descriptor()));
    }
}

void Fetch::take_manifest(std::string text) {
  if (detail::ContentHash::of(text) != info_.digest)
    fail(Errc::corrupt, "{}: its manifest is not the one with digest {}", from_.to_string(), info_.digest);
  Manifest manifest = parse_manifest(text);
  if (manifest.trial != info_.trial || manifest.steps != info_.steps)
    fail(Errc::corrupt, "{}: its manifest is of trial {} after {} steps, not of trial {} after {}", from_.to_string(),
         manifest.trial, manifest.steps, info_.trial, info_.steps);
  partial_.emplace(store_, info_, std::move(text), std::move(manifest));
}

std::string Fetch::chunks_of_peer(const std::vector<detail::Found>& bases) {
  const Target target{.what = Target::What::chunks, .info = info_, .deep = false};
  const Manifest& manifest = partial_->manifest();
  const std::uint64_t most = std::max<std::uint64_t>(detail::max_chunk_bytes(manifest), 64);
  // The peer computes chunks at hundreds of MB/s; after a much longer time, it is given up.
  const auto patience = options_.stall_timeout + std::chrono::microseconds(partial_->layout().total() / 10);
  std::size_t next_base = 0;
  for (const auto begin = Clock::now(); Clock::now() - begin < patience;) {
    const auto asked_at = Clock::now();
    auto [status, bytes] = asked([&](detail::Peer& peer) { return peer.fetch(target, most); });
    if (status == 200) {
      report_.bytes_overhead += bytes.size();
      return bytes;
    }
    // Meanwhile, compute the chunks of the local checkpoints.
    if (next_base < bases.size()) try {
        const detail::Found& base = bases[next_base++];
        static_cast<void>(detail::chunks_of(store_, base.info, base.manifest, stop_));
        continue;
      } catch (const Error&) { require_time(); }
    if (Clock::now() - asked_at < std::chrono::milliseconds(200))
      static_cast<void>(detail::back_off(3, limits_, stopped_.descriptor()));
    require_time();
  }
  fail(Errc::io, "{}: it has not computed the chunks in time", from_.to_string());
}

void Fetch::fetch_content(detail::FetchShared& shared) {
  shared.queue_missing();
  const std::uint64_t lacking = partial_->layout().total() - partial_->have();
  const int useful = static_cast<int>(std::min<std::uint64_t>(lacking / worth_a_stream, 63));
  const detail::ExtraStreams extra(std::min(options_.streams - 1, useful));
  const auto stop_all = std::function<void()>([&] { shared.alarm.raise(); });
  const std::stop_callback stop(stop_, stop_all);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < extra.count(); ++i)
      threads.emplace_back([&shared] {
        const detail::NoSigpipe no_signal;
        try {
          run_stream(shared, nullptr);
        } catch (const detail::ConnectionLost&) {  // its pieces are back in the queue for the other streams
        } catch (...) { shared.failed(std::current_exception()); }
      });
    if (peer_) peer_->wire().set_cancel(shared.alarm.descriptor());
    try {
      run_stream(shared, std::move(peer_));
    } catch (...) { shared.failed(std::current_exception()); }
  }
  if (shared.queued() > 0 && !shared.alarm.raised()) try {  // another stream failed after the first one had finished
      run_stream(shared, nullptr);
    } catch (...) { shared.failed(std::current_exception()); }
  report_.bytes_moved += shared.moved;
  report_.reconnects += shared.reconnects;
  if (stop_.stop_requested() || Clock::now() >= limits_.deadline) require_time();
  shared.rethrow();
}

void Fetch::fetch_from_server() {
  const Target target{.what = Target::What::manifest, .info = info_, .deep = false};
  std::string text = asked([&](detail::Peer& peer) { return peer.fetch(target, Manifest::max_bytes).second; });
  report_.bytes_overhead += text.size();
  take_manifest(std::move(text));
  for (bool again = false;; again = true) {
    detail::PartialCheckpoint& partial = *partial_;
    detail::FetchShared shared(from_, info_, options_, partial);
    shared.limits = limits_;
    if (!again) report_.bytes_resumed = partial.have();
    const bool strict = !options_.content_id.empty();
    std::vector<detail::Found> bases;
    if (options_.reuse && !again && partial.have() < partial.layout().total()) {
      bases = detail::find_bases(store_, info_, options_.bases);
      // Equal checksums can be forged, so with a content id, only chunks are reused.
      if (!strict) report_.bytes_reused += detail::reuse_files(partial, store_, bases, false, true);
      shared.reused = report_.bytes_reused;
    }
    detail::ChunkList chunks;
    if (strict || detail::chunks_may_help(partial, bases)) {
      const std::string bytes = chunks_of_peer(bases);
      if (strict && detail::content_id_of(partial.manifest_text(), bytes) != options_.content_id)
        fail(Errc::corrupt, "{}: its chunk list is not the one that the content id names", from_.to_string());
      try {
        chunks = detail::decode_chunks(bytes, partial.manifest());
      } catch (const Error& e) { fail(Errc::protocol, "{}: {}", from_.to_string(), e.what()); }
      const std::uint64_t before = partial.have();
      detail::verify_present(partial, chunks, stop_);
      if (!again) report_.bytes_resumed -= std::min(report_.bytes_resumed, before - partial.have());
      shared.chunks = &chunks;
      shared.chunk_begins.reserve(chunks.size() + 1);
      std::uint64_t at = 0;
      for (const detail::Chunk& chunk : chunks) {
        shared.chunk_begins.push_back(at);
        at += chunk.size;
      }
      shared.chunk_begins.push_back(at);
      if (!bases.empty())
        report_.bytes_reused +=
            detail::reuse_chunks(partial, chunks, store_, bases, stop_, [&](std::uint64_t bytes_here) {
              shared.reused = report_.bytes_reused + bytes_here;
              shared.show();
            });
      detail::ChunkCache::keep(store_, info_.trial, info_.digest, bytes);
    }
    const bool mixed = partial.have() > 0;
    try {
      if (partial.have() < partial.layout().total()) fetch_content(shared);
      partial.check_all();
      shared.show(true);
      return;
    } catch (const Error& e) {
      if (e.code() != Errc::corrupt || !partial.drop_wrong()) throw;
      // Data of an earlier try or of another checkpoint may be wrong: fetch that file again, only from the peer.
      if (!mixed || again) fail(e.code(), "{}: {}", from_.to_string(), e.what());
      require_time();
    }
  }
}

void Fetch::take_from(LocalCheckpointStore source) {
  auto found = detail::find_by_digest(source, info_);
  if (!found) fail(Errc::corrupt, "{}: there is no such checkpoint", from_.to_string());
  if (!options_.content_id.empty() && content_id(source, found->info, stop_) != options_.content_id)
    fail(Errc::corrupt, "{}: its content is not what the content id names", from_.to_string());
  take_manifest(found->text);
  detail::PartialCheckpoint& partial = *partial_;
  report_.bytes_resumed = partial.have();
  try {
    report_.bytes_moved = detail::reuse_files(partial, source, {*found}, options_.hard_links, false);
    if (partial.have() < partial.layout().total())
      fail(Errc::corrupt, "a file is missing, or has not the size that was sealed");
    partial.check_all();
  } catch (const Error& e) {
    static_cast<void>(partial.drop_wrong());
    fail(e.code(), "{}: {}", from_.to_string(), e.what());
  }
}

FetchReport Fetch::run() {
  const auto begin = Clock::now();
  const detail::NoSigpipe no_signal;
  const auto finished = [&]() -> FetchReport& {
    report_.took = Clock::now() - begin;
    return report_;
  };
  if (is_here()) return finished();
  store_.require_no_link(info_.trial);
  const auto folder = detail::IncomingLock::folder_of(store_, info_.trial, info_.digest);
  const auto lock = detail::IncomingLock::take(folder, limits_.deadline, stopped_.descriptor());
  if (!lock) require_time();
  if (!lock) fail(Errc::busy, "another fetch of the same checkpoint is under way");
  if (is_here()) {  // another process has fetched it meanwhile
    detail::remove_tree(folder);
    return finished();
  }
  try {
    if (const auto* shared = std::get_if<SharedDirectory>(&from_.address)) {
      take_from(LocalCheckpointStore(shared->path));
    } else {
      fetch_from_server();
    }
  } catch (...) {
    if (!partial_ || partial_->have() == 0) detail::remove_tree(folder);  // nothing to resume from
    throw;
  }
  report_.checkpoint = partial_->finish();
  return finished();
}

}  // namespace

FetchReport fetch_checkpoint(const Endpoint& from, const CheckpointInfo& info, LocalCheckpointStore& store,
                             const FetchOptions& options, std::stop_token stop) {
  detail::require_checkpoint_info(info);
  require_sound(options);
  try {
    return Fetch(from, info, store, options, std::move(stop)).run();
  } catch (const Error& e) {
    fail(e.code(), "checkpoint '{}' of trial {}, from another node: {}", info.name, info.trial, e.what());
  }
}

}  // namespace hypertune::inline v0
