// Reusing the content of local checkpoints for a fetch.

#include "reuse.hpp"

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

constexpr std::size_t newest_of_trial = 2, max_of_others = 6;
constexpr std::size_t copy_block = std::size_t{256} << 10U;

/// Reads the content of a sealed checkpoint, file after file.
class BaseReader {
 public:
  BaseReader(LocalCheckpointStore& store, const Found& found)
      : found_(found),
        layout_(found.manifest),
        directory_(open_at(AT_FDCWD, store.folder(found.info).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {}

  /// Reads bytes of one file; false if they do not exist (any more).
  bool read(std::uint64_t offset, char* into, std::size_t size) {
    const std::size_t index = layout_.file_at(offset);
    if (!file_ || index_ != index) {
      file_ = open_regular(directory_.get(), found_.manifest.files[index].name);
      index_ = index;
    }
    while (file_ && size > 0) {
      const ssize_t n = ::pread(file_.get(), into, size, static_cast<off_t>(offset - layout_.begin(index)));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      into += n;
      offset += static_cast<std::uint64_t>(n);
      size -= static_cast<std::size_t>(n);
    }
    return size == 0;
  }

 private:
  const Found& found_;
  Layout layout_;
  Descriptor directory_, file_;
  std::size_t index_ = 0;
};

/// The position of a chunk in a base. The hash is truncated, because the content is hashed again before use.
struct Place {
  std::uint64_t hash;
  std::uint64_t offset;
  std::uint32_t size;
  std::uint32_t base;
};

std::uint64_t short_hash(const Sha256Digest& digest) {
  std::uint64_t value = 0;
  std::memcpy(&value, digest.data(), sizeof value);
  return value;
}

/// Up to 6 newest cached chunk lists of other trials of the experiment: trial and digest, newest first.
std::vector<std::pair<TrialId, std::string>> known_chunks(LocalCheckpointStore& store, TrialId except) {
  std::vector<std::tuple<std::filesystem::file_time_type, TrialId, std::string>> found;
  std::error_code error;
  const auto trials = store.folder(except).parent_path().parent_path();
  for (std::filesystem::directory_iterator at(trials, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const auto number = parse_number<TrialId>(name);
    if (!number || *number == except) continue;
    const TrialId trial = *number;
    std::error_code none;
    for (std::filesystem::directory_iterator in(store.folder(trial) / ".chunks", none), out; !none && in != out;
         in.increment(none)) {
      const std::string digest = in->path().filename().string();
      std::error_code gone;
      const auto time = in->last_write_time(gone);
      if (!gone && ContentHash::well_formed(digest)) found.emplace_back(time, trial, digest);
    }
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<std::pair<TrialId, std::string>> newest;
  for (const auto& [time, trial, digest] : found)
    if (newest.size() < max_of_others) newest.emplace_back(trial, digest);
  return newest;
}

}  // namespace

void require_not_stopped(const std::stop_token& stop) {
  if (stop.stop_requested()) fail(Errc::io, "stopped; what has arrived is kept for the next try");
}

std::vector<Found> find_bases(LocalCheckpointStore& store, const CheckpointInfo& wanted,
                              const std::vector<CheckpointInfo>& asked_for) {
  std::vector<Found> bases;
  std::set<std::string> seen{wanted.digest};
  const auto add = [&](const CheckpointInfo& info) {
    if (!seen.insert(info.digest).second) return false;
    auto found = find_by_digest(store, info);
    if (found) bases.push_back(std::move(*found));
    return found.has_value();
  };
  for (const CheckpointInfo& info : asked_for) add(info);
  std::size_t count = 0;
  for (const CheckpointInfo& info : store.list(wanted.trial)) {
    if (count == newest_of_trial) break;
    if (add(info)) ++count;
  }
  for (const auto& [trial, digest] : known_chunks(store, wanted.trial))
    add({.trial = trial, .steps = 0, .name = {}, .bytes = 0, .digest = digest});
  return bases;
}

std::uint64_t reuse_files(PartialCheckpoint& partial, LocalCheckpointStore& store, const std::vector<Found>& bases,
                          bool link, bool forgiving) {
  if (bases.empty()) return 0;
  std::unordered_map<std::string_view, std::pair<const Found*, const ManifestFile*>> known;
  for (const Found& base : bases)
    for (const ManifestFile& file : base.manifest.files)
      if (file.size > 0) known.try_emplace(file.checksum, &base, &file);
  std::uint64_t reused = 0;
  Intervals there;
  for (const ByteRange& range : partial.present()) there.add(range);
  const auto& files = partial.manifest().files;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto at = known.find(files[i].checksum);
    if (at == known.end() || at->second.second->size != files[i].size || files[i].size == 0) continue;
    const ByteRange whole{partial.layout().begin(i), partial.layout().end(i)};
    if (there.contains(whole)) continue;
    try {
      if (partial.take_file(i, store.folder(at->second.first->info) / at->second.second->name, link))
        reused += files[i].size;
    } catch (const Error& e) {
      if (!forgiving || e.code() != Errc::corrupt || !partial.drop_wrong()) throw;
    }
  }
  return reused;
}

bool chunks_may_help(const PartialCheckpoint& partial, const std::vector<Found>& bases) {
  std::set<std::string_view> names;
  for (const Found& base : bases)
    for (const ManifestFile& file : base.manifest.files)
      if (file.size > 0) names.insert(file.name);
  const auto& layout = partial.layout();
  std::uint64_t bytes = 0;
  for (const ByteRange& gap : partial.missing())
    for (std::size_t i = layout.file_at(gap.begin); i < partial.manifest().files.size() && layout.begin(i) < gap.end;
         ++i)
      if (names.contains(partial.manifest().files[i].name))
        bytes += std::min(gap.end, layout.end(i)) - std::max(gap.begin, layout.begin(i));
  return bytes >= (std::uint64_t{64} << 10U);
}

std::uint64_t reuse_chunks(PartialCheckpoint& partial, const ChunkList& wanted, LocalCheckpointStore& store,
                           const std::vector<Found>& bases, const std::stop_token& stop,
                           const std::function<void(std::uint64_t)>& progress) {
  std::vector<Place> places;
  std::vector<BaseReader> readers;
  for (const Found& base : bases) {
    readers.emplace_back(store, base);
    ChunkList chunks;
    try {
      chunks = decode_chunks(chunks_of(store, base.info, base.manifest, stop), base.manifest);
    } catch (const Error&) {
      require_not_stopped(stop);
      continue;  // a damaged or dropped base is of no use
    }
    std::uint64_t offset = 0;
    for (const Chunk& chunk : chunks) {
      places.push_back({short_hash(chunk.hash), offset, chunk.size, static_cast<std::uint32_t>(readers.size() - 1)});
      offset += chunk.size;
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.hash < b.hash; });
  Intervals there;
  for (const ByteRange& range : partial.present()) there.add(range);
  PartialCheckpoint::Writer writer(partial);
  Sha256 hash;
  const auto buffer = std::make_unique_for_overwrite<char[]>(copy_block);
  std::uint64_t reused = 0, offset = 0;
  for (const Chunk& chunk : wanted) {
    const ByteRange range{offset, offset + chunk.size};
    offset = range.end;
    const auto key = short_hash(chunk.hash);
    const auto at = std::lower_bound(places.begin(), places.end(), key,
                                     [](const Place& place, std::uint64_t value) { return place.hash < value; });
    if (at == places.end() || at->hash != key || at->size != chunk.size || there.contains(range)) continue;
    require_not_stopped(stop);
    BaseReader& reader = readers[at->base];
    bool there_still = true;
    const auto each_block = [&](const auto& use) {
      for (std::uint64_t done = 0; there_still && done < chunk.size;) {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(copy_block, chunk.size - done));
        there_still = reader.read(at->offset + done, buffer.get(), size);
        if (there_still) use(range.begin + done, size);
        done += size;
      }
    };
    each_block([&](std::uint64_t, std::size_t size) { hash.add(buffer.get(), size); });
    if (hash.take() != chunk.hash || !there_still) continue;  // changed on disk: the peer provides the chunk
    if (chunk.size <= copy_block)
      writer.write(range.begin, buffer.get(), chunk.size);
    else
      each_block([&](std::uint64_t to, std::size_t size) { writer.write(to, buffer.get(), size); });
    if (!there_still) continue;
    partial.arrived(range);
    reused += chunk.size;
    progress(reused);
  }
  return reused;
}

void verify_present(PartialCheckpoint& partial, const ChunkList& chunks, const std::stop_token& stop) {
  Intervals there;
  for (const ByteRange& range : partial.present()) there.add(range);
  if (there.size() == 0) return;
  Intervals wrong = there;
  Sha256 hash;
  const auto buffer = std::make_unique_for_overwrite<char[]>(copy_block);
  std::uint64_t offset = 0;
  for (const Chunk& chunk : chunks) {
    const ByteRange range{offset, offset + chunk.size};
    offset = range.end;
    if (!there.contains(range)) continue;
    require_not_stopped(stop);
    bool whole = true;
    for (std::uint64_t done = 0; whole && done < chunk.size;) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(copy_block, chunk.size - done));
      whole = partial.read(range.begin + done, buffer.get(), size);
      if (whole) hash.add(buffer.get(), size);
      done += size;
    }
    if (hash.take() == chunk.hash && whole) wrong.remove(range);
  }
  for (const ByteRange& range : wrong.all()) partial.forget(range);
}

}  // namespace hypertune::inline v0::detail
