// An HTTP server on loopback that runs until a signal.
#pragma once

#include <hypertune/net/http_answer.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace hypertune::inline v0::command {

/// Serves `answer` on 127.0.0.1:`port` (0: any free port); calls `ready` with the address before the first request.
void serve(HttpAnswerer answer, SlowRequest slow, std::uint16_t port,
           const std::function<void(const std::string&)>& ready);

}  // namespace hypertune::inline v0::command
