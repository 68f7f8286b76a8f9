#include "experiments.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/record/journal_schema.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

namespace hypertune::inline v0::dashboard {

namespace fs = std::filesystem;

namespace {

constexpr int max_depth = 4;
constexpr std::size_t max_folders = 20'000, max_experiments = 1'000;
constexpr auto round_every = std::chrono::seconds(2);
constexpr int pause_ms = 100;  // between two reads of a growing journal

std::string id_of(const fs::path& root, const fs::path& folder) {
  auto relative = folder.lexically_relative(root).generic_string();
  if (!relative.empty() && relative != ".") return relative;
  auto name = folder.filename().string();
  if (name.empty()) name = folder.parent_path().filename().string();
  return name.empty() ? "experiment" : name;
}

}  // namespace

Experiments::Experiments(std::vector<fs::path> roots, bool expected)
    : expected_(expected),
      watches_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  std::error_code none;
  for (const auto& root : roots) {
    if (!expected && !fs::is_directory(root, none))
      fail(Errc::usage, "there is no folder '{}': name an experiment's, or one that has experiments below it",
           root.string());
    roots_.push_back(fs::absolute(root).lexically_normal());
  }
  if (wake_.get() < 0) fail(Errc::io, "cannot make an eventfd: too many open files?");
  scan();
}

Experiments::~Experiments() { stop(); }

void Experiments::follow(Changed changed) {
  changed_ = std::move(changed);
  const detail::SignalBlock block;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Experiments::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
  thread_.join();
  for (const auto& one : all()) one->close();
}

std::vector<std::shared_ptr<Followed>> Experiments::all() const {
  const std::lock_guard guard(mutex_);
  std::vector<std::shared_ptr<Followed>> list;
  for (const auto& [folder, one] : all_) list.push_back(one);
  return list;
}

std::shared_ptr<Followed> Experiments::find(const std::string& id) const {
  const std::lock_guard guard(mutex_);
  if (id.empty() && all_.size() == 1) return all_.begin()->second;
  for (const auto& [folder, one] : all_)
    if (one->id == id) return one;
  return nullptr;
}

void Experiments::find_experiments(const fs::path& root, const fs::path& folder, int depth, std::size_t& left,
                                   std::map<fs::path, std::string>& found) {
  if (left == 0 || found.size() >= max_experiments) return;
  --left;
  if (has_journal(folder) || (expected_ && depth == 0)) {
    found.emplace(folder, id_of(root, folder));
    return;
  }
  watch(folder, false);
  if (depth == max_depth) return;
  std::error_code error;
  for (fs::directory_iterator entries(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && entries != end; entries.increment(error)) {
    std::error_code none;
    if (entries->is_directory(none) && !entries->is_symlink(none) &&
        !entries->path().filename().string().starts_with('.'))
      find_experiments(root, entries->path(), depth + 1, left, found);
  }
}

void Experiments::watch(const fs::path& folder, bool experiment) {
  if (watches_.get() < 0) return;
  // A folder that turns out to be an experiment is watched again, now for writes too.
  if (const auto before = watched_folders_.find(folder);
      before != watched_folders_.end() && before->second >= experiment)
    return;
  constexpr std::uint32_t of_folder =
      IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  const int number =
      ::inotify_add_watch(watches_.get(), folder.c_str(), of_folder | (experiment ? IN_MODIFY | IN_CLOSE_WRITE : 0U));
  if (number < 0) return;  // too many watches: the periodic scan finds changes
  watched_[number] = folder;
  watched_folders_[folder] = experiment;
}

// Finds the experiments. Returns whether the set has changed.
bool Experiments::scan() {
  std::map<fs::path, std::string> found;
  std::size_t left = max_folders;
  for (const auto& root : roots_) find_experiments(root, root, 0, left, found);
  bool changed = false;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [folder, id] : found) {
      if (all_.contains(folder)) continue;
      std::string own = id;
      for (int i = 2; !ids_.insert(own).second; ++i) own = id + "-" + std::to_string(i);
      all_.emplace(folder, std::make_shared<Followed>(own, folder, expected_));
      changed = true;
    }
    for (auto one = all_.begin(); one != all_.end();) {
      // An experiment that was named as a root stays, and is shown as vanished.
      if (found.contains(one->first) || std::find(roots_.begin(), roots_.end(), one->first) != roots_.end()) {
        ++one;
        continue;
      }
      ids_.erase(one->second->id);
      one = all_.erase(one);
      changed = true;
    }
  }
  for (const auto& [folder, id] : found) watch(folder, true);
  return changed;
}

