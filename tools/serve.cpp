// The only file of the command that includes an HTTP server.
#include "serve.hpp"

#include <hypertune/serve/loopback_server.hpp>

namespace hypertune::inline v0::command {

void serve(HttpAnswerer answer, SlowRequest slow, std::uint16_t port,
           const std::function<void(const std::string&)>& ready) {
  LoopbackServer server(std::move(answer), port, std::move(slow));
  ready(server.address());
  server.run();
}

}  // namespace hypertune::inline v0::command
