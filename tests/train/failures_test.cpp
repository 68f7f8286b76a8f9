// Ranks that are killed, stopped, never come, leave, abort or ask for something else: the others end and name them.
#include "support/communicator_conformance.hpp"
#include "support/ranks.hpp"
#include "support/test.hpp"

#include <hypertune/train/connect.hpp>
#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>
#include <hypertune/trial/detail/group_address.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ht = hypertune;
using ht::test::place_of;

namespace {

/// A timeout in seconds, longer than a test may take: what does not end before it fails as a test that hangs.
constexpr double beyond_the_test = 3600;

/// Ranks of one process, by a way to connect them.
using Connect = std::function<ht::Communicator(int rank, int size, ht::Rendezvous&, double timeout)>;
struct Carrier {
  std::string name;
  Connect connect;
};
std::vector<Carrier> carriers() {
  std::vector<Carrier> all = {{"threads", [](int rank, int size, ht::Rendezvous& meeting, double timeout) {
                                 return ht::connect_threads(place_of(rank, size), meeting, {.timeout = timeout});
                               }}};
  if (ht::has_gloo())
    all.push_back({"gloo", [](int rank, int size, ht::Rendezvous& meeting, double timeout) {
                     return ht::connect_gloo(place_of(rank, size), meeting, {.timeout = timeout});
                   }});
  return all;
}

std::vector<std::string> run(const Carrier& carrier, int size, double timeout,
                             const std::function<void(int, ht::Communicator&)>& body) {
  ht::test::MemoryRendezvous rendezvous;
  return ht::test::run_threads(size, [&](int rank) {
    auto communicator = carrier.connect(rank, size, rendezvous, timeout);
    body(rank, communicator);
  });
}

bool starts_with(const std::string& text, const std::string& beginning) { return text.rfind(beginning, 0) == 0; }

}  // namespace

TEST_CASE("a rank that never comes makes no other one look so, though answers of the rendezvous take their time") {
  const bool gloo = GENERATE(false, true);
  CAPTURE(gloo);
  ht::test::MemoryRendezvous driver;
  std::vector<std::vector<int>> named(4);
  ht::test::run_threads(4, [&](int rank) {
    if (rank == 1) return;
    ht::test::AskedRendezvous rendezvous(driver);
    try {
      if (gloo)
        ht::connect_gloo(place_of(rank, 4), rendezvous, {.timeout = 1});
      else
        ht::connect(place_of(rank, 4), rendezvous, {.timeout = 1});
    } catch (const ht::GroupError& error) { named[static_cast<std::size_t>(rank)] = error.ranks(); }
  });
  for (const std::size_t rank : {0, 2, 3}) CHECK(named[rank] == std::vector<int>{1});
}

TEST_CASE("A rank that does not come to a collective is named") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    std::promise<void> over;
    const auto wait_over = over.get_future().share();
    std::atomic<int> ended = 0;
    const auto outcomes = run(carrier, 4, 0.5, [&](int rank, ht::Communicator& communicator) {
      communicator.barrier();
      if (rank == 2) {
        wait_over.wait();
        return;
      }
      struct Ended {
        std::atomic<int>& count;
        std::promise<void>& over;
        ~Ended() {
          if (++count == 3) over.set_value();
        }
      } const ending{ended, over};
      std::vector<float> values(1000);
      communicator.all_reduce(std::span(values));
    });
    for (const int rank : {0, 1, 3})
      CHECK(outcomes[static_cast<std::size_t>(rank)] ==
            "late 2: rank 2 did not come to all_reduce of 1000 float32 (sum) within 0.5 s");
    CHECK(outcomes[2].empty());
  }
}

TEST_CASE("A rank that leaves is named, and not for what it still took part in") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    for (int turn = 0; turn < 5; ++turn) {
      const auto outcomes = run(carrier, 3, 20, [&](int rank, ht::Communicator& communicator) {
        std::vector<float> values(100'000, 1.0F);
        communicator.all_reduce(std::span(values));
        if (values.back() != 3.0F) throw std::runtime_error("wrong");
        if (rank == 1) return;
        communicator.barrier();
      });
      CHECK(outcomes[0] == "lost 1: rank 1 left the group");
      CHECK(outcomes[1].empty());
      CHECK(outcomes[2] == "lost 1: rank 1 left the group");
    }
  }
}

TEST_CASE("abort() ends what waits, on all ranks, and what follows") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    const auto outcomes = run(carrier, 3, beyond_the_test, [&](int rank, ht::Communicator& communicator) {
      communicator.barrier();
      if (rank == 2) {
        // Rank 2 is in no collective: only this ends those of the others.
        communicator.abort({ht::GroupError::Kind::changed, "a worker comes"});
        communicator.abort({ht::GroupError::Kind::changed, "a second reason"});
        communicator.barrier();
        return;
      }
      std::vector<float> values(1'000'000);
      try {
        communicator.all_reduce(std::span(values));
      } catch (const ht::GroupError&) { communicator.barrier(); }
    });
    CHECK(outcomes == std::vector<std::string>(3, "changed : a worker comes"));
  }
}

