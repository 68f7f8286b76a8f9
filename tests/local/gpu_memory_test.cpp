// A GPU is given to a trial when the memory that the one before had there is free again. NVML is played by fake_nvml.c,
// nvidia-smi by a script.
#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/local/gpu_memory.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;
using local::detail::GpuGate;
using local::detail::GpuMeter;
using local::detail::GpuReading;
using local::detail::GpuUse;
using local::detail::SmiLine;

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

GpuReading reading(Seconds begun, std::vector<std::optional<GpuUse>> devices) {
  return {.begun = begun, .blind = false, .devices = std::move(devices)};
}

struct Variable {
  Variable(const char* n, const std::string& value) : name(n) {
    if (const char* old = std::getenv(n)) before = old;
    ::setenv(n, value.c_str(), 1);
  }
  ~Variable() {
    if (before)
      ::setenv(name, before->c_str(), 1);
    else
      ::unsetenv(name);
  }
  const char* name;
  std::optional<std::string> before;
};

// Written aside and renamed: a reader never finds half of it.
void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file.string() + ".new") << text;
  std::filesystem::rename(file.string() + ".new", file);
}

// The library that a program finds under this name is the one of the tests (not where another path comes first).
bool fake_is_found() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const bool fake = library != nullptr && ::dlsym(library, "hypertune_fake_nvml") != nullptr;
  if (library != nullptr) ::dlclose(library);
  return fake;
}

}  // namespace

TEST_CASE("a GPU that nothing has left is given at once, one that something has left when its memory is free") {
  GpuGate gate(2, 30, 100);
  CHECK(gate.needs_look({0}));
  CHECK_FALSE(gate.ask({0}, 1, 100.1).go);  // the usual state is not known yet
  CHECK(gate.ask({0}, 1, 102.1).go);        // and nobody answers
  gate.observe(reading(100, {GpuUse{1 * gib, 80 * gib}, GpuUse{0, 80 * gib}}));
  CHECK(gate.ask({0}, 1, 100.2).go);
  CHECK_FALSE(gate.needs_look({0}));

  gate.enter({0});
  gate.observe(reading(105, {GpuUse{70 * gib, 80 * gib}, GpuUse{0, 80 * gib}}));
  gate.leave({0}, 110);
  CHECK(gate.needs_look({0}));
  CHECK(gate.ask({1}, 1, 110).go);
  auto answer = gate.ask({0}, 1, 110);  // what was seen is older than the end
  CHECK_FALSE(answer.go);
  CHECK_THAT(answer.waits, ContainsSubstring("a look at GPU 0"));
  gate.observe(reading(110.1, {GpuUse{70 * gib, 80 * gib}, {}}));
  answer = gate.ask({0, 1}, 1, 110.2);
  CHECK_FALSE(answer.go);
  CHECK_THAT(answer.waits, ContainsSubstring("70.0 of 80.0 GiB are in use"));
  gate.observe(reading(111, {GpuUse{2 * gib, 80 * gib}, {}}));  // 2 % more than usual is nothing
  CHECK(gate.ask({0}, 1, 111.1).go);
  CHECK_FALSE(gate.needs_look({0}));
}

TEST_CASE("what stays on a GPU for longer than the patience is another program's") {
  GpuGate gate(1, 30, 0);
  gate.observe(reading(0, {GpuUse{0, 80 * gib}}));
  gate.enter({0});
  gate.leave({0}, 10);
  gate.observe(reading(39, {GpuUse{40 * gib, 80 * gib}}));
  CHECK_FALSE(gate.ask({0}, 1, 39.9).go);
  const auto answer = gate.ask({0}, 1, 40.1);
  CHECK(answer.go);
  CHECK_THAT(answer.given_up, ContainsSubstring("GPU 0 still has 40.0 of 80.0 GiB in use 30 s after"));
  gate.enter({0});
  gate.leave({0}, 50);
  gate.observe(reading(50.1, {GpuUse{40 * gib, 80 * gib}}));
  CHECK(gate.ask({0}, 1, 50.2).go);  // it counts as usual from now on

  gate.leave({0}, 60);  // and a driver that does not answer any more holds up nobody for ever
  CHECK_FALSE(gate.ask({0}, 1, 89).go);
  CHECK(gate.ask({0}, 1, 91).go);
}

TEST_CASE("of a shared GPU a trial gets its share while others hold theirs") {
  GpuGate gate(1, 30, 0);
  gate.observe(reading(0, {GpuUse{0, 80 * gib}}));
  gate.enter({0});
  gate.enter({0});
  gate.leave({0}, 10);
  gate.observe(reading(10.1, {GpuUse{60 * gib, 80 * gib}}));
  CHECK_FALSE(gate.ask({0}, 0.5, 10.2).go);
  CHECK(GpuGate(gate).ask({0}, 0.25, 10.2).go);
  gate.observe(reading(10.3, {GpuUse{39 * gib, 80 * gib}}));
  CHECK(gate.ask({0}, 0.5, 10.4).go);

  GpuGate blind(1, 30, 0);
  blind.observe({.begun = 0, .blind = true, .devices = {}});
  blind.leave({0}, 10);
  CHECK(blind.ask({0}, 1, 10.1).go);
  CHECK(blind.ask({-1, 7}, 1, 10.1).go);  // no such devices
}

