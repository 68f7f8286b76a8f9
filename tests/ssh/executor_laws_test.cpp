#include "agents.hpp"
#include "support/executor_conformance.hpp"

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("trials on other hosts keep the laws of executors") {
  const Hosts hosts;
  ExecutorTraits traits{.many = 200, .shutdowns = 4};
  traits.damage_copies = [&](const CheckpointInfo& info) {
    for (const auto& folder : hosts.stores()) {
      LocalCheckpointStore store(folder);
      for (const auto& held : store.list(info.trial))
        if (held.digest == info.digest) test::detail::damage(store, held);
    }
  };
  const auto make = [&](Form form) {
    ssh::RemoteOptions options;
    options.program = form == Form::coroutine ? "coroutine" : form == Form::object ? "object" : "reusable";
    return SshExecutor(hosts.pool(2), options);
  };
  executor_conformance(make, traits);
}
