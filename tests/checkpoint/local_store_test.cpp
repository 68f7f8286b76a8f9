#include "support/checkpoint_store_conformance.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/local_store.hpp>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("the local store is a CheckpointStore") {
  const TemporaryDirectory directory;
  int count = 0;
  checkpoint_store_conformance(
      [&] { return LocalCheckpointStore(directory.path() / std::to_string(count++), {.sync = false}); },
      [](LocalCheckpointStore& store, const CheckpointInfo& info) {
        write_file(store.folder(info) / "model.bin", "damaged!!");
      });
}
