// Hosts of a test's own: real sshd, each with its own network, processes and home where this machine allows it.
#pragma once

#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/ssh/connection.hpp>

#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// What a local program printed, and its exit code.
struct Said {
  int exit = 0;
  std::string out, err;
};
inline Said local_command(const std::vector<std::string>& words, double deadline = 60) {
  const auto result = process::collect(words, {.deadline = deadline});
  return {.exit = result.late ? 124 : result.code(), .out = result.out, .err = result.err};
}

/// The error that the call throws; a failed check if it throws none.
template <class Call>
ssh::SshError error_of(const Call& call) {
  try {
    call();
  } catch (const ssh::SshError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error;
  }
  FAIL("no error");
  throw 0;
}

/// Everything is taken down by the destructor, and when this process dies. Hosts count from 1: "host1", "host2", …
class TestHosts {
 public:
  struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  explicit TestHosts(int count, std::vector<std::string> options = {}) {
    std::vector<std::string> words{"up", std::to_string(count), "--owner", std::to_string(::getpid())};
    words.insert(words.end(), options.begin(), options.end());
    tell(words);
  }
  TestHosts(const TestHosts&) = delete;
  TestHosts& operator=(const TestHosts&) = delete;
  ~TestHosts() {
    try {
      tell({"down"});
    } catch (const std::exception& error) { WARN(error.what()); }
  }

  std::filesystem::path config() const { return state_ / "ssh_config"; }
  std::filesystem::path state() const { return state_; }
  ssh::SshOptions options() const {
    ssh::SshOptions options;
    options.config = config();
    return options;
  }
  ssh::SshConnection open(int host = 1, double deadline = 30) const {
    return ssh::SshConnection::open(name(host), options(), deadline);
  }
  static std::string name(int host) { return "host" + std::to_string(host); }

  void kill(int host) { tell({"kill", std::to_string(host)}); }  ///< `up(n)` brings it back, with its files
  void wipe(int host) { tell({"kill", std::to_string(host), "--wipe"}); }
  void up(int count) { tell({"up", std::to_string(count)}); }
  void cut(int host) { tell({"cut", std::to_string(host)}); }
  void heal(int host) { tell({"heal", std::to_string(host)}); }
  std::string add(const std::vector<std::string>& line = {}) {
    std::vector<std::string> words{"add"};
    words.insert(words.end(), line.begin(), line.end());
    auto name = tell(words);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }
  /// Runs a shell script as root within a host, without ssh; throws unless it ends with 0.
  std::string exec(int host, const std::string& script) {
    return tell({"exec", std::to_string(host), "--", "sh", "-c", script});
  }
  /// The processes of a host whose command line contains `text`.
  int processes(int host, const std::string& text) {
    const auto out = exec(host, "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null; true");
    int n = 0;
    for (std::size_t begin = 0; begin < out.size();) {
      const auto end = std::min(out.find('\n', begin), out.size());
      const auto line = out.substr(begin, end - begin);
      n += line.find(text) != std::string::npos && line.find("/proc/[0-9]*") == std::string::npos ? 1 : 0;
      begin = end + 1;
    }
    return n;
  }

 private:
  std::string tell(std::vector<std::string> words) {
    words.insert(words.begin(), {"python3", HYPERTUNE_TEST_HOSTS, state_.string()});
    const auto said = local_command(words);
    if (said.exit == 3) throw Unavailable(said.err);
    if (said.exit != 0) throw std::runtime_error(words[3] + ": " + said.err);
    return said.out;
  }

  TemporaryDirectory folder_;
  std::filesystem::path state_ = folder_.path() / "hosts";
};

/// Hosts with namespaces of their own, or null, and a warning why the test is skipped.
///
///     const auto hosts = test_hosts(3, {"--delay", "20"});
///     if (!hosts) return;
inline std::unique_ptr<TestHosts> test_hosts(int count, std::vector<std::string> options = {}) {
  try {
    return std::make_unique<TestHosts>(count, std::move(options));
  } catch (const TestHosts::Unavailable& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

/// The same, or else servers on ports of this machine, for tests that need no network, kill or root of their own.
inline std::unique_ptr<TestHosts> plain_test_hosts(int count) {
  try {
    return std::make_unique<TestHosts>(count);
  } catch (const TestHosts::Unavailable&) { return test_hosts(count, {"--plain"}); }
}

}  // namespace hypertune::inline v0::test
