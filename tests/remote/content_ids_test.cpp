// The ids of checkpoints' contents, one computed after the other.
#include "content_ids.hpp"

#include "support/test.hpp"

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using remote::detail::ContentIds;

namespace {

CheckpointInfo checkpoint(const std::string& digest) {
  CheckpointInfo info;
  info.name = "step-1";
  info.digest = digest;
  return info;
}

struct Computer {
  std::deque<ContentIds::Job> jobs;   // that were started and have not run
  std::vector<std::string> computed;  // digests
  bool threads = true;
  ContentIds ids{{.elsewhere =
                      [this](ContentIds::Job job) {
                        if (!threads) throw std::runtime_error("no thread");
                        jobs.push_back(std::move(job));
                      },
                  .here = [](const ContentIds::Job& job) { job(); },
                  .compute =
                      [this](const CheckpointInfo& info, const std::stop_token&) {
                        computed.push_back(info.digest);
                        if (info.digest == "gone") throw std::runtime_error("it has been dropped");
                        return "id of " + info.digest;
                      }}};

  void run_one() {
    REQUIRE_FALSE(jobs.empty());
    const auto job = std::move(jobs.front());
    jobs.pop_front();
    job();
  }
};

}  // namespace

TEST_CASE("ids are computed one at a time and once each, in the order in which they are wanted") {
  Computer computer;
  for (const char* digest : {"a", "gone", "b", "a", "b", "c"}) computer.ids.want(checkpoint(digest));
  for (int i = 0; i < 4; ++i) {
    CHECK(computer.jobs.size() == 1);
    computer.run_one();
  }
  CHECK(computer.jobs.empty());
  CHECK(computer.computed == std::vector<std::string>{"a", "gone", "b", "c"});
  CHECK(computer.ids.of("b") == "id of b");
  CHECK(computer.ids.of("gone").empty());
  computer.ids.want(checkpoint("a"));
  CHECK(computer.jobs.empty());
}

TEST_CASE("without a thread no id is computed, and none after the end") {
  Computer computer;
  computer.threads = false;
  computer.ids.want(checkpoint("a"));
  computer.threads = true;
  computer.ids.want(checkpoint("a"));
  computer.ids.want(checkpoint("b"));
  CHECK(computer.jobs.size() == 1);
  computer.ids.stop();
  computer.run_one();
  CHECK(computer.jobs.empty());
  computer.ids.reset();
  computer.ids.want(checkpoint("b"));
  CHECK(computer.jobs.size() == 1);
}
