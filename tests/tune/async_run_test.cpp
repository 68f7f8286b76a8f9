// An experiment as an Asio operation, and its cancellation.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/tune/async_run.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace ht = hypertune;
namespace asio = boost::asio;

namespace {

struct Config {
  double x = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.search = ht::Random{};
  o.samples = 4;
  o.concurrency = 2;
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  return o;
}

std::atomic<int> endless_steps{0};
ht::Training endless(Config config) {
  for (;;) {
    ++endless_steps;
    endless_steps.notify_all();
    co_yield ht::report("value", config.x);
  }
}
void wait_for_a_step() {
  const int before = endless_steps;
  endless_steps.wait(before);
}

}  // namespace

TEST_CASE("an experiment completes on the handler's executor") {
  TemporaryDirectory directory;
  asio::io_context io;
  auto tuner = ht::make_tuner(line, [](Config config) { return config.x; }, options(directory));
  std::optional<ht::Results> results;
  std::thread::id thread;
  tuner.async_run(asio::bind_executor(io, [&](std::exception_ptr error, ht::Results found) {
    CHECK_FALSE(error);
    results = std::move(found);
    thread = std::this_thread::get_id();
  }));
  io.run();  // has work until then
  REQUIRE(results);
  CHECK(results->count(ht::TrialState::completed) == 4);
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("an experiment as a future") {
  TemporaryDirectory directory;
  SECTION("gives its results") {
    auto tuner = ht::make_tuner(line, [](Config config) { return config.x; }, options(directory));
    CHECK(tuner.async_run(asio::use_future).get().size() == 4);
    CHECK_THROWS_WITH(tuner.run(), Catch::Contains("runs once"));
  }
  SECTION("throws what run() would throw, with its text") {
    auto wrong = options(directory);
    wrong.samples = -1;
    auto tuner = ht::make_tuner(line, [](Config config) { return config.x; }, wrong);
    asio::thread_pool completing(1);
    auto future = tuner.async_run(asio::bind_executor(completing, asio::use_future));
    std::exception_ptr error;
    try {
      future.get();
    } catch (...) { error = std::current_exception(); }
    // The thread that completes has the error as well. If it gave it back last, ThreadSanitizer would see a race with
    // what is read here: the count of an exception_ptr is kept within libstdc++, which is not instrumented.
    completing.join();
    CHECK(ht::error_code_of(error) == ht::Errc::usage);
    CHECK_THROWS_WITH(std::rethrow_exception(error), Catch::Contains("samples"));
  }
}

TEST_CASE("a cancelled experiment completes with what it has") {
  TemporaryDirectory directory;
  const auto type = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::total);
  asio::io_context io;
  asio::cancellation_signal cancel;
  auto tuner = ht::make_tuner(line, endless, options(directory));
  std::optional<ht::Results> results;
  tuner.async_run(asio::bind_cancellation_slot(
      cancel.slot(), asio::bind_executor(io, [&](std::exception_ptr error, ht::Results found) {
        CHECK_FALSE(error);
        results = std::move(found);
      })));
  wait_for_a_step();
  cancel.emit(type);
  io.run();
  REQUIRE(results);
  CHECK(results->experiment().interrupted);
  CHECK(results->experiment().reports > 0);
}

TEST_CASE("a stop that is requested of a token ends run()") {
  TemporaryDirectory directory;
  auto tuner = ht::make_tuner(line, endless, options(directory));
  std::stop_source source;
  std::jthread other([&] {
    wait_for_a_step();
    source.request_stop();
  });
  const auto results = tuner.run(source.get_token());
  CHECK(results.experiment().interrupted);
}

TEST_CASE("a Tuner that is destroyed ends its experiment") {
  TemporaryDirectory directory;
  asio::io_context io;
  bool completed = false;
  {
    auto tuner = ht::make_tuner(line, endless, options(directory));
    tuner.async_run(asio::bind_executor(io, [&](std::exception_ptr, ht::Results) { completed = true; }));
    wait_for_a_step();
  }
  CHECK_FALSE(completed);
  io.run();
  CHECK(completed);
}

TEST_CASE("error codes and formatters") {
  const std::error_code code = ht::Errc::resources;
  CHECK(code.category().name() == std::string("hypertune"));
  CHECK(code.message() == "resources");
  CHECK(code != ht::Errc::usage);
  CHECK_FALSE(ht::error_code_of(nullptr));
  CHECK(ht::error_code_of(std::make_exception_ptr(std::runtime_error("x"))) == ht::Errc::experiment);
  CHECK(fmt::format("{} {:>8}|{}", ht::Errc::io, ht::TrialState::failed, ht::Decision::stop) == "io   failed|stop");
  CHECK(fmt::format("{}", ht::maximize("accuracy")) == "accuracy (max)");
  CHECK(fmt::format("{}", ht::report("loss", 0.5, "time", 2).at(3)) == "step 3: loss=0.5 time=2");
  CHECK(fmt::format("{}", ht::Resources{.cpus = 2, .gpus = 0.5}) == "2 cpus, 0.5 gpus");
  CHECK(fmt::format("{}", ht::Resources{.cpus = 0}) == "nothing");
  CHECK(fmt::format("{}", line.search_space()) == line.search_space().describe());
  TemporaryDirectory directory;
  auto wanted = options(directory);
  wanted.samples = 1;
  const auto results = ht::tune(line, [](Config) { return 1.5; }, wanted);
  CHECK(fmt::format("{}", results) == fmt::format("1 trial: 1 completed; best: {}", results.best()));
  CHECK(fmt::format("{}", ht::Results()) == "0 trials");
}
