// docs/ says what the readers of a sweep's file know: every key, with its default, and nothing else.
#include "support/reference.hpp"

#include "support/test.hpp"
#include "support/yaml_corpus.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/tune/options.hpp>

#include <fmt/format.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

const std::filesystem::path docs = std::filesystem::path(HYPERTUNE_SOURCE_DIR) / "docs";

/// `text` with what a sweep needs besides.
std::string whole(const std::string& text) {
  const auto has = [&](const std::string& key) {
    return text.starts_with(key + ":") || text.find("\n" + key + ":") != std::string::npos;
  };
  std::string all = text;
  if (!has("trial")) all += "trial: {command: [./train]}\n";
  if (!has("space")) all += "space: {lr: {log_uniform: [1.0e-4, 1.0]}}\n";
  if (!has("metric") && !has("objectives")) all += "metric: accuracy\nmode: max\n";
  return all;
}

ht::Sweep read(const std::string& text, const std::string& name) {
  return support::kept("sweep", whole(text),
                       [&] { return ht::sweep_from_yaml(ht::load_yaml_text(whole(text), name), false); });
}

std::set<std::string> types_in(const support::Reference& reference, const std::string& key) {
  std::set<std::string> types;
  for (const auto& [table, rows] : reference.tables)
    if (table.starts_with(key + " ")) types.insert(table.substr(key.size() + 1));
  return types;
}

/// Every algorithm has its table, every option its row, and what the reader takes is what the table says.
void check_algorithms(const std::string& key, const std::string& file, const std::vector<ht::AlgorithmInfo>& known) {
  const auto reference = support::read_reference(docs / file);
  std::set<std::string> types;
  std::set<std::string> common{"type"};
  for (const auto& [type, options] : known) {
    INFO(key << " " << type);
    if (type == key) {
      support::check_options_table(reference, key, options);
      for (const auto& option : options) common.insert(option.name);
      continue;
    }
    types.emplace(type);
    const std::string table = key + " " + std::string(type);
    support::check_options_table(reference, table, options);
    std::set<std::string> expected = common;
    for (const auto& option : options) expected.insert(option.name);
    support::WatchedKeys watched;
    std::string text = key + ": {type: " + std::string(type);
    if (type == "replay") text += ", from: " + (docs / "nowhere").string();
    try {
      read(text + "}\n", std::string(type));
    } catch (const ht::Error&) {
      if (type != "replay") throw;  // there is nothing to replay, but the keys have been looked at
    }
    CHECK(watched.known.at(key) == expected);
  }
  CHECK(types_in(reference, key) == types);
}

}  // namespace

TEST_CASE("the reference of sweeps: every key, and its default") {
  const auto reference = support::read_reference(docs / "sweep.md");
  const auto stopping = support::read_reference(docs / "stopping.md");
  struct Probe {
    const support::Reference& reference;
    const char *table, *path, *text;
  };
  const std::vector<Probe> probes{
      {reference, "sweep", "", ""},
      {reference, "trial", "trial", ""},
      {reference, "trial.repeat", "trial.repeat", "trial: {command: [a], repeat: {times: 2}}\n"},
      {reference, "trial.files.<path>", "trial.files.a", "trial: {command: [a], files: {a: {from: b}}}\n"},
      {reference, "trial.metrics.<metric>", "trial.metrics.accuracy",
       "trial: {command: [a], metrics: {accuracy: {match: a, unit: percent}}}\n"},
      {reference, "trial.step", "trial.step",
       "trial: {command: [a], metrics: {accuracy: a}, step: {match: a, first: 1}}\n"},
      {reference, "resources", "resources", "resources: {cpus: 1}\n"},
      {reference, "workers", "workers", "workers: {min: 2}\n"},
      {reference, "group", "group", "group: {}\n"},
      {reference, "checkpoint", "checkpoint", "checkpoint: {}\n"},
      {reference, "failures", "failures", "failures: {}\n"},
      {reference, "failures.log[]", "failures.log[0]", "failures: {log: [{match: a, do: no_retry}]}\n"},
      {reference, "loggers[] prometheus", "loggers[0]", "loggers: [{type: prometheus, file: a}]\n"},
      {reference, "loggers[] mlflow", "loggers[0]", "loggers: [{type: mlflow, uri: a}]\n"},
      {reference, "known[]", "known[0]", "known: [{params: {lr: 0.1}, metrics: {accuracy: 1}}]\n"},
      {reference, "executor local", "executor", "executor: {type: local}\n"},
      {reference, "executor ssh", "executor", "executor: {type: ssh, hosts: [a]}\n"},
      {reference, "executor slurm", "executor", "executor: {type: slurm}\n"},
      {reference, "executor kubernetes", "executor", "executor: {type: kubernetes, image: a}\n"},
      {reference, "executor.hosts[]", "executor.hosts[0]", "executor: {type: ssh, hosts: [{name: a}]}\n"},
      {reference, "executor.hosts", "executor.hosts", "executor: {type: ssh, hosts: {file: a}}\n"},
      {reference, "executor.file_mounts.<place>", "executor.file_mounts.a",
       "executor: {type: ssh, hosts: [a], file_mounts: {a: {from: b}}}\n"},
      {reference, "executor.transfer", "executor.transfer", "executor: {type: ssh, hosts: [a], transfer: {}}\n"},
      {reference, "executor.transfer.shared", "executor.transfer.shared",
       "executor: {type: ssh, hosts: [a], transfer: {shared: {}}}\n"},
      {stopping, "stop.<metric>", "stop.time_ms", "stop: {time_ms: {at_most: 5}}\n"},
      {stopping, "stop.plateau", "stop.plateau", "stop: {plateau: {}}\n"},
      {stopping, "stop.expected_gain", "stop.expected_gain", "stop: {expected_gain: {}}\n"},
      {stopping, "constraints.<metric>", "constraints.size", "constraints: {size: {at_most: 5}}\n"},
  };
  std::set<std::string> sweep_tables, stopping_tables;
  for (const auto& probe : probes) {
    support::WatchedKeys watched;
    read(probe.text, probe.table);
    support::check_table(probe.reference, probe.table, watched, probe.path);
    (&probe.reference == &reference ? sweep_tables : stopping_tables).insert(probe.table);
  }
  {
    support::WatchedKeys watched;
    read("stop: {}\n", "stop");
    auto expected = watched.known.at("stop");
    expected.insert("<metric>");
    CHECK(stopping.keys("stop") == expected);
    stopping_tables.insert("stop");
  }
  {
    support::WatchedKeys watched;
    read("space: {a: {normal: [0, 1]}, b: {uniform: [0, 1]}}\n", "space");
    std::set<std::string> expected = watched.known.at("space.a");
    CHECK(watched.known.at("space.b").size() + 1 == expected.size());
    expected.erase("normal");
    CHECK(reference.keys("space.<parameter>") == expected);
    sweep_tables.insert("space.<parameter>");
  }
  for (const auto& [table, rows] : reference.tables) CHECK(sweep_tables.contains(table));
  for (const auto& [table, rows] : stopping.tables) CHECK(stopping_tables.contains(table));
}

