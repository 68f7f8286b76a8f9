// What goes wrong on the way: cuts, deaths, stops, damage.
#include "transfer_support.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <stop_token>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;
using namespace std::chrono_literals;

namespace {

const Files& some_files() {
  static const Files files{
      {"model.bin", random_bytes(1, 4'000'000)}, {"small/1", "1"}, {"small/2", random_bytes(2, 3000)}};
  return files;
}

struct Served : TwoNodes {
  explicit Served(const Files& files = some_files()) : info(save(source, 0, 3, files)) {
    auto o = options();
    o.listen = UnixSocket{socket("server")};
    server = std::make_unique<CheckpointServer>(o);
  }
  CheckpointInfo info;
  std::unique_ptr<CheckpointServer> server;
};

}  // namespace

TEST_CASE("a transfer that is cut at any byte goes on where it was") {
  const auto seed = static_cast<unsigned>(GENERATE(1, 2, 3, 4, 5, 6));
  std::mt19937_64 random(seed);
  Served nodes;
  std::mutex mutex;
  Meddling meddling;
  meddling.cut_after = [&](int) {
    const std::lock_guard lock(mutex);
    // Between a byte of a header and a good part of the content.
    return random() % 3 == 0 ? random() % 600 : random() % 1'500'000;
  };
  Proxy proxy(nodes.socket("proxy"), nodes.socket("server"), meddling);
  FetchOptions options;
  options.retries = 30;
  options.streams = 1 + static_cast<int>(seed % 3);
  if (seed % 2 == 0) options.content_id = content_id(nodes.source, nodes.info);
  const auto report = fetch_checkpoint(proxy.endpoint(), nodes.info, nodes.target, options);
  require_files(nodes.target, report.checkpoint, some_files());
  CHECK(report.reconnects > 0);
  // With chunks, at most the rest of one is moved again for each cut.
  CHECK(report.bytes_moved <=
        nodes.info.bytes + static_cast<std::uint64_t>(report.reconnects) * (options.content_id.empty() ? 0 : 65536));
  CHECK(nodes.partial(0).empty());
}

TEST_CASE("calls that fail leave what has come for the next one") {
  Served nodes;
  std::atomic<int> calls{0};
  Meddling meddling;
  meddling.cut_after = [&](int) { return 700'000; };
  Proxy proxy(nodes.socket("proxy"), nodes.socket("server"), meddling);
  FetchOptions options;
  options.retries = 0;
  options.streams = 1;
  std::uint64_t moved = 0;
  for (;;) try {
      const auto report = fetch_checkpoint(proxy.endpoint(), nodes.info, nodes.target, options);
      moved = report.bytes_resumed + report.bytes_moved;
      require_files(nodes.target, report.checkpoint, some_files());
      break;
    } catch (const Error& e) {
      CHECK(e.code() == Errc::io);
      CHECK(nodes.target.list(0).empty());
      REQUIRE(++calls < 30);
    }
  CHECK(calls >= 4);
  CHECK(moved == nodes.info.bytes);
}

TEST_CASE("a process that is killed while it fetches has lost little") {
  Served nodes({{"model.bin", random_bytes(1, 12'000'000)}, {"b", "b"}});
  nodes.server->set_rate_limit(20'000'000);
  int out[2];
  REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
  const std::string endpoint = nodes.server->endpoint().to_string(),
                    target = (nodes.directory.path() / "target").string();
  const std::string steps = std::to_string(nodes.info.steps);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::execl(HYPERTUNE_TRANSFER_WORKER, "transfer_worker", endpoint.c_str(), target.c_str(), "0", steps.c_str(),
            nodes.info.name.c_str(), nodes.info.digest.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(out[1]);
  char line[7];
  const auto n = ::read(out[0], line, sizeof line);
  CHECK(n == 7);  // content is coming
  REQUIRE(::kill(child, SIGKILL) == 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  ::close(out[0]);
  CHECK(nodes.target.list(0).empty());
  nodes.target.recover(0);  // what the next start of a driver does: it leaves this alone
  nodes.server->set_rate_limit(0);
  const auto report = fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target);
  CHECK(report.bytes_resumed > 0);
  CHECK(report.bytes_moved + report.bytes_resumed == nodes.info.bytes);
  require_files(nodes.target, report.checkpoint, {{"model.bin", random_bytes(1, 12'000'000)}, {"b", "b"}});
}

TEST_CASE("a fetch that is stopped ends soon, and the next goes on") {
  Served nodes;
  nodes.server->set_rate_limit(1'000'000);
  std::stop_source stop;
  FetchOptions options;
  options.on_progress = [&](const FetchProgress& progress) {
    if (progress.moved > 0) stop.request_stop();
  };
  const auto [code, text] = error_of([&] {
    static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options, stop.get_token()));
  });
  CHECK(code == Errc::io);
  CHECK_THAT(text, ContainsSubstring("stopped"));
  nodes.server->set_rate_limit(0);
  const auto report = fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target);
  CHECK(report.bytes_resumed > 0);
  require_files(nodes.target, report.checkpoint, some_files());
}

TEST_CASE("one that is stopped before it begins does nothing") {
  Served nodes;
  std::stop_source stop;
  stop.request_stop();
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, {}, stop.get_token()));
        }).first == Errc::io);
  CHECK(nodes.partial(0).empty());
}

