// AnySearcher: definitions.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <utility>

namespace hypertune::inline v0 {

AnySearcher::AnySearcher(const AnySearcher& other) : self_(other.self_->clone()) {}
AnySearcher::AnySearcher(AnySearcher&& other) noexcept = default;
AnySearcher& AnySearcher::operator=(AnySearcher other) noexcept {
  self_ = std::move(other.self_);
  return *this;
}
AnySearcher::~AnySearcher() = default;

Suggestion AnySearcher::suggest(const Ask& ask) { return self_->suggest(ask); }

std::string AnySearcher::name() const { return self_->name(); }

std::string AnySearcher::options() const { return self_->options(); }

Suggestion Suggestion::wait() { return Suggestion(Kind::wait); }

Suggestion Suggestion::exhausted() { return Suggestion(Kind::exhausted); }

}  // namespace hypertune::inline v0
