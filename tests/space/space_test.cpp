#include "support/test.hpp"

#include <hypertune/space/detail/space_changes.hpp>
#include <hypertune/space/space.hpp>

#include <optional>
#include <string>

namespace ht = hypertune;

namespace hypertune_test {
hypertune::Point draw(const hypertune::SearchSpace& space, hypertune::Rng& rng);
}

namespace {

struct Config {
  double lr = -1;
  int hidden = -1;
  std::string optimizer = "none";
  double momentum = 0.25;
  friend bool operator==(const Config&, const Config&) = default;
};

ht::Space<Config> digits() {
  return ht::space<Config>(ht::dim("lr", &Config::lr, ht::log_uniform(1e-4, 1e-1)),
                           ht::dim("hidden", &Config::hidden, ht::log_int(16, 512)),
                           ht::dim("optimizer", &Config::optimizer, ht::choice<std::string>({"sgd", "adam"})),
                           ht::dim("momentum", &Config::momentum, ht::uniform(0.5, 0.99)).when("optimizer", "sgd"));
}

}  // namespace

TEST_CASE("a typed space gives configurations and takes them back") {
  const auto space = digits();
  const ht::SearchSpace& searched = space;
  REQUIRE(searched.size() == 4);
  ht::Rng rng(1);
  int sgd = 0;
  for (int i = 0; i < 500; ++i) {
    const auto point = hypertune_test::draw(searched, rng);
    CHECK(!searched.invalid(point));
    const auto config = space.config(point);
    CHECK((config.lr >= 1e-4 && config.lr <= 1e-1));
    CHECK((config.hidden >= 16 && config.hidden <= 512));
    if (config.optimizer == "sgd") {
      ++sgd;
      CHECK((config.momentum >= 0.5 && config.momentum <= 0.99));
    } else {
      CHECK(config.optimizer == "adam");
      CHECK(config.momentum == 0.25);
      CHECK(!searched.params(point).contains("momentum"));
    }
    CHECK(space.config(space.point(config)) == config);
  }
  CHECK((sgd > 180 && sgd < 320));
}

TEST_CASE("what differs between two spaces is told by parameter and constraint") {
  using ht::detail::space_changes;
  const std::string before =
      "a: {uniform: [0, 1]}\n\"b: c\": {choice: [x, \"y\\\"\"]}\nd: {constant: 1}\nconstraints: [\"a < d\", \"a, "
      "\\\"b\"]\n";
  CHECK(space_changes(before, before).empty());
  CHECK(space_changes("", before).empty());
  const std::string now =
      "d: {constant: 1}\n\"b: c\": {choice: [x]}\ne: {uniform: [0, 1]}\nconstraints: [\"a, \\\"b\", \"a < 2\"]\n";
  CHECK(space_changes(before, now) ==
        std::vector<std::string>{
            "a: {uniform: [0, 1]} is gone", "\"b: c\" was {choice: [x, \"y\\\"\"]} and is {choice: [x]} now",
            "the constraint \"a < d\" is gone", "e: {uniform: [0, 1]} is new", "the constraint \"a < 2\" is new"});
  CHECK(space_changes(before, now, 3) ==
        std::vector<std::string>{"a: {uniform: [0, 1]} is gone",
                                 "\"b: c\" was {choice: [x, \"y\\\"\"]} and is {choice: [x]} now", "3 more changes"});
  // Texts that no version has written.
  for (const std::string odd : {"\"", "\"a", "a", ":", "\"a\"", "constraints: [\"", "constraints: [x]", "\n\n"})
    for (const auto& change : space_changes(odd, before)) CHECK(!change.empty());
}
