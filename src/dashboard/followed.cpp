#include "followed.hpp"

#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <vector>

namespace hypertune::inline v0::dashboard {

namespace {

constexpr std::int64_t at_once = 4096;  // most records read in one go, before others may look at the view
constexpr auto ask_every = std::chrono::seconds(5);
constexpr double patience = 0.5;

}  // namespace

Followed::Brief Followed::brief() const {
  const std::lock_guard guard(mutex_);
  if (error_ || view_ == nullptr) return {view_ == nullptr ? 0 : view_->version(), "unreadable"};
  return {view_->version(), view_->status.state};
}

std::string Followed::error_text() const {
  const std::lock_guard guard(mutex_);
  return error_ ? error_->what() : "";
}

void Followed::close() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
  }
  begun_.notify_all();
}

void Followed::vanished() const {
  fail(Errc::io, "the experiment's folder '{}' has vanished, or its journal; what is shown was read before",
       folder.string());
}

void Followed::throw_error() const {
  if (error_) throw *error_;
  fail(Errc::busy, "the experiment in '{}' is about to be read: ask again", folder.string());
}

std::optional<Followed::Identity> Followed::identity() const {
  struct stat status{};
  if (::stat(journal_path(folder).c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_dev, status.st_ino};
}

void Followed::restart() {
  reader_.reset();
  settled_ = false;
  const auto now = identity();
  auto reader = std::make_unique<JournalReader>(folder);
  auto fresh = std::make_unique<view::ExperimentView>(folder);
  fresh->status.state = "reading";
  fresh->journal_records = reader->last();
  reader_ = std::move(reader);
  read_from_ = now.value_or(Identity());
  const std::lock_guard guard(mutex_);
  view_ = std::move(fresh);
  error_.reset();
}

void Followed::set_error(const Error& error) {
  reader_.reset();
  settled_ = false;
  const std::lock_guard guard(mutex_);
  begun_.notify_all();
  if (expected_ && view_ == nullptr && error.code() == Errc::input) return;  // it has not begun yet
  error_ = error;
  if (view_ != nullptr) {
    view_->status = {.state = "unreadable", .why = error.what()};
    view_->journal_records = 0;
  }
}

bool Followed::read() {
  try {
    if (reader_ == nullptr) {
      const auto now = identity();
      bool known = false;
      {
        const std::lock_guard guard(mutex_);
        known = view_ != nullptr;
      }
      if (known && !now) vanished();
      const bool same = known && *now == read_from_;
      if (same)
        reader_ = std::make_unique<JournalReader>(folder);  // it was unreadable for a while
      else
        restart();
    }
    const std::int64_t last = reader_->last();
    std::unique_lock guard(mutex_);
    error_.reset();
    const std::int64_t from = view_->version() + 1;
    view_->journal_records = last;
    guard.unlock();
    if (last + 1 < from) {  // another experiment now has the same file
      restart();
      return true;
    }
    std::int64_t taken = 0;
    if (last >= from) {
      settled_ = false;
      reader_->read(
          [&](const Record& record) {
            if (!guard.owns_lock()) guard.lock();
            view_->add(record);
            ++taken;
            if (taken % 2048 == 0 && taken < at_once) guard.unlock();
            return taken < at_once;
          },
          from);
    }
    if (guard.owns_lock()) guard.unlock();
    if (from == 1 && taken > 0) begun_.notify_all();
    if (taken >= at_once) return true;
    if (!settled_) check_state();
    return false;
  } catch (const Error& error) { set_error(error); } catch (const std::exception& error) {
    set_error(Error(Errc::io, error.what()));
  }
  return false;
}

view::ExperimentStatus Followed::status(bool driven) const {
  ExperimentInfo info;
  {
    const std::lock_guard guard(mutex_);
    info = view_->results().experiment();
  }
  view::ExperimentStatus status;
  status.why = info.why;
  if (info.ended) {
    status.state = info.interrupted ? "interrupted" : "ended";
    return status;
  }
  if (driven) {
    status.state = paused_ ? "paused" : "running";
    return status;
  }
  status.why = exit_reason_of(folder);
  status.state = status.why.empty() ? "killed" : "failed";
  return status;
}

void Followed::check_state() {
  try {
    const auto now = identity();
    if (!now) {
      const std::unique_lock guard(mutex_);
      if (view_ == nullptr) return;  // not begun, or read() reports the error
      vanished();
    }
    if (reader_ == nullptr) return;
    if (*now != read_from_) return restart();
    const bool driven = driver_of(folder).has_value();
    // The end of an experiment or of its driver can be judged only when the last record is read. Without a driver no
    // record follows.
    const std::int64_t last = reader_->last();
    {
      const std::lock_guard guard(mutex_);
      if (view_->version() != last) {
        if (driven && view_->status.state == "reading") view_->status.state = "running";
        return;
      }
    }
    if (driven && std::chrono::steady_clock::now() - asked_ > ask_every) {
      asked_ = std::chrono::steady_clock::now();
      paused_ = ask_why(folder, {}, patience).paused;
    }
    auto next = status(driven);
    const std::lock_guard guard(mutex_);
    view_->status = std::move(next);
    view_->settle(driven);
    settled_ = true;
  } catch (const Error& error) { set_error(error); } catch (const std::exception& error) {
    set_error(Error(Errc::io, error.what()));
  }
}

}  // namespace hypertune::inline v0::dashboard
