// What a checkpoint's way from node to node costs, beside raw TCP and scp on the same machine in the same minutes.
// Usage: benchmark_transfer [FOLDER] [--mib N] [--rounds N]    FOLDER holds some GB; see benchmarks/README.md
//        benchmark_transfer [FOLDER] --states PAIRS            PAIRS as states.py makes them
#include "../processor_seconds.hpp"

#include <hypertune/checkpoint/transfer/transfer.hpp>
#include <hypertune/error.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hypertune;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Cost {
  double seconds = 0, processor = 0;
  friend bool operator<(const Cost& a, const Cost& b) { return a.seconds < b.seconds; }
};

Cost timed(const std::function<void()>& work) {
  const auto begin = Clock::now();
  const double before = processor_seconds();
  work();
  return {std::chrono::duration<double>(Clock::now() - begin).count(), processor_seconds() - before};
}

Cost median(std::vector<Cost> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Random bytes; every byte of [from, to) is another than with another seed there.
void write_random(const fs::path& path, std::uint64_t size, std::uint64_t seed, std::uint64_t from = 0,
                  std::uint64_t to = 0) {
  std::ofstream out(path, std::ios::binary);
  std::vector<std::uint64_t> block(32768);
  for (std::uint64_t at = 0; at < size; at += block.size() * 8) {
    std::uint64_t state = (at >= from && at < to ? seed + 1000 : seed) * 0x9E3779B97F4A7C15U + at;
    for (auto& word : block) {
      state += 0x9E3779B97F4A7C15U;
      std::uint64_t z = (state ^ (state >> 30U)) * 0xBF58476D1CE4E5B9U;
      z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
      word = z ^ (z >> 31U);
    }
    out.write(reinterpret_cast<const char*>(block.data()),
              static_cast<std::streamsize>(std::min<std::uint64_t>(block.size() * 8, size - at)));
  }
}

CheckpointInfo save(LocalCheckpointStore& store, TrialId trial, int steps, std::uint64_t size, std::uint64_t seed,
                    std::uint64_t from = 0, std::uint64_t to = 0) {
  auto writer = store.begin(trial, steps);
  write_random(writer.file("model.bin"), size, seed, from, to);
  return store.seal(std::move(writer));
}

/// A file over loopback by read, send, recv and, if `to` is not empty, write: 256 KiB at a time, one process, two
/// threads.
void raw_tcp(const fs::path& from, const fs::path& to) {
  constexpr std::size_t block = std::size_t{256} << 10U;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail(Errc::io, "no loopback");
  std::thread sender([&] {
    const int out = ::accept(listener, nullptr, nullptr);
    const int in = ::open(from.c_str(), O_RDONLY);
    std::vector<char> buffer(block);
    for (ssize_t n = 0; (n = ::read(in, buffer.data(), block)) > 0;)
      for (ssize_t at = 0; at < n;)
        at += std::max<ssize_t>(0, ::send(out, buffer.data() + at, static_cast<std::size_t>(n - at), 0));
    ::close(in);
    ::close(out);
  });
  const int in = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(in, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail(Errc::io, "no loopback");
  const int out = to.empty() ? -1 : ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::vector<char> buffer(block);
  for (ssize_t n = 0; (n = ::recv(in, buffer.data(), block, 0)) > 0;)
    if (out >= 0)
      for (ssize_t at = 0; at < n;)
        at += std::max<ssize_t>(0, ::write(out, buffer.data() + at, static_cast<std::size_t>(n - at)));
  sender.join();
  ::close(in);
  ::close(listener);
  if (out >= 0) ::close(out);
}

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// An sshd of this user's own on loopback; stopped at the end.
class Sshd {
 public:
  explicit Sshd(fs::path folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    const std::string f = folder_.string();
    for (const char* key : {"host", "user"})
      if (!fs::exists(folder_ / key) && !run(fmt::format("ssh-keygen -q -t ed25519 -N '' -f '{}/{}'", f, key))) return;
    fs::copy_file(folder_ / "user.pub", folder_ / "authorized", fs::copy_options::overwrite_existing);
    port_ = 20000 + static_cast<int>(::getpid() % 20000);
    std::ofstream(folder_ / "config") << fmt::format(
        "Port {}\nListenAddress 127.0.0.1\nHostKey {}/host\nPidFile {}/pid\nAuthorizedKeysFile {}/authorized\nUsePAM "
        "no\n"
        "StrictModes no\nSubsystem sftp internal-sftp\n",
        port_, f, f, f);
    run("mkdir -p /run/sshd");
    if (!run(fmt::format("$(command -v sshd || echo /usr/sbin/sshd) -f '{}/config'", f))) return;
    options_ = fmt::format(
        "-q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -i '{}/user' -P {}", f, port_);
    up_ = true;
  }
  ~Sshd() {
    if (up_) run(fmt::format("kill $(cat '{}/pid')", folder_.string()));
  }
  bool copy(const fs::path& from, const fs::path& to) const {
    return up_ && run(fmt::format("scp {} '{}' 127.0.0.1:'{}'", options_, from.string(), to.string()));
  }

 private:
  fs::path folder_;
  int port_ = 0;
  std::string options_;
  bool up_ = false;
};

std::uint64_t memory_of_process(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + std::strlen(key) + 1, nullptr, 10) * 1024;
  return 0;
}

struct Bench {
  fs::path folder;
  std::uint64_t size;
  int rounds;
  double raw_to_file = 0;

  LocalCheckpointStore source() const { return LocalCheckpointStore(folder / "source", {.sync = false}); }
  /// An empty one.
  LocalCheckpointStore target() const {
    fs::remove_all(folder / "target");
    return LocalCheckpointStore(folder / "target", {.sync = false});
  }
  void row(const std::string& what, const Cost& cost, std::uint64_t bytes, const std::string& more = {}) const {
    const double rate = static_cast<double>(bytes) / cost.seconds / 1e6;
    const std::string share = raw_to_file > 0 && bytes == size ? fmt::format("{:.2f}", raw_to_file / cost.seconds) : "";
    fmt::print("| {:<58} | {:>8.3f} | {:>6.2f} | {:>7.0f} | {:>6} | {} |\n", what, cost.seconds, cost.processor, rate,
               share, more);
    std::fflush(stdout);
  }

  void throughput() {
    auto store = source();
    const auto info = save(store, 0, 1, size, 1);
    const auto file = store.folder(info) / "model.bin";
    const std::string id = content_id(store, info);
    CheckpointServer plain({.stores = {store}});
    CheckpointServerOptions with_tls{.stores = {store}};
    with_tls.tls = TlsIdentity::generate("benchmark");
    with_tls.token = Secret::generate();
    CheckpointServer secure(with_tls);
    const Sshd sshd(folder / "sshd");
    std::vector<Cost> raw, discard, fetch, strict, tls, scp;
    bool has_scp = true;
    const auto one = [&](const CheckpointServer& server, const std::string& content) {
      auto to = target();
      FetchOptions options;
      options.content_id = content;
      return timed([&] { static_cast<void>(fetch_checkpoint(server.endpoint(), info, to, options)); });
    };
    for (int i = 0; i < rounds; ++i) {  // in turn, so that what else the machine does is in all of them
      discard.push_back(timed([&] { raw_tcp(file, {}); }));
      fs::remove_all(folder / "target");
      fs::remove(folder / "raw");
      raw.push_back(timed([&] { raw_tcp(file, folder / "raw"); }));
      fs::remove(folder / "raw");
      fetch.push_back(one(plain, ""));
      strict.push_back(one(plain, id));
      tls.push_back(one(secure, ""));
      fs::remove_all(folder / "target");
      scp.push_back(timed([&] { has_scp = sshd.copy(file, folder / "raw") && has_scp; }));
      fs::remove(folder / "raw");
    }
    raw_to_file = median(raw).seconds;
    row("raw TCP, read-send, recv-write to a file", median(raw), size);
    row("raw TCP, read-send, recv and nothing more", median(discard), size);
    row("fetch_checkpoint, checked by XXH3", median(fetch), size,
        fmt::format("{:.2f} of raw TCP without a file", median(discard).seconds / median(fetch).seconds));
    row("fetch_checkpoint, each chunk checked by SHA-256 too", median(strict), size);
    row("fetch_checkpoint, TLS 1.3", median(tls), size,
        has_scp ? fmt::format("{:.1f} times scp", median(scp).seconds / median(tls).seconds)
                : "no sshd to compare with");
    if (has_scp) row("scp over loopback", median(scp), size);
  }

  void second() {
    auto store = source();
    auto to = target();
    CheckpointServer server({.stores = {store}});
    const auto one = save(store, 1, 1, size, 5);
    const auto two = save(store, 1, 2, size, 5, size / 3, size / 3 + size / 10);
    static_cast<void>(fetch_checkpoint(server.endpoint(), one, to));
    FetchReport report;
    const Cost cost = timed([&] { report = fetch_checkpoint(server.endpoint(), two, to); });
    row("a second checkpoint, a tenth of it changed", cost, size,
        fmt::format("moved {:.1f} % (and {:.2f} % of manifest and chunks)",
                    100.0 * static_cast<double>(report.bytes_moved) / static_cast<double>(size),
                    100.0 * static_cast<double>(report.bytes_overhead) / static_cast<double>(size)));
  }

  CheckpointInfo save_copy(LocalCheckpointStore& store, int steps, const fs::path& from) const {
    auto writer = store.begin(1, steps);
    for (const auto& file : fs::recursive_directory_iterator(from))
      if (file.is_regular_file())
        fs::copy_file(file.path(), writer.file(fs::relative(file.path(), from).string()),
                      fs::copy_options::overwrite_existing);
    return store.seal(std::move(writer));
  }

  /// What a receiver that has `old` fetches of `new`.
  void states(const fs::path& pairs) {
    std::vector<fs::path> all(fs::directory_iterator(pairs), fs::directory_iterator{});
    std::sort(all.begin(), all.end());
    fmt::print("| {:<58} | {:>6} | {:>7} | {:>6} | {:>6} |\n|{:-<60}|-------:|--------:|-------:|-------:|\n", "states",
               "MB", "moved %", "index %", "s", "");
    for (const auto& pair : all) {
      fs::remove_all(folder / "source");
      auto store = source();
      auto to = target();
      CheckpointServer server({.stores = {store}});
      const auto one = save_copy(store, 1, pair / "old");
      const auto two = save_copy(store, 2, pair / "new");
      static_cast<void>(fetch_checkpoint(server.endpoint(), one, to));
      FetchReport report;
      const Cost cost = timed([&] { report = fetch_checkpoint(server.endpoint(), two, to); });
      const auto share = [&](std::uint64_t bytes) {
        return 100.0 * static_cast<double>(bytes) / static_cast<double>(two.bytes);
      };
      fmt::print("| {:<58} | {:>6.1f} | {:>7.1f} | {:>6.2f} | {:>6.3f} |\n", pair.filename().string(),
                 static_cast<double>(two.bytes) / 1e6, share(report.bytes_moved), share(report.bytes_overhead),
                 cost.seconds);
    }
  }

  void small_files() {
    auto store = source();
    auto to = target();
    CheckpointServer server({.stores = {store}});
    auto writer = store.begin(2, 1);
    for (int i = 0; i < 10'000; ++i)
      write_random(writer.file(fmt::format("shard{}/{}", i % 10, i)), 4096, static_cast<std::uint64_t>(i));
    const auto info = store.seal(std::move(writer));
    const Cost cost = timed([&] { static_cast<void>(fetch_checkpoint(server.endpoint(), info, to)); });
    const double copy = timed([&] {
                          run(fmt::format("cp -r '{}' '{}/copied'", store.folder(info).string(), folder.string()));
                        }).seconds;
    row("10,000 files of 4 KiB", cost, info.bytes, fmt::format("cp -r of them: {:.2f} s", copy));
    fs::remove_all(folder / "copied");
  }

  /// In a process of its own, so that its peak is its own: server and clients together.
  void concurrent() {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = source();
      auto to = target();
      std::vector<CheckpointInfo> all;
      for (int i = 0; i < 50; ++i)
        all.push_back(save(store, 10 + i, 1, std::uint64_t{32} << 20U, static_cast<std::uint64_t>(i)));
      CheckpointServer server({.stores = {store}});
      const std::uint64_t before = memory_of_process("VmRSS:");
      std::vector<std::thread> threads;
      const Cost cost = timed([&] {
        for (const auto& info : all)
          threads.emplace_back([&] { static_cast<void>(fetch_checkpoint(server.endpoint(), info, to)); });
        for (auto& thread : threads) thread.join();
      });
      row("50 fetches of 32 MiB at once, server in the same process", cost, std::uint64_t{50 * 32} << 20U,
          fmt::format("peak {:.0f} MB resident ({:.0f} MB before)",
                      static_cast<double>(memory_of_process("VmHWM:")) / 1e6, static_cast<double>(before) / 1e6));
      std::fflush(stdout);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench{.folder = fs::temp_directory_path() / "hypertune-benchmark-transfer",
              .size = std::uint64_t{1} << 30U,
              .rounds = 3};
  fs::path pairs;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--mib" && i + 1 < argc)
      bench.size = std::strtoull(argv[++i], nullptr, 10) << 20U;
    else if (option == "--rounds" && i + 1 < argc)
      bench.rounds = std::max(1, std::atoi(argv[++i]));
    else if (option == "--states" && i + 1 < argc)
      pairs = argv[++i];
    else if (!option.starts_with("-"))
      bench.folder = fs::path(option) / "hypertune-benchmark-transfer";
    else
      return std::fprintf(stderr, "usage: benchmark_transfer [FOLDER] [--mib N] [--rounds N] [--states PAIRS]\n"), 2;
  }
  try {
    fs::remove_all(bench.folder);
    fs::create_directories(bench.folder);
    if (!pairs.empty()) {
      bench.states(pairs);
      fs::remove_all(bench.folder);
      return 0;
    }
    fmt::print("| {:<58} | {:>8} | {:>6} | {:>7} | {:>6} | |\n|{:-<60}|---------:|-------:|--------:|-------:|---|\n",
               "figure", "s", "CPU s", "MB/s", "of raw", "");
    bench.concurrent();  // the process that is forked has no threads yet
    bench.throughput();
    bench.second();
    bench.small_files();
    fs::remove_all(bench.folder);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
