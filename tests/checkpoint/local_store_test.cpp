#include "support/checkpoint_store_conformance.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/local_store.hpp>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("the local store keeps the laws of checkpoints") {
  const TemporaryDirectory directory;
  int count = 0;
  checkpoint_store_conformance(
      [&] { return LocalCheckpointStore(directory.path() / std::to_string(count++), {.sync = false}); },
      [](LocalCheckpointStore& store, const CheckpointInfo& info) {
        write_file(store.folder(info) / "model.bin", "damaged!!");
      });
}

TEST_CASE("a store finds checkpoints in its origins, by their content, and changes nothing there") {
  const TemporaryDirectory first, second, own;
  LocalCheckpointStore a(first), b(second);
  const auto in_a = save(a, 2, 5, {{"state", "a"}});
  const auto in_b = save(b, 2, 5, {{"state", "b"}});  // of the same name
  LocalCheckpointStore::Options options;
  options.origins = {first.path(), second.path()};
  LocalCheckpointStore store(own, options);
  CHECK(store.names(in_a));
  CHECK(read_file(store.open(in_a).file("state")) == "a");
  CHECK(read_file(store.open(in_b).file("state")) == "b");
  const auto mine = save(store, 2, 5, {{"state", "mine"}});
  CHECK(read_file(store.open(mine).file("state")) == "mine");
  CHECK(store.list(2).size() == 1);
  write_file(a.folder(in_a) / "state", "b");
  CHECK(store.names(in_a));
  CHECK_THROWS_AS(store.open(in_a), Error);
  store.set_aside(in_a);
  store.drop(in_b);
  CHECK(a.list(2).size() == 1);
  CHECK(b.list(2).size() == 1);
  b.drop(in_b);
  CHECK_FALSE(store.names(in_b));
  CHECK_THROWS_AS(store.open(in_b), Error);
}
