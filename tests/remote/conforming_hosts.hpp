// What the laws of executors need to know of played hosts.
#pragma once

#include "agents.hpp"
#include "support/combinations.hpp"
#include "support/executor_conformance.hpp"

#include <string>

namespace hypertune::inline v0::test {

/// The agent's program that plays trials of this form.
inline std::string program_of(Form form) {
  return form == Form::coroutine ? "coroutine" : form == Form::object ? "object" : "reusable";
}

/// Damages what hosts have of a checkpoint.
inline void damage_copies(const Hosts& hosts, const CheckpointInfo& info) {
  for (const auto& folder : hosts.stores()) {
    LocalCheckpointStore store(folder);
    for (const auto& held : store.list(info.trial))
      if (held.digest == info.digest) conformance::damage(store, held);
  }
}

}  // namespace hypertune::inline v0::test
