// Words of earlier versions in YAML.
#include "support/test.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>
#include <hypertune/config/yaml_json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

const Shape sweep_file = sweep_shape(false);

std::string whole(const std::string& more) {
  const std::string trial = more.starts_with("trial:") ? "" : "trial: {command: [./train]}\n";
  return more + trial + "space: {x: {uniform: [0, 1]}}\nmetric: loss\nmode: min\nsamples: 3\n";
}

std::string json_of(const Node& node) {
  hypertune::detail::JsonWriter json(hypertune::detail::JsonFor::file);
  return hypertune::detail::put_yaml(json, node).take();
}

std::string refusal(const Node& node) {
  try {
    sweep_from_yaml(node, false);
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

}  // namespace

TEST_CASE("each old word means what its present one does, and a line names both") {
  struct Row {
    const char *old_text, *text, *says;
  };
  const std::vector<Row> rows{
      {"executor: {workers: threads}\n", "executor: {isolation: thread}\n",
       "'executor.workers' is now 'executor.isolation'; 'executor.isolation: threads' is now 'executor.isolation: "
       "thread'"},
      {"executor: {type: local, workers: processes}\n", "executor: {type: local, isolation: process}\n",
       "'executor.workers' is now 'executor.isolation'; 'executor.isolation: processes' is now 'executor.isolation: "
       "process'"},
      {"executor: {type: slurm, workers: 1..32}\n", "executor: {type: slurm, pool: 1..32}\n",
       "'executor.workers' is now 'executor.pool'"},
      {"executor: {type: kubernetes, image: a, workers: 3}\n", "executor: {type: kubernetes, image: a, pool: 3}\n",
       "'executor.workers' is now 'executor.pool'"},
      {"hang_limit: 60s\n", "hang_timeout: 60s\n", "'hang_limit' is now 'hang_timeout'"},
      {"ordered_patience: 2m\n", "ordered_timeout: 2m\n", "'ordered_patience' is now 'ordered_timeout'"},
      {"executor: {type: kubernetes, image: a, group_patience: 3m}\n",
       "executor: {type: kubernetes, image: a, group_timeout: 3m}\n",
       "'executor.group_patience' is now 'executor.group_timeout'"},
      {"executor: {type: ssh, hosts: [a], silence: 30s}\n",
       "executor: {type: ssh, hosts: [a], heartbeat_timeout: 30s}\n",
       "'executor.silence' is now 'executor.heartbeat_timeout'"},
      {"executor: {type: slurm, idle: 5m}\n", "executor: {type: slurm, idle_timeout: 5m}\n",
       "'executor.idle' is now 'executor.idle_timeout'"},
      {"trial: {command: [a], grace: 3s}\n", "trial: {command: [a], stop_grace: 3s}\n",
       "'trial.grace' is now 'trial.stop_grace'"},
      {"executor: {type: slurm, notice: 90s}\n", "executor: {type: slurm, save_grace: 90s}\n",
       "'executor.notice' is now 'executor.save_grace'"},
      {"loggers: [jsonl, {type: mlflow, uri: 'http://a', patience: 2s}]\n",
       "loggers: [jsonl, {type: mlflow, uri: 'http://a', flush_grace: 2s}]\n",
       "'loggers[1].patience' is now 'loggers[1].flush_grace'"},
      {"executor: {type: kubernetes, image: a, memory: 1GiB, most_memory: 8GiB}\n",
       "executor: {type: kubernetes, image: a, memory: 1GiB, max_memory: 8GiB}\n",
       "'executor.most_memory' is now 'executor.max_memory'"},
      {"failures: {max: 2}\n", "failures: {max_retries: 2}\n", "'failures.max' is now 'failures.max_retries'"},
  };
  std::ifstream page(std::filesystem::path(HYPERTUNE_SOURCE_DIR) / "docs/sweep.md");
  std::string docs((std::istreambuf_iterator<char>(page)), {});
  docs.erase(0, docs.find("## Words of earlier versions"));
  std::set<std::string> tried;
  for (const auto& row : rows) {
    INFO(row.old_text);
    const Node old = load_yaml_text(whole(row.old_text), "s.yaml");
    std::string said;
    const Node present = with_present_words(old, sweep_file, [&](const std::string& line) {
      REQUIRE(line.starts_with("s.yaml:1: "));
      said += (said.empty() ? "" : "; ") + line.substr(10);
    });
    CHECK(said == row.says);
    CHECK(json_of(present) == json_of(load_yaml_text(whole(row.text), "s.yaml")));
    CHECK(refusal(old) == "no error");
    CHECK(complaints_about_sweep(old, false).empty());
    for (const auto& word : hypertune::detail::old_words)
      if (said.find(std::string(word.before) + "' is now '") != std::string::npos &&
          said.find(std::string(word.now) + "'") != std::string::npos)
        tried.insert(std::string(word.before) + " " + std::string(word.now));
  }
  for (const auto& word : hypertune::detail::old_words) {
    INFO(word.before << " is now " << word.now);
    if (word.taken) {
      CHECK(docs.find(std::string(word.before)) != std::string::npos);
      CHECK(docs.find(std::string(word.now)) != std::string::npos);
    }
    CHECK(tried.contains(std::string(word.before) + " " + std::string(word.now)) == word.taken);
  }
}

TEST_CASE("old words that a map has no use for, or that mean something else there, stay as they are") {
  for (const char* text :
       {"workers: {min: 2, max: 3}\n", "stop: {grace: {at_most: 5}}\n", "schedule: {type: patience, patience: 3}\n",
        "trial: {command: [a], environment: {grace: b}}\n", "attributes: {hang_limit: 3}\n",
        "stop: {plateau: {patience: 3}}\n"}) {
    INFO(text);
    const Node node = load_yaml_text(whole(text), "s.yaml");
    CHECK(json_of(with_present_words(node, sweep_file, [](const std::string& line) { FAIL(line); })) == json_of(node));
    CHECK(refusal(node) == "no error");
  }
}

TEST_CASE("a word by its old and by its present name: one too many, unless the command line gives one of them") {
  const Node both = load_yaml_text(whole("hang_timeout: 1s\nhang_limit: 2s\n"), "s.yaml");
  CHECK(refusal(both) == "s.yaml:2: 'hang_limit' is now 'hang_timeout', which is given, too: remove one of the two");
  for (const auto& [file, set] : {std::pair("hang_timeout: 1s\n", "hang_limit=2s"),
                                  {"hang_limit: 1s\n", "hang_timeout=2s"},
                                  {"hang_limit: 1s\n", "hang_limit=2s"}})
    CHECK(sweep_from_yaml(with_override(load_yaml_text(whole(file), "s.yaml"), set), false).options.hang_timeout == 2);
  const Node set = with_override(load_yaml_text(whole(""), "s.yaml"), "executor.workers=threads");
  std::string said;
  with_present_words(set, sweep_file, [&](const std::string& line) { said += line + "\n"; });
  CHECK(said ==
        "--set executor.workers=threads: 'executor.workers' is now 'executor.isolation'\n"
        "--set executor.workers=threads: 'executor.isolation: threads' is now 'executor.isolation: thread'\n");
}

TEST_CASE("options of C++ by their old names, under their present ones") {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  Options options{.max_failures = 2, .hang_limit = 5, .ordered_patience = 7};
  SlurmOptions slurm{.notice = 90, .silence = 20};
  KubernetesOptions pods;
  pods.most_memory = 1U << 30U;
  pods.idle = 5;
#pragma GCC diagnostic pop
  options.take_old_names();
  CHECK(options.max_retries == 2);
  CHECK(options.hang_timeout == 5);
  CHECK(options.ordered_timeout == 7);
  options.max_retries = 3;
  options.take_old_names();
  CHECK(options.max_retries == 3);
  slurm.take_old_names();
  CHECK(slurm.save_grace == 90);
  CHECK(slurm.heartbeat_timeout == 20);
  CHECK(slurm.idle_timeout == 60);
  pods.take_old_names();
  CHECK(pods.max_memory == 1U << 30U);
  CHECK(pods.idle_timeout == 5);
}
