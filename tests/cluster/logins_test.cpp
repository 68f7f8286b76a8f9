// Hosts whose accounts have start-up files: what they print, and the umask that they set.
#include "ssh/support/test_hosts.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/sync.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace hypertune::cluster;
using namespace hypertune::test;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a greeting gets neither into folders that are fetched nor into the output of a job") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto connection = hosts->open();
  connection.upload_text("echo welcome to this host; printf 'mind the step '\n", "~/.bashrc");
  connection.upload_text("one\n", "greeted/a.txt");
  connection.upload_text(std::string("\nhypertune-output\n\0two", 22), "greeted/deep/b.bin");
  CHECK(pull_files(connection.shell(), "greeted", folder.path() / "all") == 2);
  CHECK(text_of(folder.path() / "all/a.txt") == "one\n");
  CHECK(text_of(folder.path() / "all/deep/b.bin") == std::string("\nhypertune-output\n\0two", 22));
  CHECK(pull_files(connection.shell(), "greeted", folder.path() / "some", {"*.bin"}, "greeted/a.txt") == 0);
  CHECK_THROWS_WITH(pull_files(connection.shell(), "nowhere", folder.path() / "none"),
                    ContainsSubstring("no file or folder"));

  ClusterConfig config;
  config.name = "greeted";
  const std::string job = ".hypertune/clusters/greeted/jobs/job";
  connection.upload_text("first\nsecond\n", job + "/log");
  connection.upload_text("0\n", job + "/exit");
  std::string said;
  const auto output = [&](std::string_view text) { said += text; };
  CHECK(follow_job(connection.shell(), config, "job", 0, output, {}) == 13);
  CHECK(said == "first\nsecond\n");
  said.clear();
  CHECK(follow_job(connection.shell(), config, "job", 6, output, {}) == 13);  // as after a connection that was lost
  CHECK(said == "second\n");
}

TEST_CASE("a program that is submitted has the account's umask and locale, and its folder is for nobody else") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto connection = hosts->open();
  connection.upload_text("umask 027\n", "~/.bashrc");
  std::ofstream(folder.path() / "program") << "#!/bin/sh\numask\necho \"${LC_ALL-none}\"\nstat -c %a . .. ../log\n";
  std::filesystem::permissions(folder.path() / "program", std::filesystem::perms::owner_all);
  ClusterConfig config;
  config.name = "masked";
  const auto status =
      start_job(connection.shell(), config, {.program = folder.path() / "program", .arguments = {}, .files = {}});
  std::string said;
  follow_job(connection.shell(), config, status.id, 0, [&](std::string_view text) { said += text; }, {});
  CHECK(said == "0027\nnone\n700\n700\n600\n");
}
