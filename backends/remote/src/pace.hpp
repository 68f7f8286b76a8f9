// Pace: the rate limit for data that is not sent by a CheckpointServer.
#pragma once

#include "channel.hpp"
#include "host_protocol.hpp"

#include <hypertune/checkpoint/transfer/token_bucket.hpp>

#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace hypertune::inline v0::remote::detail {

/// Limits the pieces of one connection. The rate may be shared with other connections and servers. Must be used on the
/// io_context's one thread.
class Pace : public std::enable_shared_from_this<Pace> {
 public:
  Pace(asio::io_context& io, std::shared_ptr<TokenBucket> rate) : rate_(std::move(rate)), timer_(io) {}

  /// Whether a piece may be sent now. If not, the channel is asked again when it may.
  bool ready(const std::shared_ptr<Channel>& channel) {
    if (TokenBucket::Clock::now() >= until_) return true;
    if (std::exchange(waiting_, true)) return false;
    timer_.expires_at(until_);
    timer_.async_wait([self = weak_from_this(), whose = std::weak_ptr(channel)](boost::system::error_code error) {
      const auto pace = self.lock();
      const auto there = whose.lock();
      if (error || !pace || !there) return;
      pace->waiting_ = false;
      there->poke();
    });
    return false;
  }
  /// Maximum size of the next piece.
  std::size_t max_piece() const { return static_cast<std::size_t>(rate_->slice(wire::piece_size)); }
  /// A piece is being sent.
  void took(std::size_t bytes) { until_ = rate_->take(bytes); }

 private:
  std::shared_ptr<TokenBucket> rate_;
  asio::steady_timer timer_;
  TokenBucket::Clock::time_point until_{};
  bool waiting_ = false;
};

}  // namespace hypertune::inline v0::remote::detail
