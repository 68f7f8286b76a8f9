// A bare HTTP server of Beast on loopback, for programs that compare servers: prints its address, until it is killed.
#include "net/bare_server.hpp"

#include <fmt/format.h>

#include <cstdio>

int main() {
  hypertune::benchmark::Bare server;
  fmt::print("http://127.0.0.1:{}\n", server.port());
  std::fflush(stdout);
  server.run();
}