TEST_CASE("the reference of sweeps: what each key means is what the reader's tables say") {
  namespace hd = ht::detail;
  const auto reference = support::read_reference(docs / "sweep.md");
  const auto stopping = support::read_reference(docs / "stopping.md");
  const std::vector<std::pair<const char*, ht::Keys>> tables{{"sweep", hd::sweep_keys(false)},
                                                             {"trial", hd::trial_keys()},
                                                             {"trial.metrics.<metric>", hd::metric_expression_keys()},
                                                             {"trial.step", hd::step_expression_keys()},
                                                             {"space.<parameter>", hd::parameter_keys()},
                                                             {"resources", hd::resources_keys()},
                                                             {"workers", hd::workers_keys()},
                                                             {"group", hd::group_keys()},
                                                             {"trial.files.<path>", hd::trial_file_keys()},
                                                             {"checkpoint", hd::checkpoint_keys()},
                                                             {"failures", hd::failures_keys()},
                                                             {"trial.repeat", hd::repeat_keys()},
                                                             {"failures.log[]", hd::log_rule_keys()},
                                                             {"known[]", hd::known_keys()},
                                                             {"loggers[] prometheus", hd::prometheus_keys()},
                                                             {"loggers[] mlflow", hd::mlflow_keys()},
                                                             {"executor local", hd::local_keys()},
                                                             {"executor ssh", hd::ssh_keys()},
                                                             {"executor.hosts[]", hd::host_keys()},
                                                             {"executor.hosts", hd::host_source_keys()},
                                                             {"executor.file_mounts.<place>", hd::file_mount_keys()},
                                                             {"executor.transfer", hd::transfer_keys()},
                                                             {"executor.transfer.shared", hd::shared_keys()}};
  for (const auto& [table, keys] : tables) support::check_key_table(reference, table, keys);
  support::check_key_table(stopping, "stop.<metric>", hd::metric_stop_keys());
  support::check_key_table(stopping, "stop.plateau", hd::plateau_keys());
  support::check_key_table(stopping, "stop.expected_gain", hd::expected_gain_keys());
  support::check_key_table(stopping, "constraints.<metric>", hd::constraint_keys());
  support::check_key_table(stopping, "stop", hd::stop_keys());
}

