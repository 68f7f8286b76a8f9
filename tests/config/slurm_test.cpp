// executor: {type: slurm, …}
#include "executor_sweeps.hpp"
#include "support/test.hpp"

#include <hypertune/config/override.hpp>

#include <random>
#include <string>

using namespace hypertune;
using executor_sweeps::complaint;
using executor_sweeps::read;

TEST_CASE("the slurm executor: every key") {
  const auto slurm =
      *read(
           "executor: {type: slurm, pool: 2..32, partition: gpu, account: lab, qos: low, time: 4h, "
           "cpus: 4, gres: 'gpu:a100:2', memory: 8GiB, jobs: own, save_grace: 90s, idle_timeout: 5m, "
           "heartbeat_timeout: 20s, "
           "workdir: /work, args: [--constraint=big, --nice], transfer: {direct: true, network: 10.1.0.0/16}}\n")
           .executor.slurm;
  CHECK(slurm.pool == PoolSize{2, 32});
  CHECK(slurm.partition == "gpu");
  CHECK(slurm.account == "lab");
  CHECK(slurm.qos == "low");
  CHECK(slurm.time == 4 * 3600);
  CHECK(slurm.cpus == 4);
  CHECK(slurm.gres == "gpu:a100:2");
  CHECK(slurm.memory == std::uint64_t{8} << 30U);
  CHECK(slurm.jobs == SlurmOptions::Jobs::own);
  CHECK(slurm.save_grace == 90);
  CHECK(slurm.idle_timeout == 300);
  CHECK(slurm.heartbeat_timeout == 20);
  CHECK(slurm.workdir == "/work");
  CHECK(slurm.args == std::vector<std::string>{"--constraint=big", "--nice"});
  CHECK(slurm.transfer.direct);
  CHECK(slurm.transfer.network == "10.1.0.0/16");
  const auto shared = read("executor: {type: slurm, transfer: {shared: /scratch}}\n").executor.slurm->transfer.shared;
  REQUIRE(shared);
  CHECK(shared->on_hosts == "/scratch");
  CHECK(read("executor: slurm\n").executor.slurm->pool == PoolSize{1, 8});
  CHECK(read("executor: {type: slurm, pool: 3}\n").executor.slurm->pool == PoolSize{1, 3});
  CHECK(read("executor: {type: slurm, pool: 0..3}\n").executor.slurm->pool == PoolSize{0, 3});
}

TEST_CASE("a trial has its worker of slurm for itself, unless it says what it takes") {
  const auto whole = read("executor: {type: slurm, cpus: 4, gres: 'gpu:2'}\n").options.resources;
  CHECK(whole.cpus == 4);
  CHECK(whole.gpus == 2);
  const auto part = read("resources: {cpus: 2, gpus: 1}\nexecutor: {type: slurm, cpus: 4, gres: 'gpu:2'}\n");
  CHECK(part.options.resources.cpus == 2);
  CHECK(part.options.resources.gpus == 1);
  CHECK(read("concurrency: 2\nexecutor: {type: slurm, cpus: 4}\n").options.resources.cpus == 4);
}

TEST_CASE("what is wrong with the slurm executor is said with its line") {
  CHECK_THAT(complaint("executor: {type: slurm, partitions: gpu}\n"), ContainsSubstring("'partition'"));
  CHECK_THAT(complaint("executor: {type: slurm, transfer: {direct: true}}\n"), ContainsSubstring("needs 'network'"));
  CHECK_THAT(complaint("executor: {type: slurm, pool: many}\n"), ContainsSubstring("must be like 1..32"));
  CHECK_THAT(complaint("executor: {type: slurm, pool: 4..2}\n"), ContainsSubstring("pool is 4..2"));
  CHECK_THAT(complaint("executor: {type: slurm, pool: 1..99999}\n"), ContainsSubstring("up to 4096"));
  CHECK_THAT(complaint("executor:\n  type: slurm\n  cpus: 0\n"), ContainsSubstring("s.yaml:8"));
  CHECK_THAT(complaint("executor: {type: slurm, jobs: new}\n"), ContainsSubstring("there are auto, own"));
  CHECK_THAT(complaint("executor: {type: slurm, time: 2m, save_grace: 3m}\n"), ContainsSubstring("less than 'time'"));
  CHECK_THAT(complaint("executor: {type: slurm, args: [--pty]}\n"), ContainsSubstring("hypertune sets itself"));
  CHECK_THAT(complaint("executor: slrum\n"), ContainsSubstring("slurm"));
}

TEST_CASE("a worker's time may be in Slurm's own notation, and what is no time is named as it was written") {
  const auto time = [](const std::string& text) {
    return read("executor: {type: slurm, time: '" + text + "'}\n").executor.slurm->time;
  };
  CHECK(time("4h") == 4 * 3600);
  CHECK(time("4:00:00") == 4 * 3600);
  CHECK(time("30:00") == 30 * 60);
  CHECK(time("1-12") == 36 * 3600);
  CHECK(time("1-12:30") == 36.5 * 3600);
  CHECK(time("2-12:00:00") == 60 * 3600);
  CHECK(time("120") == 120);  // as other durations: seconds
  CHECK(read("executor: {type: slurm, time: 4:00:00}\n").executor.slurm->time == 4 * 3600);
  CHECK_THAT(complaint("executor: {type: slurm, time: 30s}\n"),
             ContainsSubstring("is 30s, but must be 0 or from 1m to 365d"));
  CHECK_THAT(complaint("executor: {type: slurm, time: 400-0}\n"), ContainsSubstring("is 400-0, but must be"));
  for (const char* bad : {"1:2:3:4", "1-", "-1", "1:", ":30", "1-2-3", "1-2h"}) {
    INFO(bad);
    CHECK_THAT(complaint("executor: {type: slurm, time: '" + std::string(bad) + "'}\n"),
               ContainsSubstring("must be a duration"));
  }
}

TEST_CASE("bounds of workers that make no sense say what to write") {
  CHECK_THAT(complaint("executor: {type: slurm, pool: 0}\n"),
             ContainsSubstring("pool must be 1 or more (0 workers run nothing)"));
  CHECK_THAT(complaint("executor: {type: slurm, pool: 5..2}\n"),
             ContainsSubstring("the lower bound 5 is above the upper bound 2: swap them"));
}

TEST_CASE("a number of workers from any text is within its bounds, or an error") {
  std::mt19937 rng(11);
  const std::string alphabet = "0123456789..-+ x";
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (auto length = rng() % 12; length > 0; --length) text += alphabet[rng() % alphabet.size()];
    SlurmOptions options;
    const auto workers = parse_pool_size(text);
    if (!workers) continue;
    options.pool = *workers;
    try {
      check_options(options);
    } catch (const OptionError&) { continue; }
    CHECK(workers->min >= 0);
    CHECK(workers->max >= 1);
    CHECK(workers->min <= workers->max);
    CHECK(workers->max <= 4096);
  }
}
