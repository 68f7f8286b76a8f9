// Detects streams that went silent without ending.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/remote/dialer.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace hypertune::inline v0::k8s {

/// Calls `silent` if the stream is given up and then does not end within the grace period: the other end does not
/// answer.
inline remote::AgentStream watch_for_silence(remote::AgentStream stream, std::function<void()> silent) {
  const auto from = std::make_shared<remote::Descriptor>(::dup(stream.from.get()));
  auto carrier = std::make_shared<remote::StreamCarrier>(std::move(stream.carrier));
  stream.carrier = remote::StreamCarrier([from, carrier, silent = std::move(silent)](double grace) {
    pollfd end{.fd = from->get(), .events = POLLRDHUP, .revents = 0};
    const auto begin = hypertune::detail::steady_seconds();
    const int ms = static_cast<int>(std::clamp(grace, 0.0, 600.0) * 1000);
    const bool ended = ::poll(&end, 1, ms) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (!ended) silent();
    carrier->end(std::max(0.0, grace - (hypertune::detail::steady_seconds() - begin)));
  });
  return stream;
}

}  // namespace hypertune::inline v0::k8s
