// Lists, streams and what goes wrong with them, without a server.
#include "watch_machine.hpp"

#include "k8s/support/watched.hpp"
#include "support/test.hpp"

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;
using namespace hypertune::test;

namespace {

using Kind = WatchMachine::Action::Kind;
using Lines = std::vector<std::string>;

struct Watched {
  explicit Watched(WatchOptions options = {.path = "/pods"}) : machine(std::move(options), std::ref(told)) {}
  Told told;
  WatchMachine machine;

  WatchMachine::Action next() { return machine.next(0.5); }
  /// The next thing to do that is no pause.
  WatchMachine::Action next_request() {
    auto action = next();
    return action.kind == Kind::pause ? next() : action;
  }
  void start(int version, const Lines& objects) {
    REQUIRE(next_request().kind == Kind::list);
    machine.listed(list_text(version, objects));
    told.lines.clear();
    REQUIRE(next().kind == Kind::stream);
    machine.streaming();
  }
};

}  // namespace

TEST_CASE("all objects are told, then each change of them") {
  Watched watched({.path = "/pods", .label_selector = "a=b", .field_selector = "c=d"});
  auto action = watched.next();
  CHECK(action.kind == Kind::list);
  CHECK(value_of(action.query, "labelSelector") == "a=b");
  CHECK(value_of(action.query, "fieldSelector") == "c=d");
  CHECK(value_of(action.query, "limit") == "500");
  watched.machine.listed(list_text(5, {object_text("a", 1)}, "next page"));
  CHECK(watched.told.lines == Lines{"added a@1"});
  action = watched.next();
  CHECK(action.kind == Kind::list);
  CHECK(value_of(action.query, "continue") == "next page");
  watched.machine.listed(list_text(5, {object_text("b", 2)}));
  CHECK(watched.told.lines == Lines{"added a@1", "added b@2", "synced"});
  action = watched.next();
  CHECK(action.kind == Kind::stream);
  CHECK(value_of(action.query, "resourceVersion") == "5");
  CHECK(value_of(action.query, "allowWatchBookmarks") == "true");
  CHECK(value_of(action.query, "labelSelector") == "a=b");
  watched.machine.streaming();
  watched.told.lines.clear();
  watched.machine.feed(event_text("ADDED", object_text("c", 6)) + event_text("MODIFIED", object_text("a", 7)) +
                       event_text("DELETED", object_text("b", 8)) + event_text("BOOKMARK", object_text("", 20)));
  CHECK(watched.told.lines == Lines{"added c@6", "modified a@7", "deleted b@8"});
  watched.machine.stream_over(300);
  action = watched.next();
  CHECK(action.kind == Kind::stream);
  CHECK(value_of(action.query, "resourceVersion") == "20");
  CHECK(watched.machine.known() == 2);
}

TEST_CASE("events are the same however the stream is cut into pieces") {
  std::string stream;
  for (int i = 0; i < 30; ++i)
    stream += event_text(i % 3 == 0 ? "ADDED" : "MODIFIED",
                         object_text("p" + std::to_string(i / 3), 10 + i, "", R"(,"spec":"ä\n\"{}[]")"));
  stream += "\r\n" + event_text("DELETED", object_text("p3", 100));
  const auto fed = [&](const std::function<std::size_t()>& size) {
    Watched watched;
    watched.start(5, {});
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t n = std::min(size(), stream.size() - at);
      REQUIRE(watched.machine.feed(std::string_view(stream).substr(at, n)));
      at += n;
    }
    return watched.told.lines;
  };
  const auto whole = fed([&] { return stream.size(); });
  CHECK(whole.size() == 31);
  CHECK(whole.back() == "deleted p3@100");
  for (std::size_t size = 1; size < 300; ++size) REQUIRE(fed([size] { return size; }) == whole);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) REQUIRE(fed([&] { return 1 + random() % 200; }) == whole);
}

TEST_CASE("a stream that ends within an event goes on from the last whole one") {
  const std::string event = event_text("MODIFIED", object_text("a", 7));
  for (std::size_t size = 0; size < event.size(); ++size) {
    Watched watched;
    watched.start(5, {object_text("a", 1)});
    watched.machine.feed(event_text("MODIFIED", object_text("a", 6)));
    watched.machine.feed(event.substr(0, size));
    watched.machine.stream_over(10);
    CHECK(watched.machine.waiting() == 0);
    const auto action = watched.next();
    REQUIRE(action.kind == Kind::stream);
    REQUIRE(value_of(action.query, "resourceVersion") == "6");
    watched.machine.feed(event);
    REQUIRE(watched.told.lines == Lines{"modified a@6", "modified a@7"});
  }
}

