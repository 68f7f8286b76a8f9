// Whether a stream had ended when it was given up.
#pragma once

#include <hypertune/remote/dialer.hpp>

#include <poll.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>

namespace hypertune::inline v0::k8s {

/// Calls `silent` when the stream is given up, and had not ended: whoever is at its other end does not answer.
inline remote::AgentStream watch_for_silence(remote::AgentStream stream, std::function<void()> silent) {
  const auto from = std::make_shared<remote::Descriptor>(::dup(stream.from.get()));
  auto carrier = std::make_shared<remote::StreamCarrier>(std::move(stream.carrier));
  stream.carrier = remote::StreamCarrier([from, carrier, silent = std::move(silent)](double grace) {
    pollfd end{.fd = from->get(), .events = POLLRDHUP, .revents = 0};
    const bool ended = ::poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    if (!ended) silent();
    carrier->end(grace);
  });
  return stream;
}

}  // namespace hypertune::inline v0::k8s
