// From one node's store to another's, by each carrier.
#include "transfer_support.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;

namespace {

Files mixed_files() {
  return {{"model.bin", random_bytes(1, 3'000'000)},
          {"empty", ""},
          {"shards/0", "a"},
          {"shards/deep/1", random_bytes(2, 70'000)},
          {"text", std::string(200'000, 'x')}};
}

/// A million floats' worth, of which each tensor is a stretch.
std::string weights(int version, std::size_t size) {
  std::string bytes = random_bytes(7, size);
  if (version > 0) {  // a tenth, in one stretch, is another
    const std::string other = random_bytes(static_cast<std::uint64_t>(100 + version), size / 10);
    bytes.replace(size / 3, other.size(), other);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a checkpoint arrives over sockets that its two sides are given") {
  TwoNodes nodes;
  const Files files = mixed_files();
  const auto info = save(nodes.source, 3, 27, files);
  auto options = nodes.options();
  options.listen = Unlistened{};
  options.token = Secret::generate();
  CheckpointServer server(options);
  std::atomic<int> connections{0};
  Endpoint from;
  from.token = options.token;
  from.address = Connector{.connect =
                               [&] {
                                 if (connections++ == 0) fail(Errc::io, "the first one is lost");
                                 int ends[2];
                                 REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
                                 server.serve(ends[0]);
                                 return ends[1];
                               },
                           .name = "the other side"};
  const auto report = fetch_checkpoint(from, info, nodes.target);
  CHECK(report.reconnects == 1);
  CHECK(report.bytes_moved == info.bytes);
  require_files(nodes.target, report.checkpoint, files);
  CHECK(fetch_checkpoint(from, info, nodes.target).was_here);
  server.stop();
  nodes.target.drop(report.checkpoint);
  FetchOptions once;
  once.retries = 1;
  const auto [kind, text] = error_of([&] { fetch_checkpoint(from, info, nodes.target, once); });
  CHECK(kind == Errc::io);
  CHECK_THAT(text, ContainsSubstring("the other side: "));
}

TEST_CASE("a checkpoint arrives whole, by every carrier") {
  TwoNodes nodes;
  const Files files = mixed_files();
  const auto info = save(nodes.source, 3, 27, files);
  auto options = nodes.options();
  SECTION("TCP") {}
  SECTION("a unix socket") { options.listen = UnixSocket{nodes.socket("s")}; }
  SECTION("a unix socket with a long path") {
    const auto folder = nodes.directory.path() / std::string(150, 'f');
    std::filesystem::create_directory(folder);
    options.listen = UnixSocket{folder / "s"};
  }
  SECTION("TCP with TLS and a token") {
    options.tls = TlsIdentity::generate("digits");
    options.token = Secret::generate();
  }
  SECTION("a unix socket with TLS") {
    options.listen = UnixSocket{nodes.socket("s")};
    options.tls = TlsIdentity::generate("digits");
  }
  CheckpointServer server(options);
  if (const auto* local = std::get_if<UnixSocket>(&options.listen))
    CHECK((std::filesystem::status(local->path).permissions() & std::filesystem::perms::mask) ==
          static_cast<std::filesystem::perms>(0600));
  const auto report = fetch_checkpoint(server.endpoint(), info, nodes.target);
  CHECK(report.checkpoint == info);
  CHECK(report.bytes_moved == info.bytes);
  CHECK(report.bytes_reused == 0);
  require_files(nodes.target, report.checkpoint, files);
  CHECK(nodes.partial(3).empty());

  CHECK(find_checkpoint(server.endpoint(), info, true) == info);
  CHECK(list_checkpoints(server.endpoint(), 3) == std::vector{info});
  CHECK(list_checkpoints(server.endpoint(), 4).empty());
  // Again: nothing is asked.
  const auto before = server.counters().requests;
  CHECK(fetch_checkpoint(server.endpoint(), info, nodes.target).bytes_moved == 0);
  CHECK(server.counters().requests == before);
}

TEST_CASE("an empty checkpoint arrives, and one of empty files") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  for (const Files& files : {Files{}, Files{{"a", ""}, {"b/c", ""}}}) {
    const auto info = save(nodes.source, 0, 1, files);
    require_files(nodes.target, fetch_checkpoint(server.endpoint(), info, nodes.target).checkpoint, files);
  }
}

TEST_CASE("a second checkpoint moves what has changed") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const std::size_t size = 24'000'000;
  const auto first =
      save(nodes.source, 0, 1, {{"model.bin", weights(0, size)}, {"same.bin", random_bytes(9, 1'000'000)}});
  const auto second =
      save(nodes.source, 0, 2, {{"model.bin", weights(1, size)}, {"same.bin", random_bytes(9, 1'000'000)}});
  static_cast<void>(fetch_checkpoint(server.endpoint(), first, nodes.target));
  FetchOptions options;
  SECTION("by its digest") {}
  SECTION("by its content id") { options.content_id = content_id(nodes.source, second); }
  const auto report = fetch_checkpoint(server.endpoint(), second, nodes.target, options);
  require_files(nodes.target, report.checkpoint,
                {{"model.bin", weights(1, size)}, {"same.bin", random_bytes(9, 1'000'000)}});
  CHECK(report.bytes_moved + report.bytes_reused == second.bytes);
  CHECK(report.bytes_moved < second.bytes / 7);
  CHECK(report.bytes_overhead < second.bytes / 50);
}

TEST_CASE("what another trial's checkpoint has is reused when it is named") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const auto donor = save(nodes.source, 5, 4, {{"model.bin", weights(0, 8'000'000)}});
  const auto taker = save(nodes.source, 6, 4, {{"model.bin", weights(0, 8'000'000)}, {"more", "x"}});
  const auto here = fetch_checkpoint(server.endpoint(), donor, nodes.target).checkpoint;
  FetchOptions options;
  options.bases = {here};
  const auto report = fetch_checkpoint(server.endpoint(), taker, nodes.target, options);
  CHECK(report.bytes_moved == 1);
  CHECK(report.bytes_reused == 8'000'000);
  // Its own node may drop the base meanwhile: that is no harm.
  nodes.target.drop(here);
  require_files(nodes.target, report.checkpoint, {{"model.bin", weights(0, 8'000'000)}, {"more", "x"}});
}

TEST_CASE("a base whose bytes have rotted is not taken over") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const auto first = save(nodes.source, 0, 1, {{"a", weights(0, 4'000'000)}, {"b", random_bytes(3, 500'000)}});
  const auto second = save(nodes.source, 0, 2, {{"a", weights(1, 4'000'000)}, {"b", random_bytes(3, 500'000)}});
  const auto here = fetch_checkpoint(server.endpoint(), first, nodes.target).checkpoint;
  static_cast<void>(content_id(nodes.target, here));  // its chunks are known from before the damage
  for (const char* name : {"a", "b"}) {
    auto bytes = read_file(nodes.target.folder(here) / name);
    bytes[123'456] ^= 1;
    write_file(nodes.target.folder(here) / name, bytes);
  }
  const auto report = fetch_checkpoint(server.endpoint(), second, nodes.target);
  require_files(nodes.target, report.checkpoint, {{"a", weights(1, 4'000'000)}, {"b", random_bytes(3, 500'000)}});
}

TEST_CASE("thousands of small files do not crawl") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  Files files;
  for (int i = 0; i < 3000; ++i)
    files[fmt::format("part{}/{}", i % 7, i)] =
        random_bytes(static_cast<std::uint64_t>(i), static_cast<std::size_t>(i % 900));
  const auto info = save(nodes.source, 0, 1, files);
  const auto before = server.counters().requests;
  const auto report = fetch_checkpoint(server.endpoint(), info, nodes.target);
  require_files(nodes.target, report.checkpoint, files);
  CHECK(server.counters().requests - before < 10);
}

TEST_CASE("what arrives is forced to the disk where its store does that, few files or many") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  LocalCheckpointStore target(nodes.directory.path() / "synced");
  Files many{{"deep/er/model.bin", random_bytes(1, 300'000)}};
  for (int i = 0; i < 100; ++i) many[fmt::format("many/{}", i)] = std::to_string(i);
  for (const Files& files : {mixed_files(), many}) {
    const auto info = save(nodes.source, 0, 1, files);
    require_files(target, fetch_checkpoint(server.endpoint(), info, target).checkpoint, files);
  }
}

TEST_CASE("many fetches at once, of the same and of others") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  std::vector<CheckpointInfo> all;
  std::vector<Files> files;
  for (int i = 0; i < 6; ++i) {
    files.push_back({{"model.bin", random_bytes(static_cast<std::uint64_t>(i), 6'000'000)}});
    all.push_back(save(nodes.source, i, 1, files.back()));
  }
  std::atomic<std::uint64_t> moved{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 24; ++i)
    threads.emplace_back([&, i] {
      moved += fetch_checkpoint(server.endpoint(), all[static_cast<std::size_t>(i % 6)], nodes.target).bytes_moved;
    });
  for (auto& thread : threads) thread.join();
  CHECK(moved == 36'000'000);  // each once
  for (std::size_t i = 0; i < 6; ++i) require_files(nodes.target, all[i], files[i]);
}

TEST_CASE("a name that is taken here by another checkpoint is not lost") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const auto mine = save(nodes.target, 0, 5, {{"a", "mine"}});
  const auto theirs = save(nodes.source, 0, 5, {{"a", "theirs"}});
  REQUIRE(mine.name == theirs.name);
  const auto report = fetch_checkpoint(server.endpoint(), theirs, nodes.target);
  CHECK(report.checkpoint.name != mine.name);
  require_files(nodes.target, mine, {{"a", "mine"}});
  require_files(nodes.target, report.checkpoint, {{"a", "theirs"}});
  CHECK(find_checkpoint(nodes.target, theirs) == report.checkpoint);
}

TEST_CASE("a shared directory is a store, too") {
  TwoNodes nodes;
  const Files files = mixed_files();
  const auto info = save(nodes.source, 2, 9, files);
  const Endpoint shared{.address = SharedDirectory{nodes.directory.path() / "source"}, .certificate = {}, .token = {}};
  FetchOptions options;
  SECTION("by copies") {}
  SECTION("by hard links") { options.hard_links = true; }
  CHECK(find_checkpoint(shared, info) == info);
  const auto report = fetch_checkpoint(shared, info, nodes.target, options);
  require_files(nodes.target, report.checkpoint, files);
  nodes.source.drop(info);
  require_files(nodes.target, report.checkpoint, files);
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(shared, save(nodes.target, 7, 7, {}), nodes.source));
        }).first == Errc::corrupt);
}

TEST_CASE("a damaged checkpoint in a shared directory is refused") {
  TwoNodes nodes;
  const auto info = save(nodes.source, 2, 9, {{"a", random_bytes(1, 100'000)}});
  write_file(nodes.source.folder(info) / "a", random_bytes(2, 100'000));
  const Endpoint shared{.address = SharedDirectory{nodes.directory.path() / "source"}, .certificate = {}, .token = {}};
  FetchOptions options;
  options.hard_links = true;
  const auto [code, text] = error_of([&] { static_cast<void>(fetch_checkpoint(shared, info, nodes.target, options)); });
  CHECK(code == Errc::corrupt);
  CHECK_THAT(text, ContainsSubstring("'a'"));
  CHECK(nodes.target.list(2).empty());
}

TEST_CASE("compressible content travels compressed where the link is slow, and arrives the same") {
  TwoNodes nodes;
  auto options = nodes.options();
  options.rate_limit = 4'000'000;
  CheckpointServer server(options);
  std::string text;
  while (text.size() < 8'000'000) text += fmt::format("epoch {} loss {}\n", text.size() % 977, text.size() % 31);
  const auto info = save(nodes.source, 0, 1, {{"log", text}, {"noise", random_bytes(5, 300'000)}});
  SECTION("allowed") {
    const auto report = fetch_checkpoint(server.endpoint(), info, nodes.target);
    CHECK(report.bytes_moved < info.bytes / 2);
    require_files(nodes.target, report.checkpoint, {{"log", text}, {"noise", random_bytes(5, 300'000)}});
  }
  SECTION("not allowed") {
    FetchOptions fetch;
    fetch.compress = false;
    CHECK(fetch_checkpoint(server.endpoint(), info, nodes.target, fetch).bytes_moved == info.bytes);
  }
}

TEST_CASE("rates are kept, on either side") {
  TwoNodes nodes;
  auto options = nodes.options();
  const auto info = save(nodes.source, 0, 1, {{"a", random_bytes(1, 1'500'000)}});
  FetchOptions fetch;
  SECTION("the server's") { options.rate_limit = 3'000'000; }
  SECTION("the fetch's") { fetch.rate_limit = 3'000'000; }
  SECTION("a shared one") { fetch.shared_rate = std::make_shared<TokenBucket>(3'000'000); }
  CheckpointServer server(options);
  const auto report = fetch_checkpoint(server.endpoint(), info, nodes.target, fetch);
  CHECK(report.took.count() > 0.35);  // half a second, less the burst
  require_files(nodes.target, report.checkpoint, {{"a", random_bytes(1, 1'500'000)}});
}

TEST_CASE("progress is told and ends with all of it") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const auto info = save(nodes.source, 0, 1, {{"a", random_bytes(1, 5'000'000)}});
  FetchOptions options;
  std::mutex mutex;
  FetchProgress last;
  std::uint64_t backwards = 0;
  options.on_progress = [&](const FetchProgress& progress) {
    const std::lock_guard lock(mutex);
    if (progress.done < last.done) ++backwards;
    last = progress;
  };
  static_cast<void>(fetch_checkpoint(server.endpoint(), info, nodes.target, options));
  CHECK(last.done == info.bytes);
  CHECK(last.bytes == info.bytes);
  CHECK(backwards == 0);
}

TEST_CASE("retention asks whether a copy is complete") {
  TwoNodes nodes;
  CheckpointServer server(nodes.options());
  const auto info = save(nodes.source, 1, 2, {{"a", random_bytes(1, 10'000)}, {"b", "x"}});
  CHECK(find_checkpoint(server.endpoint(), info) == info);
  auto renamed = info;
  renamed.name = "called-otherwise";
  CHECK(find_checkpoint(server.endpoint(), renamed) == info);
  auto other = info;
  other.digest[0] = other.digest[0] == 'a' ? 'b' : 'a';
  CHECK_FALSE(find_checkpoint(server.endpoint(), other));
  CHECK_FALSE(find_checkpoint(nodes.target, info));
  write_file(nodes.source.folder(info) / "a", random_bytes(2, 10'000));
  CHECK(find_checkpoint(server.endpoint(), info));  // its sizes are right
  CHECK_FALSE(find_checkpoint(server.endpoint(), info, true));
  std::filesystem::remove(nodes.source.folder(info) / "a");
  CHECK_FALSE(find_checkpoint(server.endpoint(), info));
  nodes.source.drop(info);
  CHECK_FALSE(find_checkpoint(server.endpoint(), info));
}
