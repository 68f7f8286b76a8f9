#include "support/temporary_directory.hpp"
#include "support/test.hpp"
#include "variable.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/host_source.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <stop_token>
#include <thread>

using namespace hypertune;
using namespace hypertune::remote;
using hypertune::test::Variable;

namespace {

std::vector<std::string> names_of(const HostList& hosts) {
  std::vector<std::string> names;
  for (const auto& host : hosts) names.push_back(host.name);
  return names;
}
using Names = std::vector<std::string>;

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

}  // namespace

TEST_CASE("hosts are read one a line") {
  const auto hosts = parse_host_lines(
      "# the lab\n\nnode1\n  me@node2   slots=2 cpus=1.5 gpus=0 memory=64GiB # a comment\r\n"
      "node3 labels=gpu,zone:b custom.licence=2",
      "hosts.txt");
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0] == HostOptions{.name = "node1"});
  CHECK(hosts[1] ==
        HostOptions{.name = "me@node2", .slots = 2, .cpus = 1.5, .gpus = 0, .memory = std::uint64_t{64} << 30U});
  CHECK(hosts[2] == HostOptions{.name = "node3", .custom = {{"licence", 2}}, .labels = {{"gpu", ""}, {"zone", "b"}}});
  CHECK(parse_host_lines("", "x").empty());
  const auto error = [](const std::string& text) {
    try {
      parse_host_lines(text, "hosts.txt");
    } catch (const Error& e) {
      CHECK(e.code() == Errc::input);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(error("a\nb slot=2") == "hosts.txt:2: unknown key 'slot' of a host: did you mean 'slots'?");
  CHECK_THAT(error("a slots=x"), ContainsSubstring("hosts.txt:1: 'slots' must be a number"));
  CHECK_THAT(error("a slots=1.5"), ContainsSubstring("whole number"));
  CHECK_THAT(error("a cpus=-1"), ContainsSubstring("number from 0"));
  CHECK_THAT(error("a cpus=nan"), ContainsSubstring("number from 0"));
  CHECK_THAT(error("a memory=lots"), ContainsSubstring("64GiB"));
  CHECK_THAT(error("a b"), ContainsSubstring("one host a line"));
  CHECK_THAT(error("slots=2"), ContainsSubstring("begins with the host's name"));
  CHECK_THAT(error("a\n\na"), ContainsSubstring("hosts.txt:3: host 'a' is listed twice"));
  CHECK_THAT(error("-oProxyCommand=x"), ContainsSubstring("hosts.txt:1"));
  CHECK_THAT(error("a;reboot"), ContainsSubstring("not the name of a host"));
}

TEST_CASE("hosts are read as JSON") {
  const auto hosts = parse_hosts(
      R"( ["a", {"name": "b", "slots": 2, "cpus": 1.5, "gpus": null, "memory": "1GiB", "labels": {"zone": "x", "rack": 7},
            "custom": {"licence": 1}}, {"name": "c", "memory": 1024, "labels": ["gpu", "k:v"]}])",
      "list");
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0].name == "a");
  CHECK(hosts[1] == HostOptions{.name = "b",
                                .slots = 2,
                                .cpus = 1.5,
                                .memory = std::uint64_t{1} << 30U,
                                .custom = {{"licence", 1}},
                                .labels = {{"zone", "x"}, {"rack", "7"}}});
  CHECK(hosts[2].memory == 1024);
  CHECK(hosts[2].labels == std::map<std::string, std::string>{{"gpu", ""}, {"k", "v"}});
  CHECK(names_of(parse_hosts("x\ny\n", "list")) == Names{"x", "y"});
  CHECK(parse_hosts("[]", "list").empty());
  for (const char* bad : {"[", "[1]", "[{}]", R"([{"name": "a", "slots": "x"}])", R"([{"name": 1}])", R"(["a", "a"])",
                          R"([{"name": "a", "nme": 1}])", R"(["-a"])"})
    CHECK_THROWS_AS(parse_hosts(bad, "list"), Error);
}

TEST_CASE("no bytes break the readers of lists") {
  std::mt19937_64 random(3);
  const std::string alphabet = "abz019[]{}\",:=-#\n \t.\\x()\xc3";
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 40; n > 0; --n) text += alphabet[random() % alphabet.size()];
    try {
      parse_hosts(text, "random");
    } catch (const Error&) {}
    try {
      expand_node_list(text);
    } catch (const Error&) {}
  }
}

