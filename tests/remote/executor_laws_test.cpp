#include "conforming_hosts.hpp"

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("trials on other hosts keep the laws of executors", "[thorough]") {
  const Hosts hosts;
  ExecutorTraits traits{.many = 200, .shutdowns = 4, .combinations = combinations()};
  traits.damage_copies = [&](const CheckpointInfo& info) { damage_copies(hosts, info); };
  const auto make = [&](Form form) {
    remote::RemoteOptions options;
    options.program = program_of(form);
    return RemoteExecutor(hosts.pool(2), options);
  };
  executor_conformance(make, traits);
}
