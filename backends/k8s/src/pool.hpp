// Pool: connections for calls, kept open between them.
#pragma once

#include "credential_source.hpp"
#include "http.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s::detail {

/// Used on the io_context's one thread.
class Pool {
 public:
  Pool(asio::io_context& io, ServerDialer& dialer, std::size_t most)
      : dialer_(dialer), free_(io, asio::steady_timer::time_point::max()), most_(most) {}

  /// One of the limited places, given back by the destructor.
  class Place {
   public:
    explicit Place(Pool& pool) : pool_(&pool) {}
    Place(Place&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), wire(std::move(other.wire)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (pool_ != nullptr) pool_->leave();
    }

   private:
    Pool* pool_;

   public:
    std::shared_ptr<Wire> wire;
  };

  /// Waits for its turn to get a place; throws if it is cancelled.
  asio::awaitable<Place> enter();
  /// An idle connection, or a new one.
  asio::awaitable<Dialed> connection(const Credential& credential, double seconds);
  /// Returns a connection that can be used again.
  void keep(std::shared_ptr<Wire> wire);
  void clear() { idle_.clear(); }

 private:
  void leave();

  ServerDialer& dialer_;
  asio::steady_timer free_;  // never expires; cancel_one() wakes one waiter
  std::size_t most_, used_ = 0;
  std::vector<std::shared_ptr<Wire>> idle_;  // the newest at the end
};

}  // namespace hypertune::inline v0::k8s::detail