TEST_CASE("Slurm's lists of nodes are taken apart") {
  CHECK(expand_node_list("node1") == Names{"node1"});
  CHECK(expand_node_list("node[01-03,7],login") == Names{"node01", "node02", "node03", "node7", "login"});
  CHECK(expand_node_list("rack[1-2]node[08-10]x").size() == 6);
  CHECK(expand_node_list("rack[1-2]node[08-10]x").front() == "rack1node08x");
  CHECK(expand_node_list("rack[1-2]node[08-10]x").back() == "rack2node10x");
  CHECK(expand_node_list("n[098-101]") == Names{"n098", "n099", "n100", "n101"});
  CHECK(expand_node_list("").empty());
  for (const char* bad : {"n[1-", "n]1[", "n[]", "n[3-1]", "n[a-b]", "n[1-999999999999]", "n[[1]]", "a,,b", ",",
                          "n[1-400][1-400]", "n[-1]", "n[1-2-3]", "[1--2]"}) {
    INFO(bad);
    CHECK_THROWS_AS(expand_node_list(bad), Error);
  }
}

TEST_CASE("a Slurm allocation is asked by its own command, or taken apart") {
  const TemporaryDirectory folder;
  {
    ::unsetenv("SLURM_JOB_NODELIST");
    ::unsetenv("SLURM_NODELIST");
    CHECK_THROWS_WITH(slurm_hosts(), ContainsSubstring("sbatch"));
  }
  const Variable list("SLURM_JOB_NODELIST", "n[1-3]");
  const Variable cpus("SLURM_JOB_CPUS_PER_NODE", "4(x2),8");
  const Variable gpus("SLURM_GPUS_ON_NODE", "2");
  const Variable path("PATH", folder.path().string() + ":/usr/bin:/bin");
  auto hosts = slurm_hosts();
  CHECK(names_of(hosts) == Names{"n1", "n2", "n3"});
  CHECK(hosts[1].cpus == 4);
  CHECK(hosts[2].cpus == 8);
  CHECK(hosts[2].gpus == 2);
  write_file(folder.path() / "scontrol", "#!/bin/sh\n[ \"$*\" = 'show hostnames n[1-3]' ] && printf 'x1\\nx2\\n'\n");
  ::chmod((folder.path() / "scontrol").c_str(), 0755);
  hosts = slurm_hosts();
  CHECK(names_of(hosts) == Names{"x1", "x2"});
  CHECK(hosts[0].cpus == 0);  // the counts are of three
  auto source = HostSource::slurm();
  CHECK(source.interval() == 0);
  CHECK(source.poll().joined.size() == 2);
}

