// AnyScheduler: definitions.
#pragma once

#include <hypertune/schedule/scheduler.hpp>

#include <utility>

namespace hypertune::inline v0 {

AnyScheduler::AnyScheduler(const AnyScheduler& other) : self_(other.self_->clone()) {}
AnyScheduler::AnyScheduler(AnyScheduler&& other) noexcept = default;
AnyScheduler& AnyScheduler::operator=(AnyScheduler other) noexcept {
  self_ = std::move(other.self_);
  return *this;
}
AnyScheduler::~AnyScheduler() = default;

Choice AnyScheduler::choose_next(const Pool& pool) { return self_->choose_next(pool); }

std::string AnyScheduler::why(TrialId trial, const LossText& losses) const { return self_->why(trial, losses); }

std::string AnyScheduler::name() const { return self_->name(); }

std::string AnyScheduler::options() const { return self_->options(); }

}  // namespace hypertune::inline v0
