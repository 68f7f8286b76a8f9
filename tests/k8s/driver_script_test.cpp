// The script of a driver in the cluster, and what its Job says of a submission.
#include "driver_files.hpp"
#include "driver_manifest.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <boost/json/value.hpp>
#include <sys/wait.h>

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

// The script of the submission "second" in the folder, with the program that is there or else `program`. Its exit code;
// what it prints is in "output", and its termination message in "message".
int run_script(const std::filesystem::path& folder, const std::string& program = "") {
  write(folder / "message", "");
  write(folder / "script", k8s::driver_script(1, (folder / "message").string()));
  const auto line = "cd '" + folder.string() +
                    "' && HYPERTUNE_SUBMISSION=second HYPERTUNE_IMAGE=lab/train:7 HYPERTUNE_PROGRAM='" + program +
                    "' sh script run sweep.yaml >output 2>&1";
  const int status = std::system(line.c_str());  // NOLINT(cert-env33-c,concurrency-mt-unsafe): it is what is tested
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// With a driver that prints its arguments.
int drive(const std::filesystem::path& folder) {
  write(folder / "hypertune", "#!/bin/sh\necho \"driver $*\"\n");
  std::filesystem::permissions(folder / "hypertune", std::filesystem::perms::owner_all);
  return run_script(folder);
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
    std::filesystem::remove(folder.path() / ".begun");
    CHECK(drive(folder.path()) == 1);
    const auto said = read(folder.path() / "output");
    CHECK_THAT(said, ContainsSubstring("waits for its files"));
    CHECK_THAT(said, ContainsSubstring("nobody has brought its files: submit it again"));
    CHECK(read(folder.path() / "message") == "nobody has brought its files: submit it again\n");
    CHECK(said.find("driver run") == std::string::npos);
  }
}

TEST_CASE("a driver whose program does not start in its image says why, and ends its Job") {
  const TemporaryDirectory folder;
  write(folder.path() / "arguments", "");
  write(folder.path() / "ready", "second\n");
  const auto give = [&](const std::string& name, const std::string& text) {
    write(folder.path() / name, text);
    std::filesystem::permissions(folder.path() / name, std::filesystem::perms::owner_all);
    return (folder.path() / name).string();
  };
  const auto message = [&] { return read(folder.path() / "message"); };
  CHECK(run_script(folder.path(), "/none/hypertune") == 1);
  CHECK(message() ==
        "there is no program '/none/hypertune' in the image 'lab/train:7': name another image or "
        "executor.program\n");

  const auto lacking = give("lacking",
                            "#!/bin/sh\n"
                            "echo \"$0: error while loading shared libraries: libfmt.so.9: cannot open shared object "
                            "file: No such file or directory\" >&2; exit 127\n");
  CHECK(run_script(folder.path(), lacking) == 1);
  CHECK_THAT(message(), ContainsSubstring("does not start in the image 'lab/train:7' (exit code 127): ") &&
                            ContainsSubstring("libfmt.so.9: cannot open"));

  const auto broken = give("broken", "#!/bin/sh\necho \"no: version GLIBC_2.99 not found\" >&2\necho more; exit 3\n");
  CHECK(run_script(folder.path(), broken) == 1);
  CHECK(message() == "'" + broken +
                         "' does not start in the image 'lab/train:7' (exit code 3): no: version GLIBC_2.99 "
                         "not found\n");
  const auto alien = give("alien", "#!/none/ld-linux\n");
  CHECK(run_script(folder.path(), alien) == 1);
  CHECK_THAT(message(), ContainsSubstring("the image 'lab/train:7' has no dynamic loader for '" + alien + "'"));

  // Once a driver of this submission has begun, the back-off has room for others: only exit code 0 ends the Job.
  write(folder.path() / ".begun", "second\n");
  CHECK(run_script(folder.path(), broken) == 0);
  CHECK_THAT(message(), ContainsSubstring("does not start"));
  write(folder.path() / ".begun", "first\n");
  CHECK(run_script(folder.path(), broken) == 1);
}

TEST_CASE("the Job of a driver and its container name the submission") {
  const k8s::DriverJobOptions options{.workers = {.image = "a"}};
  const auto job = boost::json::value(k8s::driver_job_manifest(options, "job", "claim", "0123"));
  CHECK(job.at_pointer("/metadata/annotations/hypertune~1submission").as_string() == "0123");
  std::string given;
  for (const auto& each : job.at_pointer("/spec/template/spec/containers/0/env").as_array())
    if (each.at("name").as_string() == "HYPERTUNE_SUBMISSION") given = each.at("value").as_string().c_str();
  CHECK(given == "0123");
  // A pod that ends before the driver has begun is the last one.
  CHECK(job.at_pointer("/spec/backoffLimit").as_int64() == 0);
  CHECK(k8s::new_submission() != k8s::new_submission());
}