TEST_CASE("a version that is too old means a list, of which only the differences are told") {
  Watched watched;
  watched.start(
      5, {object_text("same", 1), object_text("changed", 2), object_text("gone", 3), object_text("again", 4, "u1")});
  const std::vector<std::string> now{object_text("same", 1), object_text("changed", 8), object_text("again", 9, "u2"),
                                     object_text("new", 10)};
  SECTION("an event in a stream that began with 200") {
    CHECK_FALSE(watched.machine.feed(expired_text() + event_text("ADDED", object_text("x", 9))));
  }
  SECTION("as an answer") { watched.machine.failed(410, "too old"); }
  CHECK(watched.told.lines.empty());
  const auto pause = watched.next();
  CHECK(pause.kind == Kind::pause);
  CHECK(pause.seconds < 0.3);
  const auto action = watched.next();
  CHECK(action.kind == Kind::list);
  CHECK(value_of(action.query, "continue").empty());
  watched.machine.listed(list_text(12, now));
  CHECK(watched.told.lines ==
        Lines{"modified changed@8", "deleted again?", "added again@9", "added new@10", "deleted gone?", "synced"});
  CHECK(watched.machine.known() == 4);
  CHECK(value_of(watched.next().query, "resourceVersion") == "12");
}

TEST_CASE("a deletion that nobody saw has name, namespace, uid and labels") {
  bool seen = false;
  WatchMachine machine({.path = "/pods"}, [&](const WatchEvent& event) {
    if (!event.unseen) return;
    seen = true;
    CHECK(boost::json::serialize(*event.object) ==
          R"({"metadata":{"name":"a","uid":"u-a","namespace":"n","labels":{"app":"x"}}})");
  });
  machine.next(0);
  machine.listed(list_text(1, {object_text("a", 1)}));
  machine.next(0);
  machine.failed(410, "");
  machine.next(0);
  machine.listed(list_text(2, {}));
  CHECK(seen);
}

TEST_CASE("pages that expire are fetched from the beginning, at last all at once") {
  Watched watched;
  for (int i = 0; i < 2; ++i) {
    CHECK(value_of(watched.next_request().query, "limit") == "500");
    watched.machine.listed(list_text(5, {object_text("a", 1)}, "more"));
    CHECK(value_of(watched.next_request().query, "continue") == "more");
    watched.machine.failed(410, "expired");
  }
  const auto action = watched.next_request();
  CHECK(value_of(action.query, "limit").empty());
  CHECK(value_of(action.query, "continue").empty());
  watched.machine.listed(list_text(9, {object_text("b", 2)}));
  CHECK(watched.told.lines == Lines{"added a@1", "added b@2", "deleted a?", "synced"});
}

TEST_CASE("trouble is told with a reason, pauses grow, and synced says that it is over") {
  Watched watched;
  double last = 0;
  for (int i = 0; i < 12; ++i) {
    REQUIRE(watched.next().kind == Kind::list);
    watched.machine.failed(0, "connection refused");
    const auto pause = watched.next();
    REQUIRE(pause.kind == Kind::pause);
    REQUIRE(pause.seconds >= last);
    REQUIRE(pause.seconds <= 30);
    last = pause.seconds;
  }
  CHECK(last > 20);
  CHECK(watched.told.lines == Lines(12, "trouble: connection refused"));
  watched.told.lines.clear();
  watched.next();
  watched.machine.failed(429, "slow down", 5);
  CHECK(watched.next().seconds >= 5);
  watched.start(5, {});
  watched.machine.feed(event_text("BOOKMARK", object_text("", 6)));
  watched.machine.stream_over(3);
  REQUIRE(watched.next().kind == Kind::stream);
  watched.machine.failed(403, "forbidden");
  REQUIRE(watched.next().kind == Kind::pause);
  REQUIRE(watched.next().kind == Kind::stream);
  watched.machine.streaming();
  CHECK(watched.told.lines == Lines{"trouble: forbidden", "synced"});
}

TEST_CASE("streams that end at once are not asked for without a pause") {
  Watched watched;
  watched.start(5, {});
  watched.machine.stream_over(0.01);
  CHECK(watched.next().kind == Kind::pause);
  CHECK(watched.next().kind == Kind::stream);
  watched.machine.stream_over(10);
  CHECK(watched.next().kind == Kind::stream);
}

