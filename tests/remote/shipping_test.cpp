// Programs and files brought to a host by whatever runs a script there: here a shell of this machine.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/host_error.hpp>
#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/host_shell.hpp>
#include <hypertune/remote/shipping.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::remote;

namespace {

/// A host whose home folder is one of this machine's.
struct LocalHost {
  TemporaryDirectory folder;

  std::filesystem::path home() const { return folder.path(); }
  /// `lose_after`: so many bytes of input arrive there, then the line is cut: an ordinary end of input.
  HostShell shell(std::size_t lose_after = std::string::npos) const {
    HostShell shell{.title = "pod 'p'", .run = {}};
    shell.run = [home = home().string(), lose_after](std::string_view script, const std::vector<std::string>& arguments,
                                                     const ShellOptions& options) mutable {
      process::RunOptions run;
      run.spawn.environment = {{"HOME", home}};
      if (options.input)
        run.input = [&] {
          const auto piece = options.input().substr(0, lose_after);
          lose_after -= piece.size();
          return piece;
        };
      run.take_out = options.take_out;
      run.deadline = options.deadline;
      run.max_output = options.max_output;
      std::vector<std::string> command{"sh", "-c", "cd && exec \"$@\"", "sh"};
      const auto words = script_arguments(script, arguments);
      command.insert(command.end(), words.begin(), words.end());
      const auto outcome = process::collect(command, std::move(run));
      return RunResult{.exit = outcome.code(), .out = outcome.out, .err = outcome.err};
    };
    shell.facts = ask_facts(shell);
    return shell;
  }
};

void write_file(const std::filesystem::path& path, const std::string& text, unsigned mode = 0644) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  ::chmod(path.c_str(), mode);
}
std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string printed(const std::vector<std::string>& command) { return process::collect(command).out; }

template <class Call>
HostError error_of(const Call& call) {
  try {
    call();
  } catch (const HostError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error;
  }
  FAIL("no error");
  throw 0;
}

}  // namespace

TEST_CASE("a host says what it is") {
  const LocalHost host;
  const auto shell = host.shell();
  CHECK(shell.facts.home == host.home().string());
  CHECK(shell.facts.system == "Linux");
  CHECK(!shell.facts.architecture.empty());
  CHECK(!shell.facts.clock_skewed());
  CHECK(shell.absolute("a/b") == (host.home() / "a/b").string());
  CHECK(shell.absolute("~/a") == (host.home() / "a").string());
  CHECK(shell.absolute("~") == host.home().string());
  CHECK(shell.absolute("/a") == "/a");
  CHECK_THROWS_WITH(shell.absolute("~other/a"), ContainsSubstring("pod 'p': '~other/a' is no path that is known"));
  HostShell mute{.title = "pod 'q'", .run = [](std::string_view, const auto&, const auto&) {
                   return RunResult{.exit = 127, .out = {}, .err = "sh: not found\n"};
                 }};
  const auto error = error_of([&] { ask_facts(mute); });
  CHECK(error.problem() == HostProblem::missing_program);
  CHECK_THAT(error.what(), ContainsSubstring("pod 'q': no script of sh runs there (sh: not found)"));
}

TEST_CASE("what a script says is its own, and what goes wrong is told apart") {
  const LocalHost host;
  const auto shell = host.shell();
  const auto said = shell.run("printf '%s|' \"$@\"; cat; echo trouble >&2; exit 3", {"a b", "c'\"\n", ""},
                              {.input = [first = true]() mutable {
                                return std::exchange(first, false) ? std::string_view("input") : std::string_view();
                              }});
  CHECK(said.exit == 3);
  CHECK(said.out == "a b|c'\"\n||input");
  CHECK(said.err == "trouble\n");
  const auto error = error_of([&] { shell.must("do it", "echo 'No space left on device' >&2; exit 1"); });
  CHECK(error.problem() == HostProblem::disk_full);
  CHECK(failure_of(error.problem()) == FailureClass::unknown);
  CHECK_THAT(error.what(), ContainsSubstring("pod 'p': cannot do it: No space left on device; the disk is full"));
  CHECK(failure_of(HostProblem::missing_program) == FailureClass::permanent);
}