TEST_CASE("a deadline holds while the server drips") {
  Served nodes;
  nodes.server->set_rate_limit(100'000);
  FetchOptions options;
  options.deadline = std::chrono::steady_clock::now() + 300ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto [code, text] = error_of(
      [&] { static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options)); });
  CHECK(code == Errc::io);
  CHECK_THAT(text, ContainsSubstring("time"));
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("bytes that change on the way are noticed, and nothing is sealed") {
  Served nodes;
  const bool with_id = GENERATE(false, true);
  Meddling meddling;
  meddling.spoil = [](int, std::uint64_t at, char* data, std::size_t size) {
    if (at <= 2'000'000 && 2'000'000 < at + size) data[2'000'000 - at] ^= 4;
  };
  FetchOptions options;
  options.streams = 1;
  if (with_id) options.content_id = content_id(nodes.source, nodes.info);
  {
    Proxy proxy(nodes.socket("proxy"), nodes.socket("server"), meddling);
    const auto [code, text] =
        error_of([&] { static_cast<void>(fetch_checkpoint(proxy.endpoint(), nodes.info, nodes.target, options)); });
    CHECK(code == Errc::corrupt);
    CHECK_THAT(text, ContainsSubstring(with_id ? "chunk" : "'model.bin'"));
    CHECK(nodes.target.list(0).empty());
  }
  // What was wrong is not kept: the next try, from an honest peer, is right.
  const auto report = fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options);
  require_files(nodes.target, report.checkpoint, some_files());
}

TEST_CASE("bytes that change on the disk after they came are fetched again") {
  Served nodes;
  nodes.server->set_rate_limit(3'000'000);
  std::stop_source stop;
  FetchOptions options;
  options.on_progress = [&](const FetchProgress& progress) {
    if (progress.done > 1'000'000) stop.request_stop();
  };
  CHECK(error_of([&] {
          static_cast<void>(
              fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options, stop.get_token()));
        }).first == Errc::io);
  REQUIRE(nodes.partial(0).size() == 1);
  const auto file = std::filesystem::path(nodes.partial(0).front()) / "files" / "model.bin";
  auto bytes = read_file(file);
  REQUIRE(bytes.size() > 1000);
  bytes[500] ^= 1;
  write_file(file, bytes);
  nodes.server->set_rate_limit(0);
  FetchOptions again;
  if (GENERATE(false, true)) again.content_id = content_id(nodes.source, nodes.info);
  require_files(nodes.target, fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, again).checkpoint,
                some_files());
}

TEST_CASE("a progress log of nonsense does no harm") {
  Served nodes;
  const auto folder = nodes.target.folder(0) / (".incoming-" + nodes.info.digest);
  std::filesystem::create_directories(folder / "files");
  const std::uint64_t pairs[] = {5, 3, 0, UINT64_MAX, 0, 1'000'000, 2'000'000, nodes.info.bytes};
  write_file(folder / "progress", std::string(reinterpret_cast<const char*>(pairs), sizeof pairs) + "torn");
  require_files(nodes.target, fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target).checkpoint,
                some_files());
}

TEST_CASE("a server that is stopped in the middle is an error in the end, and another server goes on") {
  Served nodes;
  nodes.server->set_rate_limit(2'000'000);
  FetchOptions options;
  options.retries = 1;
  std::atomic<bool> moving{false};
  options.on_progress = [&](const FetchProgress& progress) {
    if (progress.moved > 0) {
      moving = true;
      moving.notify_all();
    }
  };
  std::jthread stopper([&] {
    moving.wait(false);
    nodes.server->stop();
  });
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options));
        }).first == Errc::io);
  stopper.join();
  CheckpointServer other(nodes.options());
  require_files(nodes.target, fetch_checkpoint(other.endpoint(), nodes.info, nodes.target).checkpoint, some_files());
}

TEST_CASE("a checkpoint that is dropped while it is fetched is an error, or arrives whole") {
  Served nodes;
  nodes.server->set_rate_limit(3'000'000);
  FetchOptions options;
  std::atomic<bool> dropped{false};
  options.on_progress = [&](const FetchProgress& progress) {
    if (progress.moved > 0 && !dropped.exchange(true)) nodes.source.drop(nodes.info);
  };
  const auto [code, text] = error_of(
      [&] { static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options)); });
  CHECK(code == Errc::corrupt);
  CHECK(nodes.target.list(0).empty());
}

TEST_CASE("what interrupted fetches left goes when it is old, and never one under way") {
  Served nodes;
  nodes.server->set_rate_limit(1'000'000);
  FetchOptions options;
  options.deadline = std::chrono::steady_clock::now() + 300ms;
  std::size_t during = 0;
  options.on_progress = [&](const FetchProgress&) {
    drop_partial_fetches(nodes.target, 0, 0s);
    during = nodes.partial(0).size();
  };
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options));
        }).first == Errc::io);
  CHECK(during == 1);
  REQUIRE(nodes.partial(0).size() == 1);
  drop_partial_fetches(nodes.target, 0, 1h);
  CHECK(nodes.partial(0).size() == 1);
  drop_partial_fetches(nodes.target, 0, 0s);
  CHECK(nodes.partial(0).empty());
}
