// Groups whose workers are on several hosts, some of which are killed.
#include "conforming_hosts.hpp"
#include "support/disturbed_executor.hpp"

#include <hypertune/random.hpp>

#include <cstdint>

using namespace hypertune;
using namespace hypertune::test;

namespace {

RemoteExecutor executor_of(const Hosts& hosts, int count, Form form) {
  remote::RemoteOptions options;
  options.program = program_of(form);
  options.timeouts = {.heartbeat = 2, .connect = 20, .first_delay = 0.02, .max_delay = 0.1, .stable = 60};
  return RemoteExecutor(hosts.pool(count), options);
}

}  // namespace

TEST_CASE("groups on several hosts keep the laws, though hosts are killed", "[thorough]") {
  const Hosts hosts(3);
  constexpr int count = 4;
  const auto kill_a_host = [&](int number) {
    Rng rng = derived_rng(9, {static_cast<std::uint64_t>(number)});
    hosts.kill(Hosts::name(static_cast<int>(uniform01(rng) * count)));
  };
  executor_gang_conformance([&](Form form) { return executor_of(hosts, 3, form); },
                            [&](Form form) { return disturbed(executor_of(hosts, count, form), 15, kill_a_host); }, 80,
                            combinations());
}