TEST_CASE("the reference of sweeps: defaults that options have") {
  const auto reference = support::read_reference(docs / "sweep.md");
  const ht::Options options;
  const ht::TrialOptions trial;
  const ht::ExecutorOptions executor;
  const ht::SshExecutorOptions ssh;
  const ht::SlurmOptions slurm;
  const ht::KubernetesOptions pods;
  const auto seconds = [](double s) { return fmt::format("{}s", s); };
  const std::vector<std::tuple<std::string, std::string, std::string>> defaults{
      {"sweep", "seed", fmt::to_string(*options.seed)},
      {"sweep", "search", options.search.name().substr(0, 4)},
      {"sweep", "schedule", options.schedule.name()},
      {"sweep", "ordered_timeout", seconds(options.ordered_timeout)},
      {"sweep", "log_limit", fmt::format("{}MiB", options.log_limit >> 20U)},
      {"sweep", "interrupt_grace", seconds(options.interrupt_grace)},
      {"sweep", "resources", fmt::format("{{cpus: {}}}", options.resources.cpus)},
      {"sweep", "failures", fmt::format("{{max_retries: {}}}", options.max_retries)},
      {"sweep", "checkpoint",
       fmt::format("{{every: {}, keep: {}}}", options.checkpoint.every, options.checkpoint.keep)},
      {"sweep", "executor", executor.type},
      {"sweep", "workers", fmt::to_string(options.workers.max)},
      {"workers", "min", fmt::to_string(options.workers.min)},
      {"workers", "placement", to_string(options.workers.strategy)},
      {"trial", "stop_grace", seconds(trial.stop_grace)},
      {"checkpoint", "every", fmt::to_string(options.checkpoint.every)},
      {"checkpoint", "keep", fmt::to_string(options.checkpoint.keep)},
      {"checkpoint", "keep_best", fmt::to_string(options.checkpoint.keep_best)},
      {"failures", "max_retries", fmt::to_string(options.max_retries)},
      {"resources", "gpus", fmt::to_string(static_cast<int>(options.resources.gpus))},
      {"executor local", "isolation", executor.isolation},
      {"executor slurm", "pool", fmt::format("{}..{}", slurm.pool.min, slurm.pool.max)},
      {"executor kubernetes", "pool", fmt::format("{}..{}", pods.pool.min, pods.pool.max)},
      {"executor ssh", "connect_timeout", seconds(ssh.ssh.connect_timeout)},
      {"executor.hosts", "interval", seconds(ssh.hosts.interval)},
      {"executor.transfer", "by_content", ssh.transfer.by_content ? "true" : "false"},
      {"executor.transfer", "direct", ssh.transfer.direct ? "true" : "false"},
      {"executor.transfer", "shared", ssh.transfer.shared ? "true" : "false"},
  };
  for (const auto& [table, key, value] : defaults) {
    INFO(table << ": " << key);
    const auto& rows = reference.tables.at(table);
    const auto row = std::find_if(rows.begin(), rows.end(), [&, &key = key](const auto& r) { return r.key == key; });
    REQUIRE(row != rows.end());
    CHECK(row->fallback == value);
  }
}

TEST_CASE("the reference of sweeps: every domain of a space") {
  const auto reference = support::read_reference(docs / "sweep.md");
  std::set<std::string> documented;
  for (const auto& cell : reference.first_cells.at("domains"))
    for (const auto& code : support::code_in(cell)) documented.insert(code.substr(1, code.find(':') - 1));
  const auto& words = ht::detail::SpaceReader::words;
  CHECK(documented == std::set<std::string>(words.begin(), words.end()));
}

TEST_CASE("the reference of searchers: every one, every key, every default") {
  check_algorithms("search", "searchers.md", ht::known_searchers());
}

TEST_CASE("the reference of schedulers: every one, every key, every default") {
  check_algorithms("schedule", "schedulers.md", ht::known_schedulers());
}

TEST_CASE("the examples of the references are read as they stand") {
  for (const char* file :
       {"sweep.md", "searchers.md", "schedulers.md", "stopping.md", "trainer-protocol.md", "training.md"}) {
    const auto reference = support::read_reference(docs / file);
    CHECK_FALSE(reference.examples.empty());
    for (const auto& [line, text] : reference.examples) {
      INFO(file << ":" << line);
      CHECK_NOTHROW(read(text, fmt::format("{}:{}", file, line)));
    }
  }
}

TEST_CASE("what --resume makes of a change is said of every key and every option") {
  const auto resume = support::read_reference(docs / "resume.md");
  const auto sweep = support::read_reference(docs / "sweep.md");
  std::set<std::string> rows;
  for (const auto& cell : resume.first_cells.at("resume"))
    for (const auto& key : support::code_in(cell)) rows.insert(key);
  for (const auto& key : sweep.keys("sweep")) {
    INFO(key);
    CHECK(rows.contains(key));
  }
  // The members of Options, as the header has them.
  std::ifstream header(std::filesystem::path(HYPERTUNE_SOURCE_DIR) / "include/hypertune/tune/options.hpp");
  std::ifstream page(docs / "resume.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  const std::regex member(R"(^  [A-Za-z_:<>(), &\d]+ (\w+) = .*;.*$)");
  std::string source;
  int members = 0;
  while (std::getline(header, source)) {
    std::smatch match;
    if (source.find("OldName<") != std::string::npos || !std::regex_match(source, match, member)) continue;
    const std::string name = match[1];
    if (name == "resume" || name == "objectives") continue;
    ++members;
    INFO(name);
    CHECK(text.find("`" + name + "`") != std::string::npos);
  }
  CHECK(members >= 20);
}
