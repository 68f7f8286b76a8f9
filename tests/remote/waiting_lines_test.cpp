// What is said of workers that wait.
#include "support/test.hpp"

#include <hypertune/remote/ordered_wait_notice.hpp>
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

TEST_CASE("a run in order that stands still for workers without room says so, and what mends it") {
  remote::OrderedWaitNotice notice;
  CHECK(notice.look(4, 0, "", true, 0).empty());
  CHECK(notice.look(4, 2, "waits for quota", true, 100).empty());
  CHECK(notice.look(4, 2, "waits for quota", true, 129).empty());
  CHECK(
      notice.look(4, 1, "waits for quota (pods: 3)", true, 130) ==
      "trials are decided in order, so that all wait until each of the 4 workers is there, and 1 of them finds no room "
      "(waits for quota (pods: 3)): set pool to 3, make room (a larger quota, more nodes), or write ordered: false");
  CHECK(notice.look(4, 1, "", true, 140).empty());
  CHECK_THAT(notice.look(4, 2, "", true, 730), ContainsSubstring("2 of them find no room: set pool to 2"));
  // Once there was room, or nothing waits for it, the time begins anew.
  CHECK(notice.look(4, 2, "", false, 1400).empty());
  CHECK(notice.look(4, 4, "", true, 1401).empty());
  CHECK(notice.look(4, 4, "", true, 1430).empty());
  CHECK_THAT(notice.look(4, 4, "", true, 1431), ContainsSubstring("set pool to what there is room for"));
}
