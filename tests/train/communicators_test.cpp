// Each communicator keeps the laws of support/communicator_conformance.hpp.
#include "support/communicator_conformance.hpp"
#include "support/ranks.hpp"
#include "support/test.hpp"

#include <hypertune/train/connect.hpp>
#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>

#include <string>
#include <vector>

namespace ht = hypertune;
using ht::test::place_of;

TEST_CASE("Threads are a communicator") {
  const int size = GENERATE(1, 2, 3, 5);
  CAPTURE(size);
  ht::test::MemoryRendezvous rendezvous;
  const auto outcomes = ht::test::run_threads(
      size, [&](int rank) { ht::test::check_communicator(ht::connect_threads(place_of(rank, size), rendezvous)); });
  CHECK(outcomes == std::vector<std::string>(static_cast<std::size_t>(size)));
}

TEST_CASE("Gloo is a communicator among threads") {
  if (!ht::has_gloo()) return;
  const int size = GENERATE(2, 3);
  CAPTURE(size);
  ht::test::MemoryRendezvous rendezvous;
  const auto outcomes = ht::test::run_threads(
      size, [&](int rank) { ht::test::check_communicator(ht::connect_gloo(place_of(rank, size), rendezvous)); });
  CHECK(outcomes == std::vector<std::string>(static_cast<std::size_t>(size)));
}

TEST_CASE("Gloo is a communicator among processes") {
  if (!ht::has_gloo()) return;
  const int size = GENERATE(1, 2, 4, 5);
  CAPTURE(size);
  ht::test::Processes processes(size, [&](int rank, ht::Rendezvous& rendezvous, const auto&) {
    ht::test::check_communicator(ht::connect_gloo(place_of(rank, size), rendezvous));
  });
  for (int rank = 0; rank < size; ++rank) CHECK(processes.outcome(rank) == "");
}

TEST_CASE("connect() takes threads within a process, and Gloo otherwise") {
  CHECK(ht::connect(place_of(0, 1), *std::make_unique<ht::test::MemoryRendezvous>()).name() == "threads");
  ht::test::MemoryRendezvous rendezvous;
  const auto outcomes = ht::test::run_threads(3, [&](int rank) {
    auto communicator = ht::connect(place_of(rank, 3), rendezvous);
    ht::test::same_everywhere(communicator, std::vector<int>{communicator.size()}, "size");
    throw std::runtime_error(communicator.name());
  });
  CHECK(outcomes == std::vector<std::string>(3, "threads"));
  if (!ht::has_gloo()) return;
  ht::test::Processes processes(3, [&](int rank, ht::Rendezvous& meeting, const auto&) {
    auto communicator = ht::connect(place_of(rank, 3), meeting);
    if (communicator.all_reduce(communicator.rank()) != 3) throw std::runtime_error("wrong sum");
    throw std::runtime_error(communicator.name());
  });
  for (int rank = 0; rank < 3; ++rank) CHECK(processes.outcome(rank) == "gloo");
}
