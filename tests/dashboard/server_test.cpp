// The dashboard's server before raw clients, on folders that grow, break and vanish.
#include "server.hpp"

#include "gzip.hpp"
#include "record/record_support.hpp"
#include "serving.hpp"
#include "support/raw_client.hpp"
#include "support/test.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/record/journal.hpp>

#include <boost/asio/ip/address.hpp>
#include <boost/json/parse.hpp>
#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace std::chrono_literals;
using hypertune::test::RawClient;
namespace json = boost::json;
namespace fs = std::filesystem;

namespace {

struct Served {
  explicit Served(std::vector<fs::path> roots, bool expected = false, dashboard::ServerLimits limits = {})
      : experiments(std::move(roots), expected),
        api(experiments, {}),
        server(api, {boost::asio::ip::address_v4::loopback(), 0}, ServerNames(), limits) {
    experiments.follow([this](const std::string& id) { server.notify(id); });
    server.start();
  }
  ~Served() {
    experiments.stop();
    server.stop();
  }
  std::string ask(std::string_view request) const {
    RawClient client(server.port());
    client.send(request);
    return client.rest();
  }
  std::string get(const std::string& target, const std::string& more = "") const {
    return ask("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more + "\r\n");
  }
  json::object body(const std::string& target, int status = 200) const {
    const auto answer = get(target);
    INFO(answer.substr(0, 2000));
    REQUIRE(answer.starts_with("HTTP/1.1 " + std::to_string(status)));
    return json::parse(answer.substr(answer.find("\r\n\r\n") + 4)).as_object();
  }
  /// The first answer for which `holds`, after as many as it takes.
  template <class Holds>
  json::object eventually(const std::string& target, Holds holds) const {
    RawClient events(server.port());
    events.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    events.until("retry: 1000\n\n");
    for (int tries = 0; tries < 200; ++tries) {
      const auto answer = get(target);
      if (answer.starts_with("HTTP/1.1 200")) {
        auto value = json::parse(answer.substr(answer.find("\r\n\r\n") + 4)).as_object();
        if (holds(value)) return value;
      }
      events.until("\n\n");  // an event, or a sign of life
    }
    FAIL("it never held: " + get(target).substr(0, 2000));
    return {};
  }

  dashboard::Experiments experiments;
  dashboard::Api api;
  dashboard::Server server;
};

void begin(Journal& journal, const std::string& name = "small") {
  journal.append(
      1, record::ExperimentStarted{
             name, {maximize("accuracy")}, "lr: {log_uniform: [0.001, 1]}\n", "random", "fifo", "threads", 4, 1});
}
void trial(Journal& journal, TrialId id, double value, bool ends = true) {
  journal.append(2, record::TrialCreated{id, {0.1}, {{"lr", 0.1}, {"<b>", std::string("\x07 \xff </script>")}}});
  journal.append(3, record::TrialStarted{id, 0, 0, "here", {0}, {}});
  journal.append(4, record::TrialReported{id, 0, 0, {{"accuracy", value / 2}, {"loss", NAN}}});
  journal.append(5, record::TrialReported{id, 0, 1, {{"accuracy", value}, {"loss", 0.5}}});
  if (ends) journal.append(6, record::TrialEnded{id, TrialState::completed, std::nullopt});
}

}  // namespace

TEST_CASE("the page and the answers come with the headers that keep them to themselves") {
  support::TemporaryFolder folder;
  {
    auto journal = Journal::open(folder);
    begin(journal);
    trial(journal, 0, 0.75);
  }
  Served served({folder});
  const auto summary =
      served.eventually("/api/summary", [](json::object& o) { return !o.contains("reading") && o["reports"] == 2; });
  CHECK(summary.at("name") == "small");
  CHECK(summary.at("state") == "killed");
  CHECK(summary.at("best").at(0).at("value") == 0.75);
  CHECK(summary.at("parameters").at(0).at("kind") == "float");
  CHECK(summary.at("parameters").at(0).at("log") == true);
  const auto page = served.get("/");
  CHECK(page.starts_with("HTTP/1.1 200"));
  CHECK_THAT(page,
             ContainsSubstring("Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'"));
  CHECK_THAT(page, ContainsSubstring("X-Content-Type-Options: nosniff"));
  CHECK_THAT(page, ContainsSubstring("Referrer-Policy: no-referrer"));
  CHECK_THAT(page, ContainsSubstring("Cross-Origin-Opener-Policy: same-origin"));
  CHECK_THAT(page, ContainsSubstring("<!doctype html>"));
  CHECK_THAT(page, !ContainsSubstring("Set-Cookie"));
  const auto packed = served.get("/", "Accept-Encoding: br, gzip\r\n");
  CHECK_THAT(packed, ContainsSubstring("Content-Encoding: gzip"));
  const auto unpacked = dashboard::gunzipped(packed.substr(packed.find("\r\n\r\n") + 4), 1 << 20);
  REQUIRE(unpacked);
  CHECK(*unpacked == page.substr(page.find("\r\n\r\n") + 4));
  CHECK(served.get("/nothing.js").starts_with("HTTP/1.1 404"));
  CHECK(served.get("/../../etc/passwd").starts_with("HTTP/1.1 404"));
  CHECK(served.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ends_with("\r\n\r\n"));

  const auto row = served.body("/api/trial?trial=0");
  CHECK(row.at("curves").at("loss").at("value").at(0) == "NaN");
  CHECK(row.at("curves").at("accuracy").at("step").as_array().size() == 2);
  CHECK(row.at("attempts").at(0).at("host") == "here");
  CHECK(served.body("/api/trials?filter=lr%3E1")["matching"] == 0);
  CHECK_THAT(std::string(served.body("/api/trials?filter=lx%3E1", 400)["error"].as_string()),
             ContainsSubstring("'lx'"));
  served.body("/api/trials?limit=501", 400);
  served.body("/api/trial?trial=7", 400);
  served.body("/api/nothing", 404);
  served.body("/api/summary?experiment=other", 404);
  CHECK(served.body("/api/log?trial=0")["text"] == "");
}

TEST_CASE("what is not asked by a program of this machine, or its own page, is refused") {
  support::TemporaryFolder folder;
  {
    auto journal = Journal::open(folder);
    begin(journal);
  }
  Served served({folder});
  const auto status = [&](const std::string& head) {
    return served.ask("GET /api/experiments HTTP/1.1\r\nConnection: close\r\n" + head + "\r\n").substr(9, 3);
  };
  const std::string own = "Host: 127.0.0.1:" + std::to_string(served.server.port()) + "\r\n";
  CHECK(status("Host: localhost:8080\r\n") == "200");  // a forwarded port
  CHECK(status("Host: evil.example\r\n") == "403");
  CHECK(status("Host: localhost.evil.example\r\n") == "403");
  CHECK(status("") == "403");
  CHECK(status("Host: localhost\r\nHost: evil.example\r\n") == "400");
  CHECK(status("Host: localhost\r\nOrigin: http://evil.example\r\n") == "403");
  CHECK(status("Host: localhost\r\nOrigin: null\r\n") == "403");
  CHECK(status("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n") == "403");
  CHECK(status("Host: localhost\r\nSec-Fetch-Site: same-site\r\n") == "403");
  CHECK(status(own + "Sec-Fetch-Site: same-origin\r\n") == "200");
  CHECK(status(own + "Origin: http://127.0.0.1:" + std::to_string(served.server.port()) + "\r\n") == "200");
  CHECK(served.ask("GET /events HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").substr(9, 3) == "403");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
    CHECK(served.ask(std::string(method) + " /api/experiments HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
              .substr(9, 3) == "405");
  CHECK(
      served.ask("POST /api/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello").substr(9, 3) ==
      "413");
  CHECK(served.ask("GET /" + std::string(200'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n").substr(9, 3) == "431");
  CHECK(served.get("/api/trials?filter=" + std::string(60'000, 'a')).substr(9, 3) == "200");
  CHECK(served.ask("nonsense\r\n\r\n").substr(9, 3) == "400");
}

TEST_CASE("a request with more than 64 KiB of headers is refused, and the server goes on") {
  support::TemporaryFolder folder;
  {
    auto journal = Journal::open(folder);
    begin(journal);
  }
  Served served({folder});
  std::string many;
  while (many.size() < std::size_t{64} << 10U) many += "X: " + std::string(1000, 'a') + "\r\n";
  for (const char* host : {"localhost", "evil.example"}) {
    const std::string head =
        std::string("GET /api/experiments HTTP/1.1\r\nConnection: close\r\nHost: ") + host + "\r\n";
    CHECK(served.ask(head + many + "\r\n").substr(0, 12) == "HTTP/1.1 431");
    CHECK(served.get("/api/experiments").substr(9, 3) == "200");
  }
}

TEST_CASE("the log of a trial is that in its own folder, and not what a link names") {
  support::TemporaryFolder folder, elsewhere;
  {
    auto journal = Journal::open(folder);
    begin(journal);
    for (TrialId id = 0; id < 3; ++id) trial(journal, id, 0.5);
  }
  fs::create_directories(elsewhere.path() / "folder");
  std::ofstream(elsewhere.path() / "folder/log") << "secret";
  fs::create_directories(folder.path() / "trials/0");
  std::ofstream(folder.path() / "trials/0/log") << "its own";
  fs::create_directory_symlink(elsewhere.path() / "folder", folder.path() / "trials/1");
  fs::create_directories(folder.path() / "trials/2");
  fs::create_symlink(elsewhere.path() / "folder/log", folder.path() / "trials/2/log");
  Served served({folder});
  served.eventually("/api/summary", [](json::object& o) { return !o.contains("reading") && o["reports"] == 6; });
  CHECK(served.body("/api/log?trial=0")["text"] == "its own");
  CHECK(served.body("/api/trial?trial=0")["log_bytes"] == 7);
  for (const char* id : {"1", "2"}) {
    CHECK(served.body(std::string("/api/log?trial=") + id)["text"] == "");
    CHECK(served.body(std::string("/api/trial?trial=") + id)["log_bytes"] == 0);
  }
}

TEST_CASE("servers of the model are those that hold their locks; nonsense and links are passed over") {
  const support::TemporaryFolder root;
  const auto serving = root.path() / "serving";
  std::vector<hypertune::detail::Descriptor> locks;
  const auto add = [&](const std::string& name, const std::string& status, bool alive) {
    std::filesystem::create_directories(serving / name);
    std::ofstream(serving / name / "status.json") << status;
    locks.push_back(hypertune::detail::open_at(AT_FDCWD, (serving / name / "lock").c_str(), O_RDWR | O_CREAT, 0644));
    if (alive) REQUIRE(::flock(locks.back().get(), LOCK_EX) == 0);
  };
  CHECK(dashboard::serving_answer(root.path()) == R"({"servers":[]})");
  add("0", R"({"live":"1-2"})", true);
  add("1", R"({"live":"0-2"})", false);
  add("2", R"({"live":)", true);
  add("3", "[1]", true);
  add("4", "{\"x\":\"" + std::string(100'000, 'x') + "\"}", true);
  add("elsewhere", R"({"live":"9-9"})", true);
  std::filesystem::remove(serving / "3" / "status.json");
  std::filesystem::create_symlink(serving / "elsewhere" / "status.json", serving / "3" / "status.json");
  std::filesystem::rename(serving / "elsewhere", root.path() / "elsewhere");
  std::filesystem::create_directory_symlink(root.path() / "elsewhere", serving / "5");
  CHECK(dashboard::serving_answer(root.path()) == R"({"servers":[{"live":"1-2"}]})");
}

TEST_CASE("half-open and silent clients are dropped, and make room for others") {
  support::TemporaryFolder folder;
  {
    auto journal = Journal::open(folder);
    begin(journal);
  }
  dashboard::ServerLimits limits;
  limits.connections = 4;
  limits.streams = 2;
  limits.first = limits.request = 100ms;
  Served served({folder}, false, limits);
  {
    RawClient silent(served.server.port());
    CHECK(silent.rest().empty());
    RawClient half(served.server.port());
    half.send("GET / HTTP/1.1\r\nHo");
    CHECK(half.rest().empty());
  }
  std::vector<RawClient> crowd;
  for (int i = 0; i < 30; ++i) crowd.emplace_back(served.server.port());
  CHECK(served.get("/api/experiments").starts_with("HTTP/1.1 200"));
  crowd.clear();
  std::vector<RawClient> streams;
  for (int i = 0; i < 2; ++i) {
    streams.emplace_back(served.server.port());
    streams.back().send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    streams.back().until("retry: 1000\n\n");
  }
  CHECK(served.get("/events").starts_with("HTTP/1.1 503"));
  CHECK(served.get("/api/experiments").starts_with("HTTP/1.1 200"));
}

TEST_CASE("events tell of what a run records, while it goes on, is cut off, and is resumed") {
  support::TemporaryFolder folder;
  auto journal = std::make_unique<Journal>(Journal::open(folder));
  begin(*journal);
  journal->flush();
  Served served({folder});
  served.eventually("/api/summary", [](json::object& o) { return o["state"] == "running"; });
  RawClient events(served.server.port());
  events.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK_THAT(events.until("\r\n\r\n"), ContainsSubstring("Content-Type: text/event-stream"));
  events.until("retry: 1000\n\n");
  trial(*journal, 0, 0.5, false);
  journal->flush();
  const auto changed = [&](auto holds) {
    for (;;) {
      const auto event = events.until("\n\n");
      const auto data = event.find("event: changed\ndata: ");
      if (data == std::string::npos) continue;
      const auto value = json::parse(event.substr(data + 21)).as_object();
      if (holds(value)) return value;
    }
  };
  const auto first = changed([](const json::object& o) { return !o.at("best").is_null(); });
  CHECK(first.at("best").at("value") == 0.5);
  CHECK(first.at("counts").at("running") == 1);
  CHECK(first.at("state") == "running");
  const auto version = first.at("version").to_number<int>();
  journal.reset();  // the driver has gone, without a word
  const auto second = changed([](const json::object& o) { return o.at("state") == "killed"; });
  CHECK(second.at("counts").at("running") == 0);
  CHECK(second.at("counts").at("pending") == 1);
  auto again = Journal::open(folder);
  again.append(20,
               record::ExperimentStarted{"small", {maximize("accuracy")}, "", "random", "fifo", "threads", 4, 1, true});
  again.append(21, record::TrialStarted{0, 1, 2, "there", {0}, {}});
  again.append(22, record::TrialReported{0, 1, 2, {{"accuracy", 0.9}}});
  again.append(23, record::TrialEnded{0, TrialState::completed, std::nullopt});
  again.append(24, record::ExperimentEnded{});
  again.flush();
  const auto third = changed([](const json::object& o) { return o.at("state") == "ended"; });
  CHECK(third.at("version").to_number<int>() > version);
  CHECK(third.at("best").at("value") == 0.9);
  const auto row = served.body("/api/trial?trial=0");
  CHECK(row.at("attempts").as_array().size() == 2);
  CHECK(row.at("attempts").at(0).at("end_kind") == "lost");
  CHECK(row.at("attempts").at(1).at("host") == "there");
  CHECK(served.body("/api/summary").at("resumed") == 1);
}

TEST_CASE("experiments come and go in a folder, and damaged ones say what is amiss") {
  support::TemporaryFolder root;
  const auto make = [&](const std::string& name) {
    auto journal = Journal::open(root.path() / name);
    begin(journal, name);
    trial(journal, 0, 0.5);
  };
  make("one");
  Served served({root});
  const auto ids = [](json::object& o) {
    std::string all;
    for (auto& each : o["experiments"].as_array())
      all += std::string(each.at("id").as_string()) + "=" + std::string(each.at("state").as_string()) + " ";
    return all;
  };
  served.eventually("/api/experiments", [&](json::object& o) { return ids(o) == "one=killed "; });
  make("deep/er/two");
  served.eventually("/api/experiments", [&](json::object& o) { return ids(o) == "deep/er/two=killed one=killed "; });
  fs::remove_all(root.path() / "one");
  served.eventually("/api/experiments", [&](json::object& o) { return ids(o) == "deep/er/two=killed "; });
  CHECK(served.get("/api/summary?experiment=one").starts_with("HTTP/1.1 404"));
  fs::create_directories(root.path() / "broken");
  std::ofstream(root.path() / "broken/experiment.db") << std::string(9000, 'x');
  served.eventually("/api/experiments",
                    [&](json::object& o) { return ids(o) == "broken=unreadable deep/er/two=killed "; });
  const auto error = served.body("/api/summary?experiment=broken");
  CHECK(error.at("state") == "unreadable");
  CHECK(error.if_contains("counts") == nullptr);
  served.body("/api/trials?experiment=broken", 500);
  CHECK_THAT(std::string(error.at("error").as_string()), ContainsSubstring("no readable hypertune journal"));
  // A name that is markup is a name.
  make("<script>alert(1)<");
  served.eventually("/api/experiments", [&](json::object& o) { return ids(o).find("<script>") != std::string::npos; });
  CHECK(served.body("/api/summary?experiment=%3Cscript%3Ealert(1)%3C").at("name") == "<script>alert(1)<");
}

TEST_CASE("a folder that vanishes is still shown, and begins anew where another experiment takes its place") {
  support::TemporaryFolder root;
  const fs::path folder = root.path() / "one";
  const auto make = [&](const std::string& name, int trials) {
    auto journal = Journal::open(folder);
    begin(journal, name);
    for (int i = 0; i < trials; ++i) trial(journal, i, 0.5);
  };
  make("first", 3);
  Served served({folder});
  served.eventually("/api/summary", [](json::object& o) { return o["reports"] == 6 && o["state"] == "killed"; });
  fs::remove_all(folder);
  const auto gone = served.eventually("/api/summary", [](json::object& o) { return o["state"] == "unreadable"; });
  CHECK_THAT(std::string(gone.at("why").as_string()), ContainsSubstring("vanished"));
  CHECK(gone.at("name") == "first");
  make("second", 1);
  served.eventually("/api/summary", [](json::object& o) { return o["name"] == "second" && o["reports"] == 2; });
}

TEST_CASE("while a record is read for the first time, nothing is guessed from a part of it") {
  support::TemporaryFolder folder;
  {
    auto journal = Journal::open(folder);
    begin(journal);
    trial(journal, 0, 0.5, false);
    for (int step = 2; step < 20'000; ++step)
      journal.append(7, record::TrialReported{0, 0, step, {{"accuracy", 0.25}}});
  }
  Served served({folder});
  const auto all = served.eventually("/api/summary", [](json::object& o) {
    if (o.contains("reading")) CHECK(o["state"] == "reading");
    return !o.contains("reading");
  });
  CHECK(all.at("state") == "killed");
  CHECK(all.at("reports") == 20'000);
  CHECK(all.at("counts").at("running") == 0);
}

TEST_CASE("gzip of any text comes back as it was") {
  support::RandomRecords random(3);
  for (int i = 0; i < 30; ++i) {
    std::string text;
    for (auto n = random.integer(0, 3000); n > 0; --n) text += random.text();
    const auto packed = dashboard::gzipped(text);
    CHECK(dashboard::gunzipped(packed, 1 << 20) == text);
    if (text.size() > 100) CHECK(!dashboard::gunzipped(packed.substr(0, packed.size() / 2), 1 << 20));
  }
  CHECK(!dashboard::gunzipped("nothing", 100));
}