// Reads the events of inotify and notes the changed folders. Returns whether there was any event.
bool Experiments::drain_watches() {
  alignas(inotify_event) std::array<char, 16384> buffer;
  bool any = false;
  for (;;) {
    const ssize_t size = ::read(watches_.get(), buffer.data(), buffer.size());
    if (size <= 0) return any;
    any = true;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) folders_changed_ = true;
      const auto watched = watched_.find(event->wd);
      if (watched == watched_.end()) continue;
      if (all_.contains(watched->second)) changed_experiments_.insert(watched->second);
      if ((event->mask & (IN_MODIFY | IN_CLOSE_WRITE)) == 0) folders_changed_ = true;
      if ((event->mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) {
        if ((event->mask & IN_MOVE_SELF) != 0) ::inotify_rm_watch(watches_.get(), event->wd);
        watched_folders_.erase(watched->second);
        watched_.erase(watched);
      }
    }
  }
}

void Experiments::wait(int milliseconds, bool watching) {
  std::array<pollfd, 2> polled{pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = watches_.get(), .events = POLLIN, .revents = 0}};
  ::poll(polled.data(), watching && watches_.get() >= 0 ? 2 : 1, milliseconds);
}

// What it cannot read is an experiment's state. Should anything else fail (there is no memory), it begins anew.
void Experiments::run(const std::stop_token& stop) {
  // A low priority, so that the experiment itself runs first.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  bool told = false;
  while (!stop.stop_requested()) try {
      follow_all(stop);
    } catch (const std::exception& error) {
      if (!std::exchange(told, true))
        detail::say(std::string("hypertune: the page's experiments cannot be read, tries again: ") + error.what());
      wait(static_cast<int>(std::chrono::milliseconds(round_every).count()), false);
    }
}

void Experiments::follow_all(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  std::map<const Followed*, Followed::Brief> told;
  std::set<std::shared_ptr<Followed>> unread;
  auto round = Clock::now();
  for (const auto& one : all()) unread.insert(one);
  while (!stop.stop_requested()) {
    drain_watches();
    const bool due = Clock::now() >= round;
    if (std::exchange(folders_changed_, false) || due) {
      const auto before = all();
      if (scan()) {
        for (const auto& one : all())
          if (std::find(before.begin(), before.end(), one) == before.end()) unread.insert(one);
        std::set<const Followed*> kept;
        for (const auto& one : all()) kept.insert(one.get());
        std::erase_if(told, [&](const auto& one) { return !kept.contains(one.first); });
        changed_("");
      }
    }
    for (const auto& one : all())
      if (due || changed_experiments_.contains(one->folder)) {
        if (due) one->check_state();
        unread.insert(one);
      }
    changed_experiments_.clear();
    if (due) round = Clock::now() + round_every;
    std::set<std::shared_ptr<Followed>> rest;
    for (const auto& one : unread) {
      if (stop.stop_requested()) return;
      if (one->read()) rest.insert(one);
      auto brief = one->brief();
      if (auto& before = told[one.get()]; before != brief) {
        before = brief;
        changed_(one->id);
      }
    }
    unread = std::move(rest);
    if (!unread.empty()) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(round - Clock::now()).count();
    wait(static_cast<int>(std::max<std::int64_t>(0, left)), true);
    if (!stop.stop_requested()) wait(pause_ms, false);  // changes that arrive meanwhile are read together
  }
}

}  // namespace hypertune::inline v0::dashboard
