// find_checkpoint(), list_checkpoints() and other functions for checkpoints here or on a server.

#include "chunk_index.hpp"
#include "folder_text.hpp"
#include "partial_checkpoint.hpp"
#include "peer.hpp"

#include <hypertune/checkpoint/detail/folder_seal.hpp>
#include <hypertune/checkpoint/transfer/fetch.hpp>
#include <hypertune/detail/remove_tree.hpp>
#include <hypertune/error.hpp>

#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;

/// Opens a connection to a peer for one request.
template <class Ask>
auto ask_once(const Endpoint& at, std::chrono::milliseconds timeout, const std::stop_token& stop, const Ask& ask) {
  const detail::NoSigpipe no_signal;
  detail::Alarm stopped;
  const std::stop_callback<std::function<void()>> on_stop(stop, [&] { stopped.raise(); });
  detail::Peer peer(at, {.connect = timeout, .stall = timeout, .deadline = Clock::now() + timeout},
                    stopped.descriptor());
  return ask(peer);
}

}  // namespace

std::optional<CheckpointInfo> find_checkpoint(LocalCheckpointStore& store, const CheckpointInfo& info, bool deep) {
  const auto found = detail::find_by_digest(store, info);
  if (!found) return std::nullopt;
  const auto folder = store.folder(found->info);
  if (!detail::files_present(folder, found->manifest)) return std::nullopt;
  if (deep) try {
      detail::verify_files(folder, found->manifest);
    } catch (const Error&) { return std::nullopt; }
  return found->info;
}

std::optional<CheckpointInfo> find_checkpoint(const Endpoint& at, const CheckpointInfo& info, bool deep,
                                              std::chrono::milliseconds timeout, std::stop_token stop) {
  detail::require_checkpoint_info(info);
  if (const auto* shared = std::get_if<SharedDirectory>(&at.address)) {
    LocalCheckpointStore store(shared->path);
    return find_checkpoint(store, info, deep);
  }
  return ask_once(at, timeout, stop, [&](detail::Peer& peer) -> std::optional<CheckpointInfo> {
    peer.ask({.what = detail::Target::What::status, .info = info, .deep = deep});
    const auto head = peer.receive_head(8192);
    if (head.status == 404 || head.status == 410) return std::nullopt;
    if (head.status != 200 || head.zstd) peer.refuse(head);
    std::string line = peer.receive_text(head);
    if (!line.empty() && line.back() == '\n') line.pop_back();
    auto there = detail::parse_info_line(line, info.trial);
    if (!there || there->digest != info.digest)
      fail(Errc::protocol, "{}: its answer is not about the checkpoint that was asked for", at.to_string());
    return there;
  });
}

std::vector<CheckpointInfo> list_checkpoints(const Endpoint& at, TrialId trial, std::chrono::milliseconds timeout,
                                             std::stop_token stop) {
  if (trial < 0) fail(Errc::usage, "no trial has the number {}", trial);
  if (const auto* shared = std::get_if<SharedDirectory>(&at.address))
    return LocalCheckpointStore(shared->path).list(trial);
  return ask_once(at, timeout, stop, [&](detail::Peer& peer) {
    CheckpointInfo info;
    info.trial = trial;
    const std::string lines =
        peer.fetch({.what = detail::Target::What::list, .info = info, .deep = false}, std::uint64_t{16} << 20U).second;
    std::vector<CheckpointInfo> list;
    for (std::string_view left = lines; !left.empty();) {
      const auto end = left.find('\n');
      auto entry = end == std::string_view::npos ? std::nullopt : detail::parse_info_line(left.substr(0, end), trial);
      if (!entry) fail(Errc::protocol, "{}: its answer is no list of checkpoints", at.to_string());
      list.push_back(std::move(*entry));
      left.remove_prefix(end + 1);
    }
    return list;
  });
}

std::string content_id(LocalCheckpointStore& store, const CheckpointInfo& info, std::stop_token stop) {
  detail::require_checkpoint_info(info);
  const auto found = detail::find_by_digest(store, info);
  if (!found) fail(Errc::corrupt, "checkpoint '{}' of trial {} is not here, or damaged", info.name, info.trial);
  return detail::content_id_of(found->text, detail::chunks_of(store, found->info, found->manifest, std::move(stop)));
}

void drop_partial_fetches(LocalCheckpointStore& store, TrialId trial, std::chrono::seconds age) {
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  if (store.is_link(trial)) return;
  for (std::filesystem::directory_iterator at(store.folder(trial), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    constexpr std::string_view prefix = ".incoming-";
    if (!name.starts_with(prefix) || !detail::ContentHash::well_formed(std::string_view(name).substr(prefix.size())))
      continue;
    std::error_code gone;
    const auto touched = std::filesystem::last_write_time(at->path() / "progress", gone);
    if (!gone && now - touched < age) continue;
    const detail::Descriptor lock = detail::open_at(AT_FDCWD, (at->path() / "lock").c_str(), O_RDWR | O_NOFOLLOW);
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;  // a fetch is running
    detail::remove_tree(at->path());
  }
}

}  // namespace hypertune::inline v0
