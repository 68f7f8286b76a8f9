#include "support/test.hpp"
#include "support/thread_ranks.hpp"

#include <hypertune/train/data_parallel.hpp>
#include <hypertune/train/loss_scaler.hpp>

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <latch>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace hypertune;
using hypertune::test::run_ranks;
using hypertune::test::watched_ranks;

namespace {

TEST_CASE("a step is as many collectives as there are buckets, and the first of a generation one more") {
  for (const int steps : {1, 5}) {
    std::atomic<int> performed = 0;
    run_ranks(watched_ranks(2, [&](const auto&) { ++performed; }), [&](const Communicator& communicator) {
      std::vector<float> a(10), b(10), c(100), d(10);
      DataParallel gradients(communicator, {.bucket_bytes = 100, .first_bucket_bytes = 40, .in_place_bytes = 400});
      for (auto* g : {&a, &b, &c, &d}) gradients.add(*g);  // d; c alone; then a and b
      for (int step = 0; step < steps; ++step) gradients.reduce(1);
    });
    CHECK(performed == 2 * (1 + 3 * steps));
  }
}

TEST_CASE("all collectives may be asked for of the communicator of gradients, and of any const one") {
  std::vector<std::vector<float>> seen(2);
  run_ranks(2, [&](const Communicator& ranks) {
    const DataParallel gradients(ranks, {});
    const Communicator& communicator = gradients.communicator();
    const auto rank = static_cast<float>(communicator.rank());
    std::vector<float> sum(1, rank + 1), given(1, rank), mine(1, rank), all(2), part(1);
    communicator.all_reduce(std::span(sum));
    communicator.broadcast(std::span(given), 1);
    communicator.all_gather(mine, std::span(all));
    communicator.reduce_scatter(all, std::span(part), Reduction::max);
    communicator.barrier();
    communicator.perform(collective::Barrier{});
    communicator.start(collective::Barrier{}, [](const std::exception_ptr&) {});
    const float most = communicator.all_reduce(rank, Reduction::max);
    seen[static_cast<std::size_t>(communicator.rank())] = {sum[0], given[0], all[0], all[1], part[0], most};
  });
  CHECK(seen[0] == std::vector<float>{3, 1, 0, 1, 0, 1});
  CHECK(seen[1] == std::vector<float>{3, 1, 0, 1, 1, 1});
}

TEST_CASE("buckets are reduced while the backward pass goes on") {
  std::latch first(2);
  const auto watcher = [&](const collective::Operation& operation) {
    if (std::holds_alternative<collective::AllReduce>(operation)) first.count_down();
  };
  std::vector<float> middle(2);
  run_ranks(watched_ranks(2, watcher), [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<float> early(1, 1), late(4, static_cast<float>(rank));
    DataParallel gradients(communicator, {.in_place_bytes = 16});
    gradients.add(early);
    gradients.add(late);
    gradients.begin(1);
    gradients.ready(1);
    first.wait();  // ends, as this bucket does not wait for the other gradient
    middle[rank] = late[0];
  });
  CHECK(middle == std::vector<float>{0.5F, 0.5F});  // the sum over the unit of two samples
}

TEST_CASE("gradients become ready in several threads at once") {
  std::vector<int> wrong(2);
  run_ranks(2, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<std::vector<float>> g(40, std::vector<float>(5));
    DataParallel gradients(communicator, {.bucket_bytes = 60, .first_bucket_bytes = 20, .in_place_bytes = 1000});
    for (auto& one : g) gradients.add(one);
    for (int step = 0; step < 20; ++step) {
      gradients.begin(1);
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
          for (std::size_t i = t; i < g.size(); i += 3) {
            g[i].assign(5, static_cast<float>(i * (rank + 1)));
            gradients.ready(i);
          }
        });
      threads.clear();
      gradients.reduce(1);
      for (std::size_t i = 0; i < g.size(); ++i)
        if (g[i] != std::vector<float>(5, 1.5F * static_cast<float>(i))) ++wrong[rank];
    }
  });
  CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("a signal of any rank is known to all after the same reduce") {
  const int size = 3;
  for (int who = 0; who <= size; ++who)
    for (const bool empty : {false, true}) {
      std::vector<std::vector<bool>> seen(size);
      run_ranks(size, [&](Communicator communicator) {
        int step = 0;
        std::vector<Half> g(3);
        DataParallelOptions options;
        options.signal = [&] { return step == 1 && communicator.rank() == who; };
        DataParallel gradients(communicator, options);
        if (!empty) gradients.add(g);
        for (; step < 3; ++step) {
          gradients.reduce(communicator.rank() == who ? 0 : 1);
          seen[static_cast<std::size_t>(communicator.rank())].push_back(gradients.signalled());
        }
      });
      for (const auto& rank : seen) CHECK(rank == std::vector<bool>{false, who < size, false});
    }
}

