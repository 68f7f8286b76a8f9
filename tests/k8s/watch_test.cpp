// Watches of servers that cut streams, forget versions and restart.
#include "k8s/support/fake_api.hpp"
#include "k8s/support/watched.hpp"
#include "support/eventually.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::test;

namespace {

struct SharedTold {
  std::mutex mutex;
  Told told;
  WatchHandler handler() {
    return [this](const WatchEvent& event) {
      const std::lock_guard lock(mutex);
      told(event);
    };
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return told.lines;
  }
  bool has(const std::string& line) {
    const auto all = lines();
    return std::find(all.begin(), all.end(), line) != all.end();
  }
};

}  // namespace

TEST_CASE("a stream that is cut within a chunk goes on, and a version that is forgotten is made up for") {
  std::atomic<int> streams{0}, lists{0};
  std::mutex mutex;
  std::vector<std::string> asked;
  FakeServer server([&](Peer& peer) {
    Peer::Request request;
    while (peer.read(request)) {
      if (request.line.find("watch=1") == std::string::npos) {
        peer.answer(200, ++lists == 1 ? list_text(5, {object_text("a", 1)}) : list_text(20, {object_text("b", 15)}));
        continue;
      }
      {
        const std::lock_guard lock(mutex);
        asked.push_back(request.line);
      }
      const int n = ++streams;
      if (n == 3) {
        peer.answer(410, status_text(410, "Expired", "too old"));
        continue;
      }
      peer.stream();
      if (n == 1) {
        peer.chunk(event_text("MODIFIED", object_text("a", 6)));
        peer.send("ffff\r\n{\"type\":\"ADDED\",\"object\":{");
        return peer.reset();
      }
      if (n == 2) {
        peer.chunk(event_text("MODIFIED", object_text("a", 7)));
        peer.send("0\r\n\r\n");
        continue;
      }
      if (n == 4) {
        peer.chunk(event_text("ADDED", object_text("c", 21)));
        peer.chunk(expired_text());
        peer.wait_closed();
        return;
      }
      peer.wait_closed();
    }
  });
  Client client(access_to(server));
  SharedTold told;
  Watch watch = client.watch({.path = "/pods", .max_backoff = 0.2}, told.handler());
  REQUIRE(eventually([&] { return streams >= 5; }));
  watch.end();
  CHECK(told.lines() == std::vector<std::string>{"added a@1", "synced", "modified a@6", "modified a@7", "added b@15",
                                                 "deleted a?", "synced", "added c@21", "deleted c?", "synced"});
  REQUIRE(asked.size() >= 3);
  CHECK_THAT(asked[1], ContainsSubstring("resourceVersion=6&"));
  CHECK_THAT(asked[2], ContainsSubstring("resourceVersion=7&"));
}

TEST_CASE("a refusal is told with its status, and the watch goes on when it is lifted") {
  std::atomic<bool> allowed{false};
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) {
      if (!allowed) {
        peer.answer(403, status_text(403, "Forbidden", "pods is forbidden"));
      } else if (request.line.find("watch=1") == std::string::npos) {
        peer.answer(200, list_text(5, {object_text("a", 1)}));
      } else {
        peer.stream();
        peer.wait_closed();
        return;
      }
    }
  });
  Client client(access_to(server));
  SharedTold told;
  std::atomic<int> status{0};
  Watch watch =
      client.watch({.path = "/pods", .max_backoff = 0.1}, [&, tell = told.handler()](const WatchEvent& event) {
        if (event.kind == WatchEvent::Kind::trouble) status = event.status;
        tell(event);
      });
  REQUIRE(eventually([&] { return told.has("trouble: pods is forbidden (list /pods)"); }));
  CHECK(status == 403);
  allowed = true;
  CHECK(eventually([&] { return told.has("synced"); }));
}

TEST_CASE("a watch ends at once, whatever it does, and its client lives as long as it") {
  std::atomic<int> streams{0};
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) {
      if (request.line.find("watch=1") == std::string::npos) {
        peer.answer(200, list_text(5, {}));
        continue;
      }
      peer.stream();
      ++streams;
      peer.wait_closed();
      return;
    }
  });
  std::optional<Client> client(access_to(server));
  SharedTold told;
  Watch watch = client->watch({.path = "/pods"}, told.handler());
  REQUIRE(eventually([&] { return streams == 1; }));
  client.reset();
  watch = Watch();
  CHECK(told.lines() == std::vector<std::string>{"synced"});
  client.emplace(Access{.server = "http://127.0.0.1:1", .origin = "test"});
  watch = client->watch({.path = "/pods"}, told.handler());
  REQUIRE(eventually([&] { return told.lines().size() > 1; }));
  watch.end();
  watch.end();
}

TEST_CASE("a call from within a handler is an error, no deadlock") {
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) peer.answer(200, list_text(5, {}));
  });
  Client client(access_to(server));
  std::atomic<bool> over{false};
  std::string said;
  Watch watch = client.watch({.path = "/pods"}, [&](const WatchEvent&) {
    if (over) return;
    said = problem([&] { client.call({.path = "/x"}); });
    over = true;
  });
  REQUIRE(eventually([&] { return over.load(); }));
  watch.end();
  CHECK_THAT(said, ContainsSubstring("from another thread"));
}