TEST_CASE("nvidia-smi's lines are read, and whatever is none is not") {
  const auto line = SmiLine::read("0, GPU-8932f937-d72c, 512, 81559");
  REQUIRE(line);
  CHECK(line->index == "0");
  CHECK(line->uuid == "GPU-8932f937-d72c");
  CHECK(line->use.used == std::uint64_t{512} << 20U);
  CHECK(line->use.total == std::uint64_t{81559} << 20U);
  for (const char* bad : {"", "0, GPU-1, [N/A], 81559", "0, GPU-1, 5", "No devices were found",
                          "0, GPU-1, 5, 99999999999999", "0, GPU-1, -5, 8", "0, GPU-1, 5x, 8"})
    CHECK_FALSE(SmiLine::read(bad));
}

TEST_CASE("the memory of GPUs is asked of NVML, else of nvidia-smi, else of nobody") {
  TemporaryDirectory folder;
  const auto script = folder.path() / "nvidia-smi";
  const std::string path = folder.path().string() + ":" + std::getenv("PATH");
  {
    if (!fake_is_found()) SUCCEED("another NVML is found first");
    write(folder.path() / "nvml", "100 1000\n200 2000\n");
    const Variable fake("HYPERTUNE_FAKE_NVML", folder.path() / "nvml");
    const auto seen = GpuMeter().read({"1", "GPU-fake-0", "7", "GPU-other"});
    if (fake_is_found()) {
      CHECK_FALSE(seen.blind);
      REQUIRE(seen.devices[0]);
      CHECK(seen.devices[0]->used == std::uint64_t{200} << 20U);
      CHECK(seen.devices[0]->total == std::uint64_t{2000} << 20U);
      REQUIRE(seen.devices[1]);
      CHECK(seen.devices[1]->used == std::uint64_t{100} << 20U);
      CHECK_FALSE(seen.devices[2]);
      CHECK_FALSE(seen.devices[3]);
    }
  }
  if (!fake_is_found()) return;
  const Variable search("PATH", path);
  write(script,
        "#!/bin/sh\n[ \"$1\" = --query-gpu=index,uuid,memory.used,memory.total ] || exit 2\n"
        "echo '0, GPU-a, 3, 10'; echo '1, GPU-b, 4, 10'\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto seen = GpuMeter().read({"GPU-b", "0", "GPU-c"});
  CHECK_FALSE(seen.blind);
  REQUIRE(seen.devices[0]);
  CHECK(seen.devices[0]->used == std::uint64_t{4} << 20U);
  REQUIRE(seen.devices[1]);
  CHECK(seen.devices[1]->used == std::uint64_t{3} << 20U);
  CHECK_FALSE(seen.devices[2]);

  write(script, "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate with the driver'; exit 9\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  CHECK(GpuMeter().read({"0"}).blind);
}

TEST_CASE("a trial waits until the memory that a killed one had on its GPU is free") {
  if (!fake_is_found()) {
    SUCCEED("another NVML is found first");
    return;
  }
  TemporaryDirectory folder;
  const auto nvml = folder.path() / "nvml";
  write(nvml, "0 80000\n");
  const Variable fake("HYPERTUNE_FAKE_NVML", nvml);
  local::CommandOptions options;
  // The first attempt dies as it takes memory; it is there for a while after that.
  options.command = {"/bin/sh", "-c",
                     "if [ $HYPERTUNE_TRIAL = 0 ]; then echo '70000 80000' > " + nvml.string() +
                         "; kill -9 $$; fi; echo \"{{\\\"used\\\": $(cut -d' ' -f1 " + nvml.string() + ")}}\""};
  const auto program = std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, options);
  const double patience = GENERATE(1000.0, 1.5, 0.0);
  Bench bench(program, {.pool = 2, .gpus = 1, .gpu_wait = patience});
  auto launch = bench.make(0, "m");
  launch.allocation.lead.gpus = {0};
  launch.allocation.lead.resources.gpus = 1;
  bench.executor.perform(launch);
  bench.events.next<Failed>();
  launch.trial = 1;
  bench.executor.perform(launch);
  double used = 70000;
  if (patience == 1000) {
    const auto notice = bench.events.next<Notice>().text;  // it waits, and says so
    CHECK_THAT(notice, ContainsSubstring("trial 1 waits for the memory of GPU 0"));
    CHECK(bench.events.empty());
    // Meanwhile nobody else is held up, and what waits can be called off.
    bench.launch(2, "m");
    CHECK(bench.events.next<Reported>().trial == 2);
    bench.executor.perform(Stop{2, 0});
    CHECK(bench.events.next<Stopped>().trial == 2);
    launch.trial = 3;
    bench.executor.perform(launch);
    bench.executor.perform(Stop{3, 0});
    CHECK(bench.events.next<Stopped>().trial == 3);
    write(nvml, "100 80000\n");
    used = 100;
  } else if (patience > 0) {
    std::string notice = bench.events.next<Notice>().text;
    if (notice.starts_with("trial 1 waits")) notice = bench.events.next<Notice>().text;
    CHECK_THAT(notice, ContainsSubstring("trial 1 begins all the same: GPU 0 still has"));
  }
  CHECK(bench.events.next<Started>().trial == 1);
  const auto reported = bench.events.next<Reported>();
  CHECK(*find_metric(reported.report.metrics, "used") == used);
  bench.executor.perform(Continue{1, 0});
  bench.events.next<Finished>();
}