TEST_CASE("a file arrives whole or not at all, both ways") {
  const LocalHost host;
  const TemporaryDirectory here;
  std::string bytes(300000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  write_file(here.path() / "f", bytes, 0750);
  const auto shell = host.shell();
  upload(shell, here.path() / "f", "new/folder/f");
  CHECK(read_file(host.home() / "new/folder/f") == bytes);
  CHECK((std::filesystem::status(host.home() / "new/folder/f").permissions() & std::filesystem::perms::mask) ==
        std::filesystem::perms(0750));
  upload_text(shell, "", "empty", {.mode = 0600});
  CHECK(std::filesystem::file_size(host.home() / "empty") == 0);
  download(shell, "~/new/folder/f", here.path() / "back/f");
  CHECK(read_file(here.path() / "back/f") == bytes);
  CHECK(error_of([&] { download(shell, "none", here.path() / "none"); }).problem() == HostProblem::missing_directory);
  CHECK(error_of([&] { upload(shell, here.path() / "none", "x"); }).problem() == HostProblem::local_file);

  // A line that is cut is an ordinary end of input there.
  upload_text(shell, "old", "kept");
  const auto cut = error_of([&] { upload(host.shell(100000), here.path() / "f", "kept"); });
  CHECK_THAT(cut.what(), ContainsSubstring("100000 of 300000 bytes arrived"));
  CHECK(read_file(host.home() / "kept") == "old");
  CHECK(printed({"find", host.home().string(), "-name", ".hypertune-part*"}).empty());
}

TEST_CASE("a program is shipped once per content, by any shell") {
  const LocalHost host;
  const auto shell = host.shell();
  const TemporaryDirectory here;
  const auto program = here.path() / "train";
  std::filesystem::copy_file("/bin/true", program);
  const auto first = ship_program(shell, program);
  CHECK(first.sent);
  CHECK(first.path == shell.absolute(".cache/hypertune/bin/" + first.hash + "/train"));
  CHECK(process::collect({first.path}).code() == 0);
  CHECK_FALSE(ship_program(shell, program).sent);
  // Half of it, as a machine that lost its power may have it.
  CHECK(shell.run("head -c 100 \"$1\" > x && cat x > \"$1\"", {first.path}, {}).ok());
  CHECK(ship_program(shell, program).sent);
  CHECK(process::collect({first.path}).code() == 0);
  check_program(shell, program, first.path);
  auto other = shell;
  other.facts.architecture = "riscv64";
  const auto error = error_of([&] { ship_program(other, program); });
  CHECK(error.problem() == HostProblem::architecture);
  CHECK(error.code() == Errc::usage);
  CHECK_THAT(error.what(), ContainsSubstring("pod 'p' is riscv64, but"));
  CHECK(error_of([&] { ship_program(shell, here.path() / "no"); }).problem() == HostProblem::local_file);

  std::vector<std::thread> threads;  // several drivers at once
  std::atomic<int> right{0};
  std::ofstream(program, std::ios::binary | std::ios::app) << "more";
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      if (process::collect({ship_program(host.shell(), program).path}).code() == 0) ++right;
    });
  for (auto& thread : threads) thread.join();
  CHECK(right == 4);
}

TEST_CASE("file mounts travel by content, and switch from one whole state to the next") {
  const LocalHost host;
  const auto shell = host.shell();
  const TemporaryDirectory here;
  const auto data = here.path() / "data";
  const std::string long_name = std::string(120, 'n') + "/" + std::string(60, 'm');
  write_file(data / "a.txt", "one");
  write_file(data / "sub/b.bin", std::string(200000, 'b'), 0755);
  write_file(data / long_name, "long");
  std::filesystem::create_directory(data / "empty");
  std::filesystem::create_symlink("a.txt", data / "link");
  const auto first = mount_files(shell, {.remote = "work/data", .local = data});
  CHECK(first.files == 3);
  CHECK(first.sent == 3);
  const auto mounted = host.home() / "work/data";
  CHECK(std::filesystem::is_symlink(mounted));
  CHECK(printed({"diff", "-r", "--no-dereference", data.string(), mounted.string() + "/"}).empty());
  CHECK(read_file(mounted / long_name) == "long");
  const auto again = mount_files(shell, {.remote = "work/data", .local = data});
  CHECK(again.sent == 0);
  CHECK(again.bytes == 0);
  const auto before = std::filesystem::canonical(mounted);

  write_file(data / "a.txt", "two");
  std::filesystem::remove(data / long_name);
  const auto changed = mount_files(shell, {.remote = "work/data", .local = data});
  CHECK(changed.sent == 1);
  CHECK(changed.bytes < 100000);
  CHECK(read_file(mounted / "a.txt") == "two");
  CHECK_FALSE(std::filesystem::exists(mounted / long_name));
  CHECK(read_file(before / "a.txt") == "one");  // trials under way keep theirs

  write_file(data / "a.txt", "three");
  CHECK_THROWS(mount_files(host.shell(3000), {.remote = "work/data", .local = data}));
  CHECK(read_file(mounted / "a.txt") == "two");
  write_file(host.home() / "taken/file", "mine");
  CHECK_THAT(error_of([&] { mount_files(shell, {.remote = "taken", .local = data}); }).what(),
             ContainsSubstring("is there already and is no file mount"));
  CHECK(read_file(host.home() / "taken/file") == "mine");
  CHECK_THROWS_WITH(mount_files(shell, {.remote = "~", .local = data}), ContainsSubstring("cannot be a file mount"));
}

