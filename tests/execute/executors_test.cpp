#include "support/executor_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/execute/inline.hpp>
#include <hypertune/execute/simulated.hpp>
#include <hypertune/execute/threads.hpp>

#include <limits>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("threads keep the laws of executors") {
  executor_conformance([] { return threads(3); });
}

TEST_CASE("the inline executor keeps the laws of executors") {
  executor_conformance([] { return run_inline(); }, {.concurrent = false});
}

TEST_CASE("the simulated executor keeps the laws of executors", "[simulated]") {
  executor_conformance([] { return simulated({.pool = 3, .speed_spread = 0.5, .straggle_probability = 0.1}); },
                       {.concurrent = false});
}

TEST_CASE("the simulated executor keeps the laws of trials of several workers", "[simulated]") {
  executor_gang_conformance(
      [] { return simulated({.pool = 8, .startup_seconds = 0.3, .speed_spread = 0.5, .straggle_probability = 0.1}); },
      [] {
        std::vector<Outage> outages;
        for (int i = 0; i < 40; ++i) outages.push_back({.worker = i % 8, .at = 3.0 + 2.3 * i, .until = 4.5 + 2.3 * i});
        return simulated({.pool = 8, .startup_seconds = 0.3, .failure_probability = 0.02, .outages = outages});
      });
}

TEST_CASE("commands to the inline executor may come from another thread while it runs a step") {
  const TemporaryDirectory directory;
  constexpr int trials = 300;
  int finished = 0;
  auto executor = run_inline();
  executor.start({.program = planned_program(Form::coroutine),
                  .directory = directory.path(),
                  .sink = [&](const Event& event) { finished += std::holds_alternative<Finished>(event); }});
  std::thread commander([&] {
    const Plan plan{.steps = 0};
    for (int i = 0; i < trials; ++i) {
      Launch go;
      go.trial = i;
      go.attempt = 0;
      go.point = plan.point();
      go.params = Params{{"seed", std::int64_t{plan.seed}}};
      executor.perform(std::move(go));
    }
  });
  while (finished < trials) executor.wait(executor.now() + 1);
  commander.join();
  executor.shutdown();
  CHECK(finished == trials);
}

TEST_CASE("threads form groups that keep the laws") {
  executor_gang_conformance([] { return threads(8); }, nullptr, 60);
}

TEST_CASE("a simulation with options that make no sense is refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto refusal = [](SimulationOptions options) {
    try {
      SimulatedExecutor executor(std::move(options));
    } catch (const Error& error) {
      CHECK(error.code() == Errc::usage);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto with = [&](double SimulationOptions::* option, double value) {
    SimulationOptions options;
    options.*option = value;
    return refusal(options);
  };
  for (const double wrong : {nan, -1.0, inf}) {
    CHECK_THAT(with(&SimulationOptions::startup_seconds, wrong), ContainsSubstring("'startup_seconds' is"));
    CHECK_THAT(with(&SimulationOptions::speed_spread, wrong), ContainsSubstring("'speed_spread' is"));
    CHECK_THAT(with(&SimulationOptions::straggle_factor, wrong), ContainsSubstring("'straggle_factor' is"));
    CHECK_THAT(with(&SimulationOptions::straggle_probability, wrong), ContainsSubstring("must be from 0 to 1"));
    CHECK_THAT(with(&SimulationOptions::failure_probability, wrong), ContainsSubstring("must be from 0 to 1"));
    CHECK_THAT(refusal({.outages = {{.worker = 0, .at = wrong}}}), ContainsSubstring("'outage.at' is"));
    CHECK_THAT(refusal({.outages = {{.worker = 0, .at = 1, .until = wrong}}}), ContainsSubstring("'outage.until' is"));
  }
  CHECK_THAT(with(&SimulationOptions::failure_probability, 1.5), ContainsSubstring("is 1.5, but must be from 0 to 1"));
  CHECK_THAT(refusal({.pool = 0}), ContainsSubstring("at least one worker, not 0"));
  CHECK_THAT(refusal({.outages = {{.worker = 4}}}), ContainsSubstring("of worker 4, but they count from 0 to 3"));
  CHECK(refusal({.failure_probability = 1, .outages = {{.worker = 3, .at = 5, .until = 0}}}) == "accepted");
}