TEST_CASE("counts of samples are exact beyond what the gradients' type holds") {
  run_ranks(2, [&](Communicator communicator) {
    std::vector<BFloat16> g(1, BFloat16(static_cast<float>(communicator.rank())));
    DataParallel gradients(communicator);
    gradients.add(g);
    const std::int64_t samples = communicator.rank() == 0 ? (std::int64_t{1} << 52) + 1 : 7;
    if (gradients.reduce(samples).samples != (std::int64_t{1} << 52) + 8) fail(Errc::corrupt, "miscounted");
  });
}

TEST_CASE("without any samples the gradients are zeros") {
  for (const int size : {1, 2})
    run_ranks(size, [&](Communicator communicator) {
      std::vector<float> g(5, std::numeric_limits<float>::quiet_NaN());
      DataParallel gradients(communicator);
      gradients.add(g);
      const auto& reduced = gradients.reduce(0);
      if (g != std::vector<float>(5) || reduced.samples != 0 || reduced.square != 0) fail(Errc::corrupt, "not zero");
    });
}

TEST_CASE("one worker's gradients are left as they are") {
  DataParallel gradients(thread_communicators(1)[0]);
  std::vector<float> g = {0.1F, 3, -7};
  const auto before = g;
  gradients.add(g);
  gradients.begin(3);
  gradients.ready(0);
  CHECK(gradients.reduce(3).parts == 1);
  CHECK(g == before);
}

TEST_CASE("the norm is clipped to the same on all ranks, and not if it is infinite") {
  std::vector<std::vector<float>> clipped(3);
  std::vector<double> norms(3), infinite(3);
  run_ranks(3, [&](Communicator communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<float> a = {3.0F * static_cast<float>(rank)}, b = {4.0F, 0};
    DataParallel gradients(communicator);
    gradients.add(a);
    gradients.add(b);
    gradients.reduce(1);
    gradients.clip_by_global_norm(100);
    norms[rank] = gradients.clip_by_global_norm(1);
    clipped[rank] = {a[0], b[0], b[1]};
    if (rank == 1) b[1] = std::numeric_limits<float>::infinity();
    gradients.reduce(1);
    const auto kept = a;
    infinite[rank] = gradients.clip_by_global_norm(0.001);
    if (a != kept || gradients.reduced().finite()) fail(Errc::corrupt, "clipped by an infinite norm");
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(norms[rank] == 5);
    CHECK(clipped[rank] == std::vector<float>{0.6F, 0.8F, 0});
    CHECK(std::isinf(infinite[rank]));
  }
}

TEST_CASE("a loss scale is divided out, and stands aside when clipping") {
  DataParallel gradients(thread_communicators(1)[0]);
  std::vector<double> g = {3 * 1024, 4 * 1024};
  gradients.add(g);
  gradients.reduce(8);
  CHECK(gradients.clip_by_global_norm(2.5, 1024) == 5);
  CHECK(g == std::vector<double>{1536, 2048});
  gradients.unscale(1024);
  CHECK(g == std::vector<double>{1.5, 2});
  CHECK(gradients.norm() == 2.5);
  CHECK_THROWS_WITH(gradients.clip_by_global_norm(0), ContainsSubstring("clipping to a norm of 0"));
  CHECK_THROWS_WITH(gradients.unscale(-1), "a loss scale of -1");
}

TEST_CASE("all ranks leave out the same steps, in which one rank's gradients overflowed") {
  std::vector<std::vector<double>> scales(3);
  std::vector<int> taken(3);
  run_ranks(3, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<Half> g(4);
    DataParallel gradients(communicator);
    gradients.add(g);
    LossScaler scaler({.initial = 65536, .interval = 4});
    for (int step = 0; step < 12; ++step) {
      g[2] = Half(static_cast<float>((rank == 1 ? 5.0 : 0.25) * scaler.scale()));
      scales[rank].push_back(scaler.scale());
      if (scaler.update(gradients.reduce(1).finite())) ++taken[rank];
    }
  });
  CHECK(scales[0] == std::vector<double>{65536, 32768, 16384, 8192, 8192, 8192, 8192, 16384, 8192, 8192, 8192, 8192});
  CHECK(taken == std::vector<int>(3, 8));
  for (const auto& rank : scales) CHECK(rank == scales[0]);
}