TEST_CASE("what makes no sense is trouble, and all is listed again") {
  const std::vector<std::string> bad{"{\n",
                                     "null\n",
                                     "[]\n",
                                     "{}\n",
                                     R"({"type":"ADDED"})"
                                     "\n",
                                     R"({"type":"ADDED","object":[]})"
                                     "\n",
                                     R"({"type":"ADDED","object":{}})"
                                     "\n",
                                     R"({"type":"ADDED","object":{"metadata":{"name":"x"}}})"
                                     "\n",
                                     R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})"
                                     "\n",
                                     R"({"type":"BOOKMARK","object":{"metadata":{}}})"
                                     "\n",
                                     R"({"type":"OTHER","object":{"metadata":{}}})"
                                     "\n",
                                     R"({"object":{"metadata":{}}})"
                                     "\n",
                                     R"({"type":"ERROR","object":{"code":500,"message":"etcd"}})"
                                     "\n",
                                     R"({"type":"ERROR","object":{"code":"x"}})"
                                     "\n",
                                     std::string(200, '[') + std::string(200, ']') + "\n",
                                     "\xff\xfe\n"};
  for (const auto& text : bad) {
    INFO(text);
    Watched watched;
    watched.start(5, {object_text("a", 1)});
    CHECK_FALSE(watched.machine.feed(text + event_text("ADDED", object_text("b", 2))));
    REQUIRE(watched.told.lines.size() == 1);
    CHECK(watched.told.lines[0].starts_with("trouble: "));
    watched.machine.stream_over(0.1);
    CHECK(watched.next().kind == Kind::pause);
    CHECK(watched.next().kind == Kind::list);
  }
  for (const char* text :
       {"", "{}", "[]", R"({"metadata":{},"items":[]})", R"({"metadata":{"resourceVersion":"1"}})",
        R"({"metadata":{"resourceVersion":"1"},"items":[1]})", R"({"metadata":{"resourceVersion":"1"},"items":{}})"}) {
    INFO(text);
    Watched watched;
    watched.next();
    watched.machine.listed(text);
    CHECK(watched.told.lines.size() == 1);
    CHECK(watched.next().kind == Kind::pause);
    CHECK(watched.next().kind == Kind::list);
  }
}

TEST_CASE("one event has a bound, and what a handler throws is trouble") {
  Watched watched({.path = "/pods", .max_event = 1000});
  watched.start(5, {});
  CHECK(watched.machine.feed(std::string(600, 'x')));
  CHECK(watched.machine.waiting() == 600);
  CHECK_FALSE(watched.machine.feed(std::string(600, 'x')));
  CHECK(watched.machine.waiting() == 0);
  CHECK(watched.told.lines == Lines{"trouble: the API server sent an event of more than 1000 bytes"});
  CHECK(watched.next_request().kind == Kind::list);

  Lines said;
  WatchMachine machine({.path = "/pods"}, [&](const WatchEvent& event) {
    if (event.kind == WatchEvent::Kind::added) throw std::runtime_error("no room");
    said.emplace_back(event.text);
  });
  machine.next(0);
  machine.listed(list_text(1, {object_text("a", 1)}));
  CHECK(said == Lines{"no room", ""});
}

// Whatever happens to lists and streams: who follows the events knows at each `synced` what there was.
TEST_CASE("after any disturbance the handler's objects are those of the server") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    struct Change {
      int version;
      std::string event;
      std::map<std::string, std::pair<int, std::string>> after;  // name -> version, uid
    };
    std::map<std::string, std::pair<int, std::string>> there;
    std::vector<Change> history{{1, "", {}}};
    for (int version = 2; version < 80; ++version) {
      const std::string name = "p" + std::to_string(random() % 6);
      const auto found = there.find(name);
      std::string event;
      if (found == there.end()) {
        there[name] = {version, "u" + std::to_string(version)};
        event = event_text("ADDED", object_text(name, version, there[name].second));
      } else if (random() % 3 == 0) {
        event = event_text("DELETED", object_text(name, version, found->second.second));
        there.erase(found);
      } else {
        found->second.first = version;
        event = event_text("MODIFIED", object_text(name, version, found->second.second));
      }
      history.push_back({version, std::move(event), there});
    }
    Watched watched;
    std::size_t now = 0;  // the server's newest version in the history
    for (int step = 0; step < 400 && now + 1 < history.size(); ++step) {
      now = std::min(history.size() - 1, now + random() % 4);
      const auto action = watched.next();
      if (action.kind == Kind::pause) continue;
      if (random() % 8 == 0) {
        watched.machine.failed(random() % 2 == 0 ? 0 : 503, "away");
        continue;
      }
      if (action.kind == Kind::list) {
        std::vector<std::string> objects;
        for (const auto& [name, at] : history[now].after) objects.push_back(object_text(name, at.first, at.second));
        watched.machine.listed(list_text(history[now].version, objects));
        std::map<std::string, std::string> expected;
        for (const auto& [name, at] : history[now].after) expected[name] = std::to_string(at.first);
        REQUIRE(watched.told.there == expected);
        continue;
      }
      watched.machine.streaming();
      if (random() % 6 == 0) {
        watched.machine.feed(expired_text());
      } else {
        std::string bytes;
        const int from = std::stoi(value_of(action.query, "resourceVersion"));
        std::size_t last = 0;
        for (std::size_t i = 0; i <= now; ++i)
          if (history[i].version > from) bytes += history[last = i].event;
        const bool cut = random() % 2 == 0 && !bytes.empty();
        if (cut) bytes.resize(random() % bytes.size());
        for (std::size_t at = 0, n = 0; at < bytes.size(); at += n)
          watched.machine.feed(std::string_view(bytes).substr(at, n = 1 + random() % 50));
        if (!cut && last > 0) {
          std::map<std::string, std::string> expected;
          for (const auto& [name, at] : history[last].after) expected[name] = std::to_string(at.first);
          REQUIRE(watched.told.there == expected);
        }
      }
      watched.machine.stream_over(random() % 2 == 0 ? 0.1 : 10);
    }
  }
}
