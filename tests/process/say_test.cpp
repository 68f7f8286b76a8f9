// Messages to a standard error that nobody reads.
#include "support/test.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/say.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <string>

using namespace hypertune;

TEST_CASE("a reader that has stopped holds nobody up, and is told what it has missed") {
  auto [reads, writes] = hypertune::detail::make_pipe();
  REQUIRE(::fcntl(writes.get(), F_SETFL, O_NONBLOCK) == 0);
  const std::string block(4096, 'x');
  std::size_t filled = 0;
  for (ssize_t wrote = 0; (wrote = ::write(writes.get(), block.data(), block.size())) > 0;)
    filled += static_cast<std::size_t>(wrote);
  REQUIRE(::fcntl(writes.get(), F_SETFL, 0) == 0);  // from here on a write waits
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(writes.get(), STDERR_FILENO);
  hypertune::detail::say("first");
  for (int i = 0; i < 100; ++i) hypertune::detail::say("more");
  std::string heard(filled, '\0');
  std::size_t got = 0;
  while (got < filled) got += static_cast<std::size_t>(::read(reads.get(), heard.data() + got, filled - got));
  hypertune::detail::say("last");
  hypertune::detail::say(std::string(10'000, 'y'));
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  writes = {};
  heard.clear();
  char part[4096];
  for (ssize_t n = 0; (n = ::read(reads.get(), part, sizeof part)) > 0;)
    heard.append(part, static_cast<std::size_t>(n));
  CHECK(heard == "hypertune: messages that nobody read were left out: 101\nlast\n" + std::string(10'000, 'y') + "\n");
}
