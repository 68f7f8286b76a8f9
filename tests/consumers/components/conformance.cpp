// The laws of hypertune's concepts, asked of a class from outside.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#endif

#include <hypertune/conformance/executor_conformance.hpp>
#include <hypertune/conformance/scheduler_conformance.hpp>
#include <hypertune/conformance/searcher_conformance.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/search/random.hpp>

TEST_CASE("a searcher keeps its laws") {
  hypertune_test::check_searcher([] { return hypertune::Random{}; }, {.trials = 60, .objectives = 1});
}

TEST_CASE("a scheduler keeps its laws") {
  hypertune_test::check_scheduler([] { return hypertune::Fifo{}; });
}
