// The script of a driver in the cluster, and what its Job says of a submission.
#include "driver_files.hpp"
#include "driver_manifest.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <boost/json/value.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace hypertune;
using namespace hypertune::test;

namespace {

void write(const std::filesystem::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The script of the submission "second" in the folder, with a driver that prints its arguments. Its exit code.
int drive(const std::filesystem::path& folder) {
  write(folder / "script", k8s::driver_script(1));
  write(folder / "hypertune", "#!/bin/sh\necho \"driver $*\"\n");
  std::filesystem::permissions(folder / "hypertune", std::filesystem::perms::owner_all);
  const auto line = "cd '" + folder.string() +
                    "' && HYPERTUNE_SUBMISSION=second HYPERTUNE_PROGRAM= sh script run sweep.yaml >output 2>&1";
  return std::system(line.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe): the script is what is tested
}

}  // namespace

TEST_CASE("a driver begins with the files of its own submission, and with no earlier one's") {
  const TemporaryDirectory folder;
  write(folder.path() / "arguments", "--set\nsamples=8\n");
  write(folder.path() / "ready", "second\n");
  CHECK(drive(folder.path()) == 0);
  CHECK(read(folder.path() / "output") == "driver run sweep.yaml --set samples=8 --output experiment\n");

  // What an earlier one has left is not for this one, which gives up when nothing more comes.
  for (const char* earlier : {"first\n", ""}) {
    write(folder.path() / "ready", earlier);
    CHECK(drive(folder.path()) == 0);
    const auto said = read(folder.path() / "output");
    CHECK_THAT(said, ContainsSubstring("waits for its files"));
    CHECK_THAT(said, ContainsSubstring("nobody has brought its files: submit it again"));
    CHECK(said.find("driver run") == std::string::npos);
  }
}

TEST_CASE("the Job of a driver and its container name the submission") {
  const k8s::DriverJobOptions options{.workers = {.image = "a"}};
  const auto job = boost::json::value(k8s::driver_job_manifest(options, "job", "claim", "0123"));
  CHECK(job.at_pointer("/metadata/annotations/hypertune~1submission").as_string() == "0123");
  std::string given;
  for (const auto& each : job.at_pointer("/spec/template/spec/containers/0/env").as_array())
    if (each.at("name").as_string() == "HYPERTUNE_SUBMISSION") given = each.at("value").as_string().c_str();
  CHECK(given == "0123");
  CHECK(k8s::new_submission() != k8s::new_submission());
}