TEST_CASE("a folder is copied into one that is there, and once more if a part of it was lost") {
  const LocalHost host;
  const TemporaryDirectory here;
  const auto data = here.path() / "data";
  write_file(data / "a", "one", 0755);
  write_file(data / "sub/b", std::string(200000, 'b'));
  std::filesystem::create_directory(data / "empty");
  std::filesystem::create_symlink("a", data / "link");
  const std::vector<std::string> paths{"a", "empty", "link", "sub", "sub/b"};
  const auto there = host.home() / "work/there";
  write_file(there / "a", "old");
  write_file(there / "sub/own", "kept");
  auto shell = host.shell();
  upload_folder(shell, data, paths, "work/there");
  CHECK(read_file(there / "a") == "one");
  CHECK((std::filesystem::status(there / "a").permissions() & std::filesystem::perms::owner_exec) !=
        std::filesystem::perms::none);
  CHECK(read_file(there / "sub/own") == "kept");
  std::filesystem::remove(there / "sub/own");
  CHECK(printed({"diff", "-r", "--no-dereference", data.string(), there.string()}).empty());
  CHECK_THAT(error_of([&] { upload_folder(shell, data, {"a", "absent"}, "work/there"); }).what(),
             ContainsSubstring("absent"));

  // Without all that follows the first file, for some attempts: tar takes this for a whole archive.
  int attempts = 0, cut_attempts = 2;
  shell.input_may_be_cut = true;
  shell.run = [&, run = shell.run](std::string_view script, const std::vector<std::string>& arguments,
                                   ShellOptions options) {
    if (options.input && ++attempts <= cut_attempts)
      options.input = [input = options.input, left = std::size_t{1024}]() mutable {
        const auto piece = input().substr(0, left);
        left -= piece.size();
        return piece;
      };
    return run(script, arguments, options);
  };
  upload_folder(shell, data, paths, "again");
  CHECK(attempts == 3);
  CHECK(printed({"diff", "-r", "--no-dereference", data.string(), (host.home() / "again").string()}).empty());
  cut_attempts = 100;
  CHECK_THAT(error_of([&] { upload_folder(shell, data, paths, "never"); }).what(),
             ContainsSubstring("pod 'p': cannot copy '" + data.string() + "' to 'never': not all of it arrived"));
}

TEST_CASE("an agent's program, files and folder are there before it starts") {
  const LocalHost host;
  const auto shell = host.shell();
  const TemporaryDirectory here;
  write_file(here.path() / "agent.sh", "#!/bin/sh\npwd; umask; printf '%s|' \"$@\"; cat data/a\n", 0755);
  write_file(here.path() / "data/a", "content");
  AgentFiles files{.program = here.path() / "agent.sh",
                   .arguments = {"--seed", "it's 7"},
                   .mounts = {{.remote = "data", .local = here.path() / "data"}},
                   .needs = {"cat", "data/a.sh"},
                   .directory = "work"};
  CHECK_THAT(error_of([&] { prepare_agent(shell, files, {}); }).what(),
             ContainsSubstring("pod 'p': there is no program 'data/a.sh' that may be run in"));
  files.needs = {"cat", "no-such-program"};
  CHECK_THAT(error_of([&] { prepare_agent(shell, files, {}); }).what(),
             ContainsSubstring("there is no program 'no-such-program' in its PATH: install it there"));
  files.needs = {"cat"};
  const auto command = prepare_agent(shell, files, {.name = "p", .cpus = 2});
  const auto out = printed(command);
  CHECK(out.starts_with((host.home() / "work").string() + "\n"));
  CHECK_THAT(out, ContainsSubstring("--seed|it's 7|--hypertune-agent|"));
  CHECK(out.ends_with("content"));
  CHECK(printed({"stat", "-c", "%a", (host.home() / "work").string()}) == "700\n");
}