TEST_CASE("16-bit gradients near their largest do not overflow in the sum, in a first step nor after a short one") {
  std::vector<int> wrong(3);
  run_ranks(3, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<Half> g(1);
    DataParallel gradients(communicator);
    gradients.add(g);
    for (const int samples : {32, 1, 32}) {
      for (int pass = 0; pass < 3; ++pass) {
        g[0] = Half(60000.0F);
        if (pass < 2)
          gradients.accumulate(samples);
        else
          gradients.reduce(samples);
      }
      if (std::abs(static_cast<float>(g[0]) - 60000) > 64) ++wrong[rank];
    }
  });
  CHECK(wrong == std::vector<int>(3, 0));
}

TEST_CASE("all begin with the parameters of rank 0") {
  std::vector<std::vector<double>> weights(3);
  std::vector<std::int64_t> counters(3);
  run_ranks(3, [&](Communicator communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    weights[rank].assign(4, static_cast<double>(rank) + 1);
    counters[rank] = communicator.rank() + 10;
    DataParallel gradients(communicator);
    const std::vector<TensorView> state = {std::span(weights[rank]), std::span(&counters[rank], 1)};
    gradients.broadcast(state);
    gradients.broadcast(std::span(weights[rank]));
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(weights[rank] == std::vector<double>(4, 1));
    CHECK(counters[rank] == 10);
  }
}

TEST_CASE("parts' squares are what a noise scale is estimated from") {
  run_ranks(2, [&](Communicator communicator) {
    std::vector<float> a(2), b(100);
    DataParallel gradients(communicator, {.in_place_bytes = 100, .measure_noise = true});
    gradients.add(a);
    gradients.add(b);
    a[0] = 2;
    b[5] = 1;
    gradients.accumulate(3);  // 5 for 3 samples
    a[0] = 1;
    b[5] = 0;
    const auto reduced = gradients.reduce(communicator.rank() == 0 ? 1 : 0);  // 1 for one
    if (reduced.parts != 3 || reduced.samples != 7 || std::abs(reduced.part_squares - 31.0 / 7) > 1e-12)
      fail(Errc::corrupt, "{} of {} parts", reduced.part_squares, reduced.parts);
  });
}

TEST_CASE("a rank that throws ends the others' step, and a new group goes on with the same objects") {
  for (const bool begun : {false, true}) {
    const auto second = thread_communicators(2);
    std::barrier whole(3);
    std::vector<std::string> caught(3), again(3);
    std::vector<float> after(3);
    const auto errors = run_ranks(thread_communicators(3), [&](Communicator communicator) {
      const auto rank = static_cast<std::size_t>(communicator.rank());
      std::vector<float> a(8), b(8);
      DataParallel gradients(communicator, {.bucket_bytes = 32, .first_bucket_bytes = 32});
      gradients.add(a);
      gradients.add(b);
      gradients.reduce(1);
      whole.arrive_and_wait();
      if (begun) {
        gradients.begin(1);
        gradients.ready(1);
      }
      if (rank == 2) throw std::runtime_error("lost");
      try {
        gradients.reduce(1);
      } catch (const GroupError& e) { caught[rank] = e.what(); }
      try {
        gradients.accumulate(1);
      } catch (const GroupError& e) { again[rank] = e.what(); }
      gradients.rebind(second[rank]);
      a[0] = static_cast<float>(rank);
      after[rank] = gradients.reduce(1).samples == 2 ? a[0] : -1;
    });
    CHECK(errors[2] != nullptr);
    for (const std::size_t rank : {0U, 1U}) {
      CHECK(errors[rank] == nullptr);
      CHECK_FALSE(caught[rank].empty());
      CHECK(again[rank] == caught[rank]);
      CHECK(after[rank] == 0.5F);
    }
  }
}

TEST_CASE("a rank without others has nothing reduced, though it has accumulated") {
  const auto watch = [](const collective::Operation& operation) {
    CHECK_FALSE(std::holds_alternative<collective::AllReduce>(operation));  // it may not know the gradients' memory
  };
  run_ranks(watched_ranks(1, watch), [](const Communicator& communicator) {
    std::vector<float> gradient = {1, 2};
    DataParallel gradients(communicator);
    gradients.add(gradient);
    gradients.accumulate(1);
    gradient = {3, 6};
    CHECK(gradients.reduce(1).samples == 2);
    CHECK(gradient == std::vector<float>{2, 4});
  });
}

TEST_CASE("what was accumulated for a lost step is dropped by rebind and discard") {
  DataParallel gradients(thread_communicators(1)[0]);
  std::vector<float> g = {8};
  gradients.add(g);
  gradients.accumulate(4);
  CHECK_THROWS_WITH(gradients.add(g), ContainsSubstring("in the middle of a step"));
  gradients.rebind(thread_communicators(1)[0]);
  g = {2};
  CHECK(gradients.reduce(4).samples == 4);
  CHECK(g[0] == 2);
  gradients.accumulate(3);
  gradients.discard();
  CHECK(gradients.reduce(1).samples == 1);
  CHECK(g[0] == 2);
}

TEST_CASE("ranks that registered other gradients are told so, all of them") {
  std::vector<std::string> told(2);
  run_ranks(2, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::vector<float> g(rank + 3);
    DataParallel gradients(communicator);
    gradients.add(g);
    try {
      gradients.reduce(1);
    } catch (const Error& e) { told[rank] = e.what(); }
  });
  for (const auto& text : told)
    CHECK_THAT(text, ContainsSubstring("rank 1 has registered other gradients than rank 0"));
}

