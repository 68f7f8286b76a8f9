// What is said of workers that wait.
#include "support/test.hpp"

#include <hypertune/remote/waiting_lines.hpp>

#include <string>
#include <vector>

using namespace hypertune;
using remote::WaitingLines;
using remote::WaitingWorker;

TEST_CASE("workers that wait are told of once for each new reason, and once a minute while nothing runs") {
  WaitingLines lines;
  const WaitingWorker node{"Unschedulable", "waits for a node"}, image{"ErrImagePull", "waits for its image"};
  CHECK(lines.look({}, "in the queue", false, 0).empty());
  CHECK(lines.look({node}, "in the queue", false, 0) == "1 worker waits for a node");
  CHECK(lines.look({node}, "in the queue", false, 30).empty());
  CHECK(lines.look({node, node}, "in the queue", false, 61) == "2 workers, each waits for a node");
  CHECK_FALSE(lines.news());
  CHECK(lines.look({node}, "in the queue", true, 200).empty());  // others run: nobody needs to hear it again
  CHECK(lines.look({node, image, node}, "in the queue", true, 201) ==
        "3 workers wait in the queue: 1 ErrImagePull, 2 Unschedulable");
  CHECK(lines.news());
  lines.clear();
  CHECK(lines.look({node}, "in the queue", true, 202) == "1 worker waits for a node");
}
