// ServedCheckpoints: the checkpoints that a server has opened, and the computation of their chunk lists.
#include "served_checkpoints.hpp"

#include "chunk_index.hpp"

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>

#include <algorithm>

namespace hypertune::inline v0::detail {

Served::Served(LocalCheckpointStore s, Found f)
    : store(std::move(s)),
      found(std::move(f)),
      layout(found.manifest),
      directory(open_at(AT_FDCWD, store.folder(found.info).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {}

bool Served::in_place() const {
  struct stat now{}, then{};
  return directory && ::fstat(directory.get(), &then) == 0 && ::lstat(store.folder(found.info).c_str(), &now) == 0 &&
         now.st_dev == then.st_dev && now.st_ino == then.st_ino;
}

std::shared_ptr<Served> ServedCheckpoints::find(const CheckpointInfo& info) {
  std::shared_ptr<Served> known;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it)
      if ((*it)->found.info.trial == info.trial && (*it)->found.info.digest == info.digest) {
        known = *it;
        recent_.splice(recent_.begin(), recent_, it);
        break;
      }
  }
  if (known && known->in_place()) return known;
  std::shared_ptr<Served> fresh;
  for (LocalCheckpointStore& store : stores_) {
    auto found = find_by_digest(store, info);
    if (!found) continue;
    fresh = std::make_shared<Served>(store, std::move(*found));
    if (fresh->in_place()) break;
    fresh.reset();
  }
  const std::lock_guard lock(mutex_);
  if (known) std::erase(recent_, known);
  if (!fresh) return nullptr;
  recent_.push_front(fresh);
  if (recent_.size() > capacity) recent_.pop_back();
  return fresh;
}

std::vector<CheckpointInfo> ServedCheckpoints::list(TrialId trial) {
  std::vector<CheckpointInfo> all;
  for (LocalCheckpointStore& store : stores_)
    for (CheckpointInfo& info : store.list(trial)) all.push_back(std::move(info));
  hypertune::detail::stable_sort(all.begin(), all.end(),
                                 [](const CheckpointInfo& a, const CheckpointInfo& b) { return a.steps > b.steps; });
  return all;
}

// The mutex must be held.
void ServedCheckpoints::ask(const std::shared_ptr<Served>& served) {
  if (served->state != Served::Chunks::unknown || stopped_) return;
  served->state = Served::Chunks::asked_for;
  queue_.push_back(served);
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  work_.notify_one();
}

void ServedCheckpoints::prepare(const std::shared_ptr<Served>& served) {
  const std::lock_guard lock(mutex_);
  ask(served);
}

std::shared_ptr<const std::string> ServedCheckpoints::chunks(const std::shared_ptr<Served>& served,
                                                             std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ask(served);
  done_.wait_for(lock, patience, [&] { return stopped_ || served->state != Served::Chunks::asked_for; });
  if (served->state == Served::Chunks::failed) {
    served->state = Served::Chunks::unknown;  // the next request tries again
    fail(Errc::corrupt, "{}", served->error);
  }
  return served->chunks;
}

void ServedCheckpoints::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, stop, [&] { return !queue_.empty(); });
    if (stop.stop_requested()) return;
    const auto served = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::shared_ptr<const std::string> chunks;
    std::string error;
    try {
      chunks = std::make_shared<const std::string>(
          chunks_of(served->store, served->found.info, served->found.manifest, stop));
    } catch (const std::exception& e) { error = e.what(); } catch (...) {
      error = "unknown error";
    }
    lock.lock();
    served->state = chunks ? Served::Chunks::known : Served::Chunks::failed;
    served->chunks = std::move(chunks);
    served->error = std::move(error);
    done_.notify_all();
  }
}

void ServedCheckpoints::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  done_.notify_all();
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace hypertune::inline v0::detail