TEST_CASE("calls that make no sense are refused") {
  bool angry = true;
  DataParallelOptions options;
  options.signal = [&] { return angry ? throw std::runtime_error("angry") : true; };
  DataParallel gradients(thread_communicators(1)[0], options);
  std::vector<float> g = {1}, elsewhere = {2, 3}, other = {4};
  CHECK(gradients.add(g) == 0);
  CHECK_THROWS_WITH(gradients.move(0, std::span(elsewhere)), ContainsSubstring("2 elements in place of 1"));
  CHECK_THROWS_WITH(gradients.move(1, std::span(g)), "gradient 1 of 1");
  gradients.move(0, std::span(other));
  gradients.ready(7);  // without begin() it says nothing
  CHECK_THROWS_WITH(gradients.begin(-1), "a gradient of -1 samples");
  gradients.begin(2);
  CHECK_THROWS_WITH(gradients.begin(2), "begin() again without reduce()");
  CHECK_THROWS_WITH(gradients.accumulate(2), ContainsSubstring("accumulate() after begin()"));
  CHECK_THROWS_WITH(gradients.ready(1), "gradient 1 of 1 is ready");
  gradients.ready(0);
  CHECK_THROWS_WITH(gradients.ready(0), "gradient 0 is ready twice in one step");
  CHECK_THROWS_WITH(gradients.reduce(3), "reduce() of 3 samples after begin() of 2");
  CHECK_THROWS_WITH(gradients.reduce(2), "angry");
  angry = false;
  CHECK(gradients.reduce(2).signalled);
}

}  // namespace