TEST_CASE("abort() from another thread ends a collective that waits") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    std::promise<ht::Communicator*> waits;
    std::thread aborting(
        [future = waits.get_future()]() mutable { future.get()->abort({ht::GroupError::Kind::changed, "enough"}); });
    std::promise<void> over;
    const auto wait_over = over.get_future().share();
    const auto outcomes = run(carrier, 2, 60, [&](int rank, ht::Communicator& communicator) {
      if (rank == 1) return wait_over.wait();  // never comes to the barrier
      waits.set_value(&communicator);
      try {
        communicator.barrier();
      } catch (...) {
        aborting.join();
        over.set_value();
        throw;
      }
    });
    CHECK(outcomes[0] == "changed : enough");
  }
}

TEST_CASE("Ranks that ask for different things are told so") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    const auto outcomes = run(carrier, 3, 0.5, [&](int rank, ht::Communicator& communicator) {
      std::vector<float> values(rank == 1 ? 999 : 1000);
      communicator.all_reduce(std::span(values));
    });
    for (const auto& outcome : outcomes) {
      CHECK_THAT(outcome, ContainsSubstring("asks for all_reduce of 999 float32 (sum)") ||
                              ContainsSubstring("rank 1 for all_reduce of 999 float32 (sum)"));
      CHECK_THAT(outcome, ContainsSubstring("all ranks must ask for the same"));
    }
  }
}

TEST_CASE("Who does not come to the rendezvous is named") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    const bool threads = carrier.name == "threads";
    ht::test::MemoryRendezvous rendezvous;
    const auto outcomes = ht::test::run_threads(4, [&](int rank) {
      if (rank == (threads ? 0 : 1) || (!threads && rank == 3)) return;
      auto communicator = carrier.connect(rank, 4, rendezvous, 0.3);
    });
    CHECK(outcomes[2] == (threads ? "late 0: rank 0 did not come to the rendezvous within 0.3 s"
                                  : "late 1,3: ranks 1 and 3 did not come to the rendezvous within 0.3 s"));
  }
  ht::test::MemoryRendezvous rendezvous;
  const auto outcomes = ht::test::run_threads(4, [&](int rank) {
    if (rank != 2) ht::connect(place_of(rank, 4), rendezvous, {.timeout = 0.3});
  });
  for (const int rank : {0, 1, 3})
    CHECK(outcomes[static_cast<std::size_t>(rank)] == "late 2: rank 2 did not come to the rendezvous within 0.3 s");
}

TEST_CASE("A generation that is over ends the forming of a group") {
  for (const auto& carrier : carriers()) {
    CAPTURE(carrier.name);
    ht::test::MemoryRendezvous rendezvous;
    const auto outcomes = ht::test::run_threads(2, [&](int rank) {
      if (rank == 1)
        carrier.connect(rank, 2, rendezvous, 60);
      else
        rendezvous.end({ht::GroupError::Kind::changed, "a new generation"});
    });
    CHECK(outcomes[1] == "changed : a new generation");
  }
}

TEST_CASE("A rank that is killed is named by all others at once") {
  if (!ht::has_gloo()) return;
  for (const int victim : {0, 2}) {
    CAPTURE(victim);
    ht::test::Processes processes(4, [&](int rank, ht::Rendezvous& rendezvous, const auto& say) {
      auto communicator = ht::connect_gloo(place_of(rank, 4), rendezvous, {.timeout = beyond_the_test});
      std::vector<float> values(2'000'000);
      communicator.all_reduce(std::span(values));
      say("works");
      for (;;) communicator.all_reduce(std::span(values));
    });
    for (int rank = 0; rank < 4; ++rank) CHECK(processes.hear(rank) == "works");
    processes.kill(victim, SIGKILL);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const auto outcome = processes.outcome(rank);
      CAPTURE(rank, outcome);
      CHECK(starts_with(outcome, "lost " + std::to_string(victim) + ": rank"));
    }
  }
}

TEST_CASE("A rank that is stopped is named by all others after the timeout") {
  if (!ht::has_gloo()) return;
  for (int victim = 0; victim < 4; ++victim) {
    CAPTURE(victim);
    ht::test::Processes processes(4, [&](int rank, ht::Rendezvous& rendezvous, const auto& say) {
      auto communicator = ht::connect_gloo(place_of(rank, 4), rendezvous, {.timeout = 1});
      std::vector<float> values(500'000);
      communicator.all_reduce(std::span(values));
      say("works");
      if (victim % 2 == 0 && rank == victim) ::raise(SIGSTOP);  // between collectives; the others are stopped in one
      for (;;) communicator.all_reduce(std::span(values));
    });
    for (int rank = 0; rank < 4; ++rank) CHECK(processes.hear(rank) == "works");
    if (victim % 2 != 0) processes.kill(victim, SIGSTOP);
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      const auto outcome = processes.outcome(rank);
      CAPTURE(rank, outcome);
      CHECK(starts_with(outcome, "late " + std::to_string(victim) + ": rank"));
    }
    // Continued, it finds the group gone.
    processes.kill(victim, SIGCONT);
    CHECK(processes.outcome(victim) != "");
  }
}

