#include <hypertune/detail/format.hpp>
#include <hypertune/train/connect.hpp>
#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/train/detail/rendezvous_values.hpp>
#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {
namespace {

/// A name that only this process has. The process id is not enough, as processes in different containers may have equal
/// ones; neither is the random number, which a forked child shares with its parent.
std::string this_process() {
  static const std::uint64_t random = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32U | device();
  }();
  return fmt::format("{:016x}-{}", random, ::getpid());
}

/// Rank 0 collects where all ranks are and announces its choice, so that the others wait for one value only.
std::string choose_backend(const GroupPlace& place, Rendezvous& rendezvous, double timeout) {
  const std::string prefix = fmt::format("connect/{}/", place.generation);
  const auto late = [&](const std::vector<int>& ranks) {
    return GroupError(
        GroupError::Kind::late,
        fmt::format("{} did not come to the rendezvous within {} s", detail::describe_ranks(ranks), timeout), ranks);
  };
  if (place.rank != 0) {
    rendezvous.set(prefix + fmt::format("{}", place.rank), this_process());
    static_cast<void>(rendezvous.wait(prefix + "0", 0));  // requested early, so that the value is there below
    auto carrier = rendezvous.wait(prefix + "carrier", timeout);
    if (!carrier) {
      // Rank 0 may have arrived later than this rank and be waiting still. Then another rank is late.
      if (rendezvous.wait(prefix + "0", 0)) carrier = rendezvous.wait(prefix + "carrier", timeout);
      if (!carrier) throw late({0});
    }
    if (!carrier->starts_with("late")) return std::move(*carrier);
    std::vector<int> missing;
    for (std::size_t at = carrier->find(' '); at != std::string::npos; at = carrier->find(' ', at + 1))
      missing.push_back(static_cast<int>(std::strtol(carrier->c_str() + at, nullptr, 10)));
    throw late(missing);
  }
  rendezvous.set(prefix + "0", this_process());
  std::vector<std::string> keys;
  for (int rank = 1; rank < place.size(); ++rank) keys.push_back(prefix + fmt::format("{}", rank));
  const auto processes = detail::rendezvous_values(rendezvous, keys, detail::steady_after(timeout));
  std::vector<int> missing;
  bool one_process = true;
  for (int rank = 1; rank < place.size(); ++rank) {
    const auto& process = processes[static_cast<std::size_t>(rank - 1)];
    if (!process)
      missing.push_back(rank);
    else
      one_process = one_process && *process == this_process();
  }
  std::string carrier = one_process ? "threads" : "gloo";
  if (!missing.empty()) {
    carrier = "late";
    for (const int rank : missing) carrier += fmt::format(" {}", rank);
  }
  rendezvous.set(prefix + "carrier", carrier);
  if (!missing.empty()) throw late(missing);
  return carrier;
}

}  // namespace

Communicator connect(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options) {
  if (place.size() == 1) return std::move(thread_communicators(1, options).front());
  if (choose_backend(place, rendezvous, options.timeout) == "threads")
    return connect_threads(place, rendezvous, options);
  return connect_gloo(place, rendezvous, options);
}

Communicator connect(Context& context, const CommunicatorOptions& options) {
  Group& group = context.group();
  const GroupPlace place = group.join(true);
  const Group::Waiting waits(group);
  Communicator communicator = connect(place, group, options);
  group.on_halt(communicator.abort_function());
  group.waits_while(communicator.busy_function());
  return communicator;
}

}  // namespace hypertune::inline v0
