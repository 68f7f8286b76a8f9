// Names as MLflow takes them: allowed, readable, and never two alike.
#include "support/test.hpp"

#include <run_updates.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;
namespace mlflow = ht::detail::mlflow;

namespace {

bool allowed(std::string_view key) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-. :/").find(c) != std::string_view::npos;
  };
  return !key.empty() && key.size() <= 250 && std::all_of(key.begin(), key.end(), fine);
}

}  // namespace

TEST_CASE("a name that MLflow takes is its own key") {
  for (const char* name : {"loss", "val/top 5", "a.b-c_d:e", "x/y/z", "_"}) CHECK(mlflow::key_text(name) == name);
  CHECK(mlflow::key_text(std::string(250, 'k')) == std::string(250, 'k'));
}

TEST_CASE("names that differ have keys that differ, and MLflow takes each of them") {
  const std::string stem(249, 'k');
  const std::vector<std::string> names{"ä",
                                       "ö",
                                       "_",
                                       "__",
                                       "a%",
                                       "a#",
                                       "a_",
                                       "größe",
                                       "grösse",
                                       "/a",
                                       "_a",
                                       ".a",
                                       "a/",
                                       "a//b",
                                       "a/_b",
                                       "a/.b",
                                       "\xff",
                                       "\xfe",
                                       "",
                                       stem + "ab",
                                       stem + "ac",
                                       stem + "ä",
                                       stem + "ö",
                                       stem + "a",
                                       "\xf0\x9f\xa6\x84",
                                       "\xf0\x9f\x94\xa5",
                                       "a\n",
                                       "a\t",
                                       "a/../b"};
  std::set<std::string> keys;
  for (const auto& name : names) {
    const std::string key = mlflow::key_text(name);
    INFO(name << " is " << key);
    CHECK(allowed(key));
    CHECK(keys.insert(key).second);
    CHECK(mlflow::key_text(name) == key);
  }
  // As a resumption and the documentation have it.
  CHECK(mlflow::key_text("größe") == "gr____e-55e8ea76");
}

TEST_CASE("what is said of a trial has a key for each parameter and metric") {
  mlflow::RunUpdates updates;
  updates.add({1, 1, ht::record::TrialCreated{0, {}, ht::Params{{"ä", 1.0}, {"ö", 2.0}}}});
  updates.add({2, 2, ht::record::TrialReported{0, 0, 0, {{"größe", 0.5}, {"größer", 0.25}}}});
  updates.add({3, 3, ht::record::AttributesSet{0, {{"ü", std::string("x")}, {"ß", std::string("y")}}}});
  const auto& run = updates.runs().at(0);
  REQUIRE(run.params.size() == 2);
  CHECK(run.params[0].first != run.params[1].first);
  REQUIRE(run.metrics.size() == 2);
  CHECK(run.metrics[0].key != run.metrics[1].key);
  CHECK(run.tags.count(mlflow::key_text("ü")) == 1);
  CHECK(run.tags.at(mlflow::key_text("ß")) == "y");
}
