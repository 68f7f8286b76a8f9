#include "support/test.hpp"

#include <hypertune/record/detail/callbacks.hpp>

#include <stdexcept>

namespace ht = hypertune;
namespace {

struct Counter {
  int reports = 0, ends = 0, batches = 0, records = 0;
  ht::Seconds last_time = -1;
  std::filesystem::path directory;
  void on_open(const std::filesystem::path& d) { directory = d; }
  void on_record(const ht::Record&) { ++records; }
  void on_trial_report(const ht::record::TrialReported&, ht::Seconds time) {
    ++reports;
    last_time = time;
  }
  void on_trial_end(const ht::record::TrialEnded&) { ++ends; }
  void on_batch_end() { ++batches; }
};

struct ThrowsAtFirstEnd {
  int* calls;
  void on_trial_end(const ht::record::TrialEnded&) {
    ++*calls;
    throw std::runtime_error("no space in the attic");
  }
  std::string name() const { return "attic"; }
};

struct NoHooks {
  void on_trial_reported(const ht::record::TrialReported&) {}
};

static_assert(ht::Callback<Counter>);
static_assert(ht::Callback<ThrowsAtFirstEnd>);
static_assert(!ht::Callback<NoHooks>);
// What AnyCallback says of NoHooks, and that it does not compile, is tested in tests/trial/rejected.

std::vector<ht::Record> batch() {
  return {{1, 0.5, ht::record::TrialReported{0, 0, 0, {{"loss", 1.0}}}},
          {2, 1.5, ht::record::TrialReported{0, 0, 1, {{"loss", 0.5}}}},
          {3, 2.5, ht::record::TrialEnded{0, ht::TrialState::completed, {}}},
          {4, 3.5, ht::record::HostLost{"a", "it is gone"}}};
}

}  // namespace

TEST_CASE("a callback gets the hooks it has, in order") {
  Counter counter;
  ht::Callbacks callbacks({std::ref(counter)});
  callbacks.open("some/where");
  callbacks.batch(batch());
  callbacks.batch({});
  CHECK(counter.directory == "some/where");
  CHECK(counter.records == 4);
  CHECK(counter.reports == 2);
  CHECK(counter.last_time == 1.5);
  CHECK(counter.ends == 1);
  CHECK(counter.batches == 2);
}

TEST_CASE("a callback that throws is noted once, disabled, and the others go on") {
  Counter counter;
  int calls = 0;
  std::vector<std::string> notices;
  const auto shared = std::make_shared<Counter>();
  ht::Callbacks callbacks({ThrowsAtFirstEnd{&calls}, std::ref(counter), shared},
                          [&](const std::string& text) { notices.push_back(text); });
  callbacks.batch(batch());
  callbacks.batch(batch());
  CHECK(calls == 1);
  CHECK(counter.ends == 2);
  CHECK(shared->ends == 2);
  REQUIRE(notices.size() == 1);
  CHECK_THAT(notices[0], ContainsSubstring("attic") && ContainsSubstring("no space in the attic"));
  CHECK(callbacks.size() == 2);
}
