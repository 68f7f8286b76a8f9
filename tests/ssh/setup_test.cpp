// What an executor over ssh makes of its setup, of the environment and of what a host says of itself.
#include "remote/variable.hpp"
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/executor.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <utility>

using namespace hypertune;
using namespace hypertune::ssh;
using hypertune::test::Variable;

TEST_CASE("the environment says how its hosts are reached and warned, and nothing of others") {
  const Variable hosts("HYPERTUNE_HOSTS", "a"), config("HYPERTUNE_SSH_CONFIG", "/c"),
      notices("HYPERTUNE_NOTICE_URL", "http://169.254.169.254/x");
  auto setup = ssh::detail::with_environment({});
  CHECK(setup.hosts.given());
  CHECK(setup.ssh.config == "/c");
  CHECK(setup.remote.notice_url == "http://169.254.169.254/x");
  ssh::SshSetup own;
  own.ssh.config = "/own";
  own.remote.notice_command = "true";
  setup = ssh::detail::with_environment(own);
  CHECK(setup.ssh.config == "/own");
  CHECK(setup.remote.notice_url.empty());
  own = {};
  own.hosts = HostSource({"b"});
  setup = ssh::detail::with_environment(own);
  CHECK(setup.ssh.config.empty());
  CHECK(setup.remote.notice_url.empty());
}

TEST_CASE("an empty list, and one that takes its time, are told at once") {
  const TemporaryDirectory folder;
  const auto said_of = [&](HostSource source) {
    SshSetup setup;
    setup.hosts = std::move(source);
    setup.remote.timeouts.connect = 0.1;
    return said([&] { CHECK_THROWS_WITH(SshExecutor(setup).hosts(), ContainsSubstring("there is none on the list")); });
  };
  std::ofstream(folder.path() / "hosts") << "# none yet\n";
  CHECK_THAT(said_of(HostSource::file(folder.path() / "hosts")),
             ContainsSubstring("there is no host to run trials on: the hosts of '") &&
                 ContainsSubstring("are none; looks again every 5 s"));
  CHECK_THAT(said_of(HostSource::command({"sh", "-c", "sleep 1.5"})),
             ContainsSubstring("waits for the hosts that 'sh' prints: they are not known yet"));
  CHECK(said_of(HostSource::callback([] { return HostList{}; })).empty());  // the program knows what it does
}

TEST_CASE("a host's facts are read, whatever it says") {
  using hypertune::ssh::HostFacts;
  const auto facts = [](const std::string& lines) {
    HostFacts read;
    CHECK(hypertune::ssh::detail::read_facts("welcome\nhypertune-facts\n" + lines + "end=1\n", 100, read));
    return read;
  };
  const auto usual = facts("system=Linux\nhome=/home/me\ncpus=8\ntime=107\n");
  CHECK(usual.system == "Linux");
  CHECK(usual.home == "/home/me");
  CHECK(usual.cpus == 8);
  CHECK(usual.clock_ahead == 7.5);
  for (const char* none : {"", "0", "-5", "-1e300", "nan", "many"})
    CHECK(facts(std::string("cpus=") + none + "\n").cpus == 1);
  for (const char* much : {"1e300", "3000000000", "1000000"})
    CHECK(facts(std::string("cpus=") + much + "\n").cpus == 1'000'000);
  CHECK(std::isfinite(facts("time=inf\n").clock_ahead));
  HostFacts half;
  CHECK_FALSE(hypertune::ssh::detail::read_facts("hypertune-facts\ncpus=4\n", 0, half));
  CHECK_FALSE(hypertune::ssh::detail::read_facts("", 0, half));
}
