// Real OpenSSH servers whose accounts greet oddly, hang at login, or have other people on the machine.
#include "host_folder.hpp"
#include "remote/agents.hpp"
#include "remote/experiments.hpp"
#include "support/test_hosts.hpp"

#include <hypertune/ssh/executor.hpp>

#include <sys/stat.h>

#include <stop_token>
#include <thread>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

ht::SshSetup setup_for(const TestHosts& hosts, std::vector<std::string> names) {
  ht::SshSetup setup;
  setup.hosts = std::move(names);
  setup.ssh = hosts.options();
  setup.program = HYPERTUNE_TEST_AGENT;
  setup.arguments = {"agents", "2"};
  setup.directory = "work";
  setup.remote.program = "learner";
  return setup;
}
ht::Options few_trials(const std::filesystem::path& output, ht::SshSetup setup) {
  auto options = experiment(output, ht::over_ssh(std::move(setup)));
  options.samples = 4;
  options.stop = ht::steps(6);
  return options;
}

}  // namespace

TEST_CASE("an account that greets without an end of the line is used like any other, and its files are its own") {
  const auto hosts = test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  hosts->open().upload_text("printf 'welcome to this host, '; printf 'mind the step ' >&2\n", "~/.bashrc");
  auto setup = setup_for(*hosts, {"host1"});
  std::filesystem::create_directories(folder.path() / "data");
  std::ofstream(folder.path() / "data" / "set") << "for trials\n";
  setup.mounts = {{.remote = "data", .local = folder.path() / "data", .exclude = {}}};
  const auto results = run(few_trials(folder.path() / "out", std::move(setup)));
  INFO(story(results));
  CHECK(results.count(ht::TrialState::stopped) + results.count(ht::TrialState::completed) == 4);
  // What was made there lies in folders that nobody else can enter.
  const auto seen =
      hosts->open().script("cd; find work .cache/hypertune -maxdepth 0 -perm /077; find work ! -type l -perm /077");
  CHECK(seen.ok());
  CHECK(seen.out.empty());
  CHECK(hosts->open().script("cd; find work/data -follow -type f | wc -l").out.find('1') != std::string::npos);
}

TEST_CASE("trials make files as their account wants them, in folders that nobody else enters") {
  const auto hosts = test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  hosts->open().upload_text("umask 027\n", "~/.bashrc");
  auto setup = setup_for(*hosts, {"host1"});
  setup.remote.program = "umask";
  const auto results = run(few_trials(folder.path() / "out", std::move(setup)));
  INFO(story(results));
  REQUIRE(results.size() == 4);
  for (const auto& trial : results.trials())
    for (const auto& [name, value] : trial.metrics)
      if (name == "accuracy") CHECK(value == 027);
  CHECK(results.count(ht::TrialState::completed) == 4);
  CHECK(hosts->open().script("cd; stat -c %a work .cache/hypertune").out == "700\n700\n");
}

TEST_CASE("an agent's folder is for nobody else, whatever the umask") {
  const TemporaryDirectory folder;
  const auto before = ::umask(0);
  {
    const ht::remote::detail::HostFolder made(folder.path() / "deep" / "agent", "experiment", "host");
    for (auto path = made.path(); path != folder.path(); path = path.parent_path())
      CHECK((std::filesystem::status(path).permissions() & std::filesystem::perms::all) ==
            std::filesystem::perms::owner_all);
  }
  ::umask(before);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(ht::remote::detail::HostFolder(folder.path() / "file" / "x", "experiment", "host"), ht::Error);
}

TEST_CASE("an account whose login hangs holds up neither the others nor the end") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const TemporaryDirectory folder;
  hosts->open(2).upload_text("sleep 100000\n", "~/.bashrc");
  const auto results = run(few_trials(folder.path() / "out", setup_for(*hosts, {"host1", "host2"})));
  INFO(story(results));
  for (const auto& host : results.hosts()) CHECK((host.host == "host1" || host.attempts == 0));
  CHECK(results.size() == 4);

  std::stop_source stop;
  std::thread asked([&] { stop.request_stop(); });
  CHECK_THROWS_AS(ht::ssh::SshConnection::open("host2", hosts->options(), 100000, stop.get_token()), ht::Error);
  asked.join();
}