TEST_CASE("A rank that was waited for without being late is waited for again") {
  for (const auto& carrier : carriers()) {
    if (carrier.name == "threads") continue;
    // Rank 1 comes after 0.3 of 0.4 s; rank 2 never: rank 0 is over its limit first, and must not name rank 1.
    ht::test::MemoryRendezvous rendezvous;
    std::promise<void> over;
    const auto wait_over = over.get_future().share();
    std::promise<void> nobody;
    const auto late = nobody.get_future().share();
    std::atomic<int> ended = 0;
    const auto outcomes = run(carrier, 3, 0.4, [&](int rank, ht::Communicator& communicator) {
      communicator.barrier();
      if (rank == 1) late.wait_for(std::chrono::milliseconds(300));
      if (rank == 2) {
        wait_over.wait();
        return;
      }
      try {
        communicator.barrier();
      } catch (...) {
        if (++ended == 2) over.set_value();
        throw;
      }
    });
    CHECK(starts_with(outcomes[0], "late 2:"));
    CHECK(starts_with(outcomes[1], "late 2:"));
  }
}

TEST_CASE("A group is formed again by those who are left") {
  if (!ht::has_gloo()) return;
  ht::test::Processes processes(4, [&](int rank, ht::Rendezvous& rendezvous, const auto& say) {
    auto communicator = ht::connect_gloo(place_of(rank, 4, 1), rendezvous, {.timeout = 30});
    std::vector<float> values(10'000, 1.0F);
    communicator.all_reduce(std::span(values));
    say("works");
    try {
      for (;;) communicator.all_reduce(std::span(values), ht::Reduction::max);
    } catch (const ht::GroupError& error) {
      if (error.ranks() != std::vector<int>{1}) throw;
    }
    communicator = ht::connect_gloo(place_of(rank > 1 ? rank - 1 : rank, 3, 2), rendezvous, {.timeout = 30});
    throw std::runtime_error(std::to_string(communicator.all_reduce(communicator.rank())));
  });
  for (int rank = 0; rank < 4; ++rank) CHECK(processes.hear(rank) == "works");
  processes.kill(1, SIGKILL);
  for (const int rank : {0, 2, 3}) CHECK(processes.outcome(rank) == "3");
}

TEST_CASE("Hosts need a network to reach each other by, and addresses in it") {
  if (!ht::has_gloo()) return;
  ht::test::MemoryRendezvous rendezvous;
  auto place = place_of(0, 2);
  place.hosts = {"a", "b"};
  CHECK_THROWS_WITH(ht::connect_gloo(place, rendezvous), ContainsSubstring("group: {network: 10.1.0.0/16}"));
  struct Told {  // as a pod's manifest does it
    explicit Told(const char* address) { ::setenv(ht::detail::group_address_variable, address, 1); }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    ~Told() { ::unsetenv(ht::detail::group_address_variable); }
  };
  {
    const Told told("127.0.0.1");
    ht::test::MemoryRendezvous own;  // another group's addresses are no use to a later one
    const auto outcomes = ht::test::run_threads(2, [&](int rank) {
      auto mine = place;
      mine.rank = rank;
      auto communicator = ht::connect_gloo(mine, own, {.timeout = 20});
      if (communicator.all_reduce(1) != 2) throw std::runtime_error("wrong");
    });
    CHECK(outcomes == std::vector<std::string>(2));
    place.network = "203.0.113.77/32";  // who names one gets it
    CHECK_THROWS_WITH(ht::connect_gloo(place, rendezvous), ContainsSubstring("has no address in group.network"));
    place.network.clear();
  }
  {
    const Told told("pod-7");
    CHECK_THROWS_WITH(ht::connect_gloo(place, rendezvous), ContainsSubstring("'pod-7', which is no address"));
  }
  for (const auto* network : {"10.1.0.0", "10.1.0.0/33", "x/8", "10.1.0.0/"}) {
    place.network = network;
    CHECK_THROWS_WITH(ht::connect_gloo(place, rendezvous), ContainsSubstring("is no network"));
  }
  place.network = "203.0.113.77/32";
  CHECK_THROWS_WITH(ht::connect_gloo(place, rendezvous), ContainsSubstring("host 'a' has no address in group.network"));
  const auto outcomes = ht::test::run_threads(2, [&](int rank) {
    auto mine = place;
    mine.rank = rank;
    mine.network = "127.0.0.0/9";
    auto communicator = ht::connect_gloo(mine, rendezvous, {.timeout = 20});
    if (communicator.all_reduce(1) != 2) throw std::runtime_error("wrong");
  });
  CHECK(outcomes == std::vector<std::string>(2));
}
