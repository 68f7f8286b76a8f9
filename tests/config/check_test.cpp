// All complaints about a file at once.
#include "support/test.hpp"

#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/sweep.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

std::vector<std::string> complaints(const std::string& text) {
  return complaints_about_sweep(load_yaml_text(text, "s.yaml"), false);
}

bool has(const std::vector<std::string>& all, std::string_view part) {
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("every mistake of a file is named, not only the first") {
  const auto all = complaints(
      "trial: {command: [./train], comand: 1}\n"  // 1
      "space:\n"
      "  lr: {log_uniform: [0, 1]}\n"  // 3: where the whole space is built
      "  width: {intger: [1, 2]}\n"    // 4
      "  depth: {integer: [1, a]}\n"   // 5
      "metric: loss\n"
      "mode: best\n"                           // 7
      "samples: many\n"                        // 8
      "sampels: 4\n"                           // 9
      "schedule: {type: asha, max_step: 3}\n"  // 10
      "stop: {steps: 0}\n"                     // 11
      "checkpoint:\n"
      "  keep: -1\n"                             // 13
      "  evry: 2\n"                              // 14
      "executor: {type: local, cpus: lots}\n");  // 15
  for (const int line : {1, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15}) {
    INFO("line " << line);
    CHECK(std::count_if(all.begin(), all.end(), [&](const auto& one) {
            return one.starts_with("s.yaml:" + std::to_string(line) + ": ");
          }) == 1);
  }
  CHECK(has(all, "did you mean 'command'?"));
  CHECK(has(all, "s.yaml:8: 'samples' must be a whole number, not 'many'"));
  CHECK(has(all, "s.yaml:13: 'checkpoint.keep' must be 0 or more, not -1"));
}

TEST_CASE("each parameter and each given configuration is a part of its own, on one line too") {
  const auto all = complaints(
      "space: {lr: {loguniform: [1e-3, 1]}, l: {log_uniform: [0, 1]}, p: {int: [5, 1]}, c: {choice: []}, q: {uniform: "
      "[a, b]}, n: null, g: {w: {uniform: [1, 0]}, d: [1]}}\n"
      "trial: {comand: [a], command: [./x], environment: [a], stop_grace: soon}\n"
      "metric: loss\nmode: min\nsamples: 3\n"
      "known: 5\n"                                        // 6
      "start_with: [3, {lr: x}, /there/is/none.csv]\n");  // 7
  for (const char* name : {"'lr'", "'l'", "'p'", "'c'", "'q[0]'", "'n'", "'g.w'", "'g.d'"}) {
    INFO(name);
    const std::string path(name);
    CHECK(std::count_if(all.begin(), all.end(), [&](const auto& one) {
            return one.starts_with("s.yaml:1: ") &&
                   one.find(path.substr(0, path.find('[')).substr(1)) != std::string::npos;
          }) >= 1);
  }
  const auto of_line = [&](int line) {
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& one) { return one.starts_with("s.yaml:" + std::to_string(line) + ": "); });
  };
  CHECK(of_line(1) == 8);
  CHECK(of_line(2) >= 2);
  CHECK(has(all, "unknown key 'comand'"));
  CHECK(has(all, "'trial.environment'"));
  CHECK(has(all, "s.yaml:6: 'known': there is no file"));
  CHECK(has(all, "s.yaml:7: 'start_with[0]': there is no file"));
  CHECK(has(all, "s.yaml:7: 'start_with[2]': there is no file"));
  const auto known = complaints(
      "space: {a: {uniform: [0, 1]}}\ntrial: {command: [./x]}\nmetric: loss\nmode: min\nsamples: 3\n"
      "known:\n  - {params: {a: 7}, metrics: {loss: 1}}\n  - {params: {a: 1}, metrics: {los: 1}}\n  - none.csv\n");
  for (const char* line : {"s.yaml:7: ", "s.yaml:8: ", "s.yaml:9: "}) CHECK(has(known, line));
}

TEST_CASE("what is read is what is not complained of") {
  const std::string sound =
      "trial: {command: [./train]}\nspace: {lr: {log_uniform: [1.0e-4, 1.0]}}\nmetric: loss\nmode: min\nsamples: 3\n";
  CHECK(complaints(sound).empty());
  CHECK(complaints(sound + "start_with: [{lr: 0.1}]\n").empty());
  CHECK(has(complaints(sound + "start_with: [{lr: 7}]\n"), "s.yaml:6: "));
  CHECK(has(complaints("[1, 2]\n"), "this file must be a map"));
  CHECK(has(complaints(""), "this file must be a map"));
  CHECK(has(complaints("space: {a: {uniform: [0, 1]}}\n"), "this file has no 'trial': add it"));
}

TEST_CASE("the shape of a value, with what is below it") {
  const Shape rule = shape::map({required(key("name", shape::text(), "")), key("size", shape::size(), ""),
                                 key("wait", shape::duration(between(1, 60)), "")});
  const Shape file = shape::map({key("rules", shape::either({shape::text(), shape::list(rule)}), ""),
                                 key("counts", shape::entries(shape::whole(at_least(1))), ""),
                                 key("way", shape::word({"up", "down"}, {"upwards"}), ""),
                                 key("maybe", shape::or_empty(shape::boolean()), "")});
  const auto about = [&](const std::string& text) { return complaints_about(load_yaml_text(text, "f"), file); };
  CHECK(about("rules: all\ncounts: {a: 1}\nway: upwards\nmaybe:\n").empty());
  CHECK(about("rules: [{name: a, size: 4GiB, wait: 1m}]\n").empty());
  CHECK(about("rules: {name: a}\n") == std::vector<std::string>{"f:1: 'rules' cannot be a map"});
  CHECK(about("rules: [{size: 4Gi3}, {name: a, wait: 2m}]\n") ==
        std::vector<std::string>{"f:1: 'rules[0].size' must be a size like 500MB or 4GiB, not '4Gi3'",
                                 "f:1: 'rules[0]' has no 'name': add it",
                                 "f:1: 'rules[1].wait' must be 1 s to 1 m, not 2m"});
  CHECK(about("way: don\ncounts: {a: 0, b: 2}\n") ==
        std::vector<std::string>{"f:1: 'way' must be up or down, not 'don': did you mean 'down'?",
                                 "f:2: 'counts.a' must be 1 or more, not 0"});
}
