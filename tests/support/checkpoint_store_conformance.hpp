// The laws of a store of checkpoints, whatever its options.
#pragma once

#include "test.hpp"

#include <hypertune/error.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

using Files = std::map<std::string, std::string>;

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

template <class Store>
CheckpointInfo save(Store& store, TrialId trial, int steps, const Files& files) {
  CheckpointWriter writer = store.begin(trial, steps);
  for (const auto& [name, content] : files) write_file(writer.file(name), content);
  return store.seal(std::move(writer));
}

template <class Store>
void require_files(Store& store, const CheckpointInfo& info, const Files& files) {
  const Checkpoint in = store.open(info);
  CHECK(in.info() == info);
  std::uint64_t bytes = 0;
  for (const auto& [name, content] : files) {
    REQUIRE(in.has(name));
    REQUIRE(read_file(in.file(name)) == content);
    bytes += content.size();
  }
  CHECK(info.bytes == bytes);
}

inline Errc thrown_code(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return e.code();
  }
  FAIL("no hypertune::Error was thrown");
  return Errc::usage;
}

/// `make` gives an empty store. `corrupt(store, info)` damages what is stored for `info`.
template <class Make, class Corrupt>
void checkpoint_store_conformance(const Make& make, const Corrupt& corrupt) {
  const Files files{{"model.bin", std::string("weights\0\xff", 9)}, {"shards/0", "a"}, {"shards/deep/1", ""}};

  SECTION("what was sealed is given back, and named as asked") {
    auto store = make();
    const auto info = save(store, 3, 27, files);
    CHECK(info.trial == 3);
    CHECK(info.steps == 27);
    CHECK_FALSE(info.name.empty());
    CHECK_FALSE(info.digest.empty());
    require_files(store, info, files);
    const auto in = store.open(info);
    CHECK_FALSE(in.has("other"));
    CHECK(thrown_code([&] { static_cast<void>(in.file("other")); }) == Errc::usage);
    CHECK(thrown_code([&] { static_cast<void>(in.file("../escape")); }) == Errc::usage);
  }
  SECTION("an empty checkpoint is one") {
    auto store = make();
    require_files(store, save(store, 0, 0, {}), {});
  }
  SECTION("a checkpoint that is not sealed is not seen") {
    auto store = make();
    auto writer = store.begin(1, 5);
    write_file(writer.file("model.bin"), "x");
    CHECK(store.list(1).empty());
    const auto info = store.seal(std::move(writer));
    CHECK(store.list(1) == std::vector{info});
  }
  SECTION("the list is of one trial, newest first, and equals what was sealed") {
    auto store = make();
    CHECK(store.list(7).empty());
    const auto second = save(store, 7, 20, files);
    const auto first = save(store, 7, 3, files);
    const auto third = save(store, 7, 100, {});
    static_cast<void>(save(store, 8, 50, files));
    CHECK(store.list(7) == std::vector{third, second, first});
    CHECK(store.list(8).size() == 1);
  }
  SECTION("one step saved twice makes two checkpoints") {
    auto store = make();
    const auto first = save(store, 0, 4, {{"a", "1"}});
    const auto second = save(store, 0, 4, {{"a", "2"}});
    CHECK(first.name != second.name);
    require_files(store, first, {{"a", "1"}});
    require_files(store, second, {{"a", "2"}});
    CHECK(store.list(0) == std::vector{second, first});
  }
  SECTION("a dropped one is gone, and dropping it again is no error") {
    auto store = make();
    const auto kept = save(store, 0, 1, files);
    const auto info = save(store, 0, 2, files);
    store.drop(info);
    CHECK(store.list(0) == std::vector{kept});
    CHECK(thrown_code([&] { static_cast<void>(store.open(info)); }) == Errc::corrupt);
    store.drop(info);
    require_files(store, kept, files);
  }
  SECTION("dropping one never hits a later one that got its name") {
    auto store = make();
    const auto old = save(store, 0, 2, {{"a", "1"}});
    store.drop(old);
    const auto young = save(store, 0, 2, {{"a", "2"}});
    store.drop(old);
    require_files(store, young, {{"a", "2"}});
  }
  SECTION("a damaged one is refused, can be set aside, and then is not listed") {
    auto store = make();
    const auto before = save(store, 0, 1, files);
    const auto info = save(store, 0, 2, files);
    corrupt(store, info);
    CHECK(thrown_code([&] { static_cast<void>(store.open(info)); }) == Errc::corrupt);
    store.set_aside(info);
    store.set_aside(info);
    CHECK(store.list(0) == std::vector{before});
    CHECK(thrown_code([&] { static_cast<void>(store.open(info)); }) == Errc::corrupt);
    require_files(store, before, files);
  }
  SECTION("a damaged one can be dropped") {
    auto store = make();
    const auto info = save(store, 0, 2, files);
    corrupt(store, info);
    store.drop(info);
    CHECK(store.list(0).empty());
  }
  SECTION("trials are used from several threads at once") {
    auto store = make();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (TrialId trial = 0; trial < 4; ++trial)
      threads.emplace_back([&, trial] {
        for (int steps = 1; steps <= 8; ++steps) {
          const std::string content = fmt::format("{} {}", trial, steps);
          const auto info = save(store, trial, steps, {{"a", content}});
          if (read_file(store.open(info).file("a")) != content) ++wrong;
          const auto list = store.list(trial);
          if (list.front() != info || list.size() > 2) ++wrong;
          if (list.size() == 2) store.drop(list.back());
        }
      });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (TrialId trial = 0; trial < 4; ++trial) CHECK(store.list(trial).size() == 1);
  }
}

}  // namespace hypertune::inline v0::test