TEST_CASE("a program that lists hosts ends with whoever asked it, and all that it has started") {
  const TemporaryDirectory folder;
  const auto fifo = folder.path() / "alive";  // open as long as one of them lives
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const hypertune::detail::Descriptor alive(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(alive);
  const auto source = [&](const std::string& script) {
    return HostSource::command({"sh", "-c", script, fifo.string()}, 0, 1000);
  };
  const pid_t asking = ::fork();
  if (asking == 0) {
    try {
      source("exec 9>\"$0\"; echo begun >&9; sleep 100; :").poll();
    } catch (const std::exception&) {}
    ::_exit(0);
  }
  REQUIRE(asking > 0);
  const auto heard = [&] {
    pollfd polled{.fd = alive.get(), .events = POLLIN, .revents = 0};
    ::poll(&polled, 1, 30000);
    char text[16];
    return ::read(alive.get(), text, sizeof text);
  };
  CHECK(heard() == 6);
  ::kill(asking, SIGKILL);
  ::waitpid(asking, nullptr, 0);
  CHECK(heard() == 0);
  // How it ends is told as it is.
  const auto error = [&](const std::string& script) {
    try {
      source(script).poll();
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK_THAT(error("echo why >&2; exit 7"), ContainsSubstring("code 7: why"));
  CHECK_THAT(error("kill -TERM $$"), ContainsSubstring("code 143"));
  CHECK(source("echo a; echo b").poll().joined.size() == 2);
}

TEST_CASE("sources tell who joins and who leaves") {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "hosts.txt";
  auto source = HostSource::file(file);
  CHECK_THROWS_WITH(source.poll(), ContainsSubstring("hosts.txt") && ContainsSubstring("no such file"));
  write_file(file, "a\nb slots=1\n");
  auto change = source.poll();
  CHECK(names_of(change.joined) == Names{"a", "b"});
  CHECK(change.left.empty());
  CHECK(source.poll().empty());
  write_file(file, "b slots=2\nc\n");
  change = source.poll();
  CHECK(names_of(change.joined) == Names{"b", "c"});
  CHECK(change.left == Names{"a", "b"});
  write_file(file, "b slots=\n");
  change = source.poll();
  REQUIRE(change.error);
  CHECK_THAT(*change.error, ContainsSubstring("hosts.txt:1"));
  CHECK(names_of(source.hosts()) == Names{"b", "c"});
  auto copy = source;
  write_file(file, "c\n");
  CHECK(copy.poll().left == Names{"b"});
  CHECK(source.poll().left == Names{"b"});

  HostSource fixed{"x", "y"};
  CHECK(fixed.poll().joined.size() == 2);
  CHECK(fixed.poll().empty());
  CHECK(fixed.interval() == 0);
  CHECK_THROWS_AS((HostSource{"x", "x"}), Error);
  CHECK(HostSource().poll().empty());

  int calls = 0;
  auto callback = HostSource::callback([&]() -> HostList {
    if (++calls == 2) throw std::runtime_error("the cloud is away");
    return {{.name = "n" + std::to_string(calls)}};
  });
  CHECK(names_of(callback.poll().joined) == Names{"n1"});
  CHECK(callback.poll().error == "the cloud is away");
  CHECK(callback.poll().left == Names{"n1"});
}

TEST_CASE("the environment names hosts where nothing else does") {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "hosts.txt";
  write_file(file, "x\ny slots=2\n");
  const auto from = [](const std::string& text) {
    const Variable set("HYPERTUNE_HOSTS", text);
    auto source = HostSource::environment();
    REQUIRE(source);
    CHECK(source->given());
    source->poll();
    return *source;
  };
  CHECK_FALSE(HostSource().given());
  CHECK(HostSource(Names{}).given());
  const Variable empty("HYPERTUNE_HOSTS", "");
  CHECK_FALSE(HostSource::environment());
  CHECK(names_of(from("a").hosts()) == Names{"a"});
  const auto list = from("me@a, b slots=2 ,c,");
  CHECK(names_of(list.hosts()) == Names{"me@a", "b", "c"});
  CHECK(list.hosts()[1].slots == 2);
  CHECK(list.interval() == 0);
  for (const auto& text : {"@" + file.string(), file.string()}) {
    auto source = from(text);
    CHECK(names_of(source.hosts()) == Names{"x", "y"});
    CHECK(source.interval() > 0);  // what joins the file joins the run
  }
  CHECK_THROWS_WITH(from("a,b,a"), ContainsSubstring("HYPERTUNE_HOSTS") && ContainsSubstring("'a' is listed twice"));
  CHECK_THROWS_WITH(from("a,-oProxyCommand=x"), ContainsSubstring("HYPERTUNE_HOSTS:2"));
  CHECK_THROWS_WITH(from("@/no/such/file"), ContainsSubstring("no such file"));
}

TEST_CASE("a program that prints hosts is asked, within bounds") {
  auto source = HostSource::command({"sh", "-c", "printf 'a\\nb gpus=1\\n'"});
  CHECK(names_of(source.poll().joined) == Names{"a", "b"});
  CHECK(names_of(HostSource::command({"echo", R"([{"name": "j"}])"}).poll().joined) == Names{"j"});
  const auto error = [](const std::vector<std::string>& words, double timeout) {
    try {
      HostSource::command(words, 1, timeout).poll();
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK_THAT(error({"no-such-program"}, 5), ContainsSubstring("cannot be run"));
  CHECK_THAT(error({"sh", "-c", "echo broken >&2; exit 3"}, 5), ContainsSubstring("code 3: broken"));
  CHECK_THAT(error({"sleep", "100"}, 0.2), ContainsSubstring("more than 0.2 s"));
  CHECK_THAT(error({"echo", "a b"}, 5), ContainsSubstring("what 'echo' printed:1"));
  CHECK_THROWS_AS(HostSource::command({}), Error);
}

TEST_CASE("a program that lists hosts is ended when nobody waits for it any more") {
  std::stop_source stop;
  std::atomic<bool> ended{false};
  std::thread look([&] {
    auto source = HostSource::command({"sleep", "100000"}, 1, 100000);
    CHECK_THROWS_AS(source.poll(stop.get_token()), Error);
    ended = true;
  });
  stop.request_stop();  // before it begins, or while it runs
  look.join();
  CHECK(ended);
}
