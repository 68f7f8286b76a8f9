// Chunk lists: computing, encoding and caching them.

#include "chunk_index.hpp"

#include "chunker.hpp"
#include "folder_text.hpp"

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>

namespace hypertune::inline v0::detail {

namespace {

constexpr std::string_view heading = "hypertune-chunks 1\n";
constexpr std::size_t entry_size = 36;

std::filesystem::path cache_folder(const std::filesystem::path& trial_folder) { return trial_folder / ".chunks"; }

}  // namespace

ChunkList chunk_folder(const std::filesystem::path& folder, const Manifest& manifest, std::stop_token stop) {
  const Descriptor directory = open_at(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory) fail_io(errno, "open", folder);
  ChunkList chunks;
  ReadBuffer buffer;
  Sha256 hash;
  for (const ManifestFile& entry : manifest.files) {
    const Descriptor file = open_regular(directory.get(), entry.name);
    if (!file) fail(Errc::corrupt, "file '{}' is missing or no ordinary file", entry.name);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Chunker chunker(chunk_sizes(entry.size));
    std::uint64_t size = 0;
    std::uint32_t length = 0;
    const auto end_chunk = [&] {
      chunks.push_back({.size = length, .hash = hash.take()});
      length = 0;
    };
    for (;;) {
      if (stop.stop_requested()) fail(Errc::io, "stopped while the chunks of a checkpoint were computed");
      const ssize_t n = read_some(file.get(), buffer.data(), ReadBuffer::size);
      if (n < 0) fail_io(errno, "read", folder / entry.name);
      if (n == 0) break;
      size += static_cast<std::uint64_t>(n);
      for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
        const auto cut = chunker.scan(buffer.data() + at, static_cast<std::size_t>(n) - at);
        hash.add(buffer.data() + at, cut.size);
        length += static_cast<std::uint32_t>(cut.size);
        at += cut.size;
        if (cut.ends) end_chunk();
      }
    }
    if (length > 0) end_chunk();
    if (size != entry.size)
      fail(Errc::corrupt, "file '{}' has {} bytes, but {} were sealed", entry.name, size, entry.size);
  }
  return chunks;
}

std::string encode_chunks(const ChunkList& chunks) {
  std::string bytes(heading);
  bytes.reserve(heading.size() + chunks.size() * entry_size);
  for (const Chunk& chunk : chunks) {
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((chunk.size >> shift) & 255U);
    bytes.append(reinterpret_cast<const char*>(chunk.hash.data()), chunk.hash.size());
  }
  return bytes;
}

ChunkList decode_chunks(std::string_view bytes, const Manifest& manifest) {
  if (!bytes.starts_with(heading)) fail(Errc::corrupt, "this is no list of chunks of a format that is known here");
  bytes.remove_prefix(heading.size());
  if (bytes.size() % entry_size != 0) fail(Errc::corrupt, "the list of chunks ends within a chunk");
  ChunkList chunks(bytes.size() / entry_size);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto* entry = reinterpret_cast<const unsigned char*>(bytes.data()) + i * entry_size;
    for (unsigned k = 0; k < 4; ++k) chunks[i].size |= static_cast<std::uint32_t>(entry[k]) << (8 * k);
    if (chunks[i].size == 0 || chunks[i].size > largest_chunk)
      fail(Errc::corrupt, "a chunk has {} bytes, which none can have", chunks[i].size);
    std::memcpy(chunks[i].hash.data(), entry + 4, chunks[i].hash.size());
  }
  std::size_t next = 0;
  for (const ManifestFile& file : manifest.files) {
    std::uint64_t size = 0;
    while (size < file.size && next < chunks.size()) size += chunks[next++].size;
    if (size != file.size) fail(Errc::corrupt, "the chunks of file '{}' do not add up to its size", file.name);
  }
  if (next != chunks.size()) fail(Errc::corrupt, "there are more chunks than the files have");
  return chunks;
}

std::uint64_t max_chunk_bytes(const Manifest& manifest) {
  std::uint64_t count = 0;
  for (const ManifestFile& file : manifest.files) count += file.size / chunk_sizes(file.size).smallest + 1;
  return heading.size() + count * entry_size;
}

std::string content_id_of(std::string_view manifest_text, std::string_view chunk_bytes) {
  // The chunk list includes the sizes. No separator is needed, because the end of the manifest is unambiguous.
  Sha256 hash;
  hash.add(manifest_text.data(), manifest_text.size());
  hash.add(chunk_bytes.data(), chunk_bytes.size());
  return to_hex(hash.take());
}

std::string ChunkCache::load(const std::filesystem::path& trial_folder, const std::string& digest) {
  std::string bytes;
  try {
    bytes = read_text(cache_folder(trial_folder) / digest, Manifest::max_bytes);
  } catch (const Error&) { return {}; }
  if (bytes.size() < 32) return {};
  const std::string_view content(bytes.data(), bytes.size() - 32);
  if (ContentHash::of(content) != std::string_view(bytes).substr(content.size())) return {};
  bytes.resize(content.size());
  return bytes;
}

void ChunkCache::keep(LocalCheckpointStore& store, TrialId trial, const std::string& digest, std::string_view bytes) {
  const auto folder = cache_folder(store.folder(trial));
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  try {
    replace_file(folder / digest, std::string(bytes) + ContentHash::of(bytes));
    std::set<std::string> alive{digest};
    for (const CheckpointInfo& info : store.list(trial)) alive.insert(info.digest);
    for (std::filesystem::directory_iterator entries(folder, error), end; !error && entries != end;
         entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      std::error_code ignored;
      if (ContentHash::well_formed(name) && !alive.contains(name)) std::filesystem::remove(entries->path(), ignored);
    }
  } catch (const Error&) {  // a read-only store can still be served
  }
}

std::string chunks_of(LocalCheckpointStore& store, const CheckpointInfo& info, const Manifest& manifest,
                      std::stop_token stop) {
  std::string bytes = ChunkCache::load(store.folder(info.trial), info.digest);
  if (!bytes.empty()) try {
      static_cast<void>(decode_chunks(bytes, manifest));
      return bytes;
    } catch (const Error&) {  // an older format, or damaged
    }
  bytes = encode_chunks(chunk_folder(store.folder(info), manifest, std::move(stop)));
  ChunkCache::keep(store, info.trial, info.digest, bytes);
  return bytes;
}

}  // namespace hypertune::inline v0::detail
