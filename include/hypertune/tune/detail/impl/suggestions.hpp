// Suggestions: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/tune/detail/suggestions.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace hypertune::inline v0 {

void Suggestions::prepare(const SearchSpace& space, const SearchContext& goal) {
  searcher_.prepare(space, goal);
  name_ = searcher_.name();
}

bool Suggestions::defer() {
  deferred_ = !searcher_.cheap();
  return deferred_;
}

void Suggestions::rethrow_named() const {
  try {
    throw;
  } catch (const Error&) { throw; } catch (const std::exception& e) {
    fail(Errc::experiment, "the searcher '{}' failed: {}", name_, e.what());
  } catch (...) { fail(Errc::experiment, "the searcher '{}' failed: it threw what is no std::exception", name_); }
}

Suggestion Suggestions::compute(TrialId trial, std::uint64_t seed) {
  Rng rng = derived_rng(seed, {static_cast<std::uint64_t>(trial), 1});
  return searcher_.suggest({.trial = trial, .rng = rng, .stop = stop_.get_token()});
}

void Suggestions::observe(const Observation& o) {
  if (!deferred_) {
    try {
      return searcher_.observe(o);
    } catch (...) { rethrow_named(); }
  }
  const std::lock_guard guard(mutex_);
  if (lost_ || closed()) return;
  news_.emplace_back(o);
  ++told_;
  if (news_.size() == max_news) work_.notify_one();
}

// A point may miss observations that came while it was computed: computing it again would only delay the waiting slot.
// An answer to wait must be up to date, because otherwise nobody might ask again.
bool Suggestions::fresh(const Answer& answer) const {
  switch (answer.suggestion.kind) {
    case Suggestion::Kind::point: return !answer.offered || answer.told == told_;
    case Suggestion::Kind::wait: return answer.told == told_;
    case Suggestion::Kind::exhausted: break;
  }
  return true;
}

std::optional<Suggestion> Suggestions::suggest(TrialId trial, std::uint64_t seed) {
  if (!deferred_) {
    try {
      return compute(trial, seed);
    } catch (...) { rethrow_named(); }
  }
  const std::lock_guard guard(mutex_);
  if (lost_) std::rethrow_exception(lost_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (auto answer = std::exchange(answer_, std::nullopt); answer && answer->trial == trial && fresh(*answer))
    return std::move(answer->suggestion);
  if (!wanted_ && !working_ && !closed())
    if (auto suggestion = quick_answer(trial, seed)) return suggestion;
  if (!wanted_) {
    wanted_ = Wanted{trial, seed};
    work_.notify_one();
  }
  return std::nullopt;
}

// A change of threads and back would take longer. The mutex is held, so that the worker thread does not begin.
std::optional<Suggestion> Suggestions::quick_answer(TrialId trial, std::uint64_t seed) {
  bool telling = false;
  try {
    try {
      if (!searcher_.quick()) return std::nullopt;
      telling = true;
      for (; !news_.empty(); news_.pop_front()) searcher_.observe(news_.front().view());
      telling = false;
      if (!searcher_.quick()) return std::nullopt;  // the news may have changed that
      return compute(trial, seed);
    } catch (...) { rethrow_named(); }
  } catch (...) {
    if (telling) lost_ = std::current_exception();
    throw;
  }
}

bool Suggestions::has_open_request() {
  const std::lock_guard guard(mutex_);
  return wanted_.has_value();
}

bool Suggestions::wait() {
  std::unique_lock guard(mutex_);
  work_.wait(guard, [this] { return closed() || ((wanted_ || news_.size() >= max_news) && !lost_); });
  return !closed();
}

void Suggestions::tell_news(std::unique_lock<std::mutex>& guard, bool closed_too) {
  while (!news_.empty() && (closed_too || !closed())) {
    const Told one = std::move(news_.front());
    news_.pop_front();
    guard.unlock();
    searcher_.observe(one.view());
    guard.lock();
  }
}

void Suggestions::tell_remaining() {
  std::unique_lock guard(mutex_);
  if (lost_) std::rethrow_exception(lost_);
  try {
    tell_news(guard, true);
  } catch (...) { rethrow_named(); }
}

bool Suggestions::work() {
  std::unique_lock guard(mutex_);
  working_ = true;
  std::optional<Suggestion> suggestion;
  std::exception_ptr error;
  bool asked = false;
  std::uint64_t told = 0;
  try {
    try {
      tell_news(guard, false);
      asked = wanted_ && !closed();
      told = told_;
      if (asked) {
        const Wanted wanted = *wanted_;
        guard.unlock();
        suggestion = compute(wanted.trial, wanted.seed);
        guard.lock();
      }
    } catch (...) { rethrow_named(); }
  } catch (...) {
    if (!guard.owns_lock()) guard.lock();
    error = std::current_exception();
  }
  working_ = false;
  idle_.notify_all();
  if (closed()) return false;
  if (error) (asked ? error_ : lost_) = error;
  if (suggestion && wanted_) answer_ = Answer{wanted_->trial, std::move(*suggestion), told};
  if (asked || error) wanted_.reset();
  return asked || error;
}

void Suggestions::answer_not_taken() {
  const std::lock_guard guard(mutex_);
  if (answer_) answer_->offered = true;
}

void Suggestions::close() {
  stop_.request_stop();  // runs stop callbacks of searchers, so not under the mutex
  const std::lock_guard guard(mutex_);
  work_.notify_all();
}

bool Suggestions::wait_idle(double seconds) {
  std::unique_lock guard(mutex_);
  return idle_.wait_for(guard, std::chrono::duration<double>(seconds), [this] { return !working_; });
}

}  // namespace hypertune::inline v0
