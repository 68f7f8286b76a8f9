// Part of hypertune::k8s.
#include "pool.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace hypertune::inline v0::k8s::detail {

namespace {
/// Seconds; shorter than servers and proxies keep idle connections open.
constexpr double longest_idle = 30;
}  // namespace

asio::awaitable<Pool::Place> Pool::enter() {
  const auto cancellation = co_await asio::this_coro::cancellation_state;
  while (used_ >= most_) {
    error_code woken;
    co_await free_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    if (cancellation.cancelled() != asio::cancellation_type::none) {
      free_.cancel_one();  // the wake-up may have been meant for this waiter: pass it on
      throw_cancelled();
    }
  }
  ++used_;
  co_return Place(*this);
}

void Pool::leave() {
  --used_;
  free_.cancel_one();
}

asio::awaitable<Dialed> Pool::connection(const Credential& credential, double seconds) {
  const double now = hypertune::detail::steady_seconds();
  std::erase_if(idle_, [&](const auto& wire) {
    return now - wire->used_at > longest_idle || wire->tls() != credential.tls.get() || wire->stale();
  });
  Dialed dialed;
  if (!idle_.empty()) {
    dialed.wire = std::move(idle_.back());
    idle_.pop_back();
    co_return dialed;
  }
  dialed = co_await dialer_.dial(credential.tls, seconds);
  co_return dialed;
}

void Pool::keep(std::shared_ptr<Wire> wire) {
  wire->expires_never();
  wire->used_at = hypertune::detail::steady_seconds();
  if (idle_.size() < most_) idle_.push_back(std::move(wire));
}

}  // namespace hypertune::inline v0::k8s::detail
