// Copies of checkpoints sent through a stream: files are split into pieces and reassembled.
#pragma once

#include "host_protocol.hpp"

#include <hypertune/checkpoint/detail/manifest.hpp>
#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::remote::detail {

using hypertune::detail::Descriptor;

/// Reads a sealed checkpoint piece by piece. Only one piece is in memory at a time.
class OutgoingCopy {
 public:
  /// Error of kind `corrupt` or `io` if the checkpoint cannot be read.
  OutgoingCopy(LocalCheckpointStore& store, const CheckpointInfo& info, std::uint64_t transfer, Attempt attempt)
      : OutgoingCopy(store.folder(info), info, transfer, attempt) {}
  OutgoingCopy(std::filesystem::path folder, const CheckpointInfo& info, std::uint64_t transfer, Attempt attempt)
      : folder_(std::move(folder)) {
    const auto text = hypertune::detail::read_file(folder_ / Manifest::file_name);
    if (!text) fail(Errc::corrupt, "its manifest cannot be read");
    const Manifest manifest = parse_manifest(*text);
    offer_.transfer = transfer;
    offer_.attempt = attempt;
    offer_.info = info;
    offer_.parent = manifest.parent;
    for (const auto& file : manifest.files) offer_.files.push_back({file.name, file.size});
    root_ = hypertune::detail::open_at(AT_FDCWD, folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!root_) hypertune::detail::fail_io(errno, "open", folder_);
  }

  const wire::Offer& offer() const { return offer_; }
  bool done() const { return at_ == offer_.files.size(); }

  /// The next piece, of at most `max_size` bytes; nullopt: none is left. Error of kind `io` or `corrupt` if a file
  /// cannot be read or has become shorter.
  std::optional<wire::Piece> next(std::size_t max_size = wire::piece_size) {
    while (!done() && offset_ == offer_.files[at_].size) {
      file_ = Descriptor();
      offset_ = 0;
      ++at_;
    }
    if (done()) return std::nullopt;
    const auto& file = offer_.files[at_];
    if (!file_) file_ = hypertune::detail::open_below(root_.get(), file.name);
    if (!file_) hypertune::detail::fail_io(errno, "open", folder_ / file.name);
    wire::Piece piece{offer_.transfer, {}};
    piece.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(max_size, file.size - offset_)));
    const ssize_t n = hypertune::detail::read_some(file_.get(), piece.bytes.data(), piece.bytes.size());
    if (n < 0) hypertune::detail::fail_io(errno, "read", folder_ / file.name);
    if (n == 0) fail(Errc::corrupt, "file '{}' has become shorter", file.name);
    piece.bytes.resize(static_cast<std::size_t>(n));
    offset_ += static_cast<std::uint64_t>(n);
    return piece;
  }

 private:
  std::filesystem::path folder_;
  wire::Offer offer_;
  Descriptor root_, file_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
};

/// Receives a checkpoint piece by piece into a temporary folder, which is removed if the checkpoint stays incomplete.
class IncomingCopy {
 public:
  /// `bound`: maximum total bytes. Throws an Error if the offer cannot be a checkpoint.
  IncomingCopy(LocalCheckpointStore& store, wire::Offer offer, std::uint64_t bound = std::uint64_t{1} << 42U)
      : store_(&store), offer_(std::move(offer)) {
    std::uint64_t bytes = 0;
    std::set<std::string_view> names;
    for (const auto& file : offer_.files) {
      require_manifest_name(file.name);
      if (!names.insert(file.name).second) fail(Errc::protocol, "a checkpoint with two files '{}'", file.name);
      if (file.size > bound || (bytes += file.size) > bound)
        fail(Errc::protocol, "a checkpoint of more than {} bytes", bound);
    }
    if (bytes != offer_.info.bytes) fail(Errc::protocol, "a checkpoint's files and its size do not agree");
    if (!offer_.parent.empty()) require_safe_name(offer_.parent);
    writer_.emplace(store_->begin(offer_.info.trial, offer_.info.steps, offer_.parent));
    open_next();
  }
  IncomingCopy(const IncomingCopy&) = delete;
  IncomingCopy& operator=(const IncomingCopy&) = delete;
  ~IncomingCopy() {
    file_ = Descriptor();
    if (!writer_) return;
    try {
      store_->discard(*writer_);
    } catch (const std::exception&) {}  // recover() removes it later
  }

  /// Error of kind `protocol` for bytes that belong to no file, `io` for errors of the disk.
  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      if (complete()) fail(Errc::protocol, "more bytes than the checkpoint has");
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      const ssize_t n = ::write(file_.get(), bytes.data(), size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) hypertune::detail::fail_io(errno, "write", writer_->directory() / offer_.files[at_].name);
      bytes.remove_prefix(static_cast<std::size_t>(n));
      left_ -= static_cast<std::uint64_t>(n);
      if (left_ == 0) {
        ++at_;
        open_next();
      }
    }
  }
  bool complete() const { return at_ == offer_.files.size(); }
  const wire::Offer& offer() const { return offer_; }

  /// Seals the checkpoint, which reads it again. May be called from any thread. Error of kind `corrupt` if the digest
  /// is not the offered one.
  CheckpointInfo seal() {
    file_ = Descriptor();
    CheckpointWriter writer = std::move(*writer_);
    writer_.reset();
    CheckpointInfo sealed = store_->seal(std::move(writer));
    if (sealed.digest == offer_.info.digest) return sealed;
    store_->drop(sealed);
    fail(Errc::corrupt, "it was damaged on its way: its digest is {}, not {}", sealed.digest, offer_.info.digest);
  }

 private:
  void open_next() {
    file_ = Descriptor();
    for (; at_ < offer_.files.size(); ++at_) {
      const auto path = writer_->file(offer_.files[at_].name);
      file_ = hypertune::detail::open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
      if (!file_) hypertune::detail::fail_io(errno, "create", path);
      left_ = offer_.files[at_].size;
      if (left_ > 0) return;
    }
  }

  LocalCheckpointStore* store_;
  wire::Offer offer_;
  std::optional<CheckpointWriter> writer_;
  Descriptor file_;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;
};

/// Makes another checkpoint of the same content, with its own files.
inline CheckpointInfo duplicate(LocalCheckpointStore& store, const CheckpointInfo& info) {
  OutgoingCopy from(store, info, 0, 0);
  IncomingCopy to(store, from.offer());
  while (const auto piece = from.next()) to.add(piece->bytes);
  return to.seal();
}

/// Whether a checkpoint's folder is in `store`. If the disk gives an error it counts as there: what reads it then finds
/// out.
inline bool may_be_there(const LocalCheckpointStore& store, const CheckpointInfo& info) {
  std::error_code error;
  return std::filesystem::exists(store.folder(info), error) || error;
}

/// The sealed checkpoint in `store` with the same content, under any name.
inline std::optional<CheckpointInfo> find_copy(LocalCheckpointStore& store, const CheckpointInfo& wanted) {
  for (auto& held : store.list(wanted.trial))
    if (held.steps == wanted.steps && held.digest == wanted.digest) return std::move(held);
  return std::nullopt;
}

}  // namespace hypertune::inline v0::remote::detail
