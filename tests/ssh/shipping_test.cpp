#include "ssh/support/test_hosts.hpp"
#include "support/test.hpp"

#include <hypertune/ssh/shipping.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

using namespace hypertune;
using namespace hypertune::ssh;
using hypertune::test::error_of;
using hypertune::test::local_command;
using hypertune::test::plain_test_hosts;
using hypertune::test::test_hosts;

namespace {

void write_file(const std::filesystem::path& path, const std::string& text, unsigned mode = 0644) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  ::chmod(path.c_str(), mode);
}

}  // namespace

TEST_CASE("a program is shipped once per content, and a changed one anew") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto program = folder.path() / "train";
  std::filesystem::copy_file("/bin/true", program);
  const auto connection = hosts->open();
  const auto first = ship_program(connection, program);
  CHECK(first.sent);
  CHECK(first.path == connection.absolute(".cache/hypertune/bin/" + first.hash + "/train"));
  CHECK(connection.run({first.path}).exit == 0);
  const auto again = ship_program(connection, program);
  CHECK_FALSE(again.sent);
  CHECK(again.path == first.path);
  std::ofstream(program, std::ios::binary | std::ios::app) << "more";
  const auto changed = ship_program(connection, program);
  CHECK(changed.sent);
  CHECK(changed.path != first.path);
  // Half of it, as a machine that lost its power may have it.
  connection.script("head -c 100 \"$1\" > x && cat x > \"$1\"", {changed.path});
  CHECK(ship_program(connection, program).sent);
  CHECK(connection.run({changed.path}).exit == 0);
  const auto self = ship_self(connection);
  CHECK(self.path.ends_with("/test_ssh"));
  CHECK(connection.run({self.path, "--help"}, {.deadline = 30}).exit == 0);
  // Scripts, too.
  write_file(folder.path() / "script.sh", "#!/bin/sh\necho ran \"$1\"\n");
  CHECK(connection.run({ship_program(connection, folder.path() / "script.sh").path, "it"}).out == "ran it\n");
  CHECK(error_of([&] { ship_program(connection, folder.path() / "no"); }).problem() == Problem::local_file);
}

TEST_CASE("several drivers may ship the same at once") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const auto one = hosts->open(), two = hosts->open();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const auto shipped = ship_self(i % 2 == 0 ? one : two);
      if ((i % 2 == 0 ? two : one).run({shipped.path, "--help"}, {.deadline = 60}).exit == 0) ++right;
    });
  for (auto& thread : threads) thread.join();
  CHECK(right == 8);
  CHECK(one.script("ls -A ~/.cache/hypertune/bin/* | wc -l").out == "1\n");
}

TEST_CASE("old versions go by number and by age") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto connection = hosts->open();
  const auto ship = [&](int i) {
    write_file(folder.path() / "p", "#!/bin/sh\necho " + std::to_string(i) + "\n");
    return ship_program(connection, folder.path() / "p", {.keep = 2, .keep_for = 3 * 86400.0}).hash;
  };
  const auto first = ship(1), second = ship(2);
  connection.must("age", "cd ~/.cache/hypertune/bin && touch -d '10 days ago' \"$1\" && touch -d '2 days ago' \"$2\"",
                  {first, second});
  ship(3), ship(4);
  const auto left = connection.script("ls -A ~/.cache/hypertune/bin").out;
  CHECK(left.find(first) == std::string::npos);
  CHECK(left.find(second) != std::string::npos);
  CHECK(std::count(left.begin(), left.end(), '\n') == 3);
}

TEST_CASE("what cannot run there is said before anything runs") {
  const auto hosts = test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto program = folder.path() / "train";
  std::filesystem::copy_file("/bin/true", program);
  {
    auto connection = hosts->open();
    hosts->exec(1, "mkdir -p ~/noexec && mount -t tmpfs -o noexec none ~/noexec");
    const auto noexec = error_of([&] { ship_program(connection, program, {.directory = "noexec"}); });
    CHECK(noexec.problem() == Problem::no_execute);
    CHECK_THAT(noexec.what(), ContainsSubstring("noexec"));
  }
  {
    hosts->exec(1,
                "printf '#!/bin/sh\\n[ \"$1\" = -m ] && echo aarch64 || echo Linux\\n' > ~/uname && chmod +x ~/uname &&"
                " mount --bind ~/uname $(command -v uname)");
    const auto connection = hosts->open();
    const auto other = error_of([&] { ship_program(connection, program); });
    CHECK(other.problem() == Problem::architecture);
    CHECK_THAT(other.what(), ContainsSubstring("aarch64") && ContainsSubstring(program_architecture(program)));
    hosts->exec(1, "umount $(command -v uname)");
  }
  // Two libraries that are there for the linker, and not on the host.
  if (local_command({"sh", "-c",
                     "cd \"$0\" && for l in one two; do echo \"int $l(){return 0;}\" | gcc -shared -fPIC -x c - -o "
                     "libht$l.so; done && echo 'int one(),two(),main(){return one()+two();}'"
                     " 2>/dev/null | sed 's/int one(),two(),main/int one(),two(); int main/' | gcc -x c - -o prog -L. "
                     "-lhtone -lhttwo",
                     folder.path().string()})
          .exit != 0)
    return;
  const auto connection = hosts->open();
  const auto missing = error_of([&] { ship_program(connection, folder.path() / "prog"); });
  CHECK(missing.problem() == Problem::missing_library);
  CHECK_THAT(missing.what(), ContainsSubstring("libhtone.so, libhttwo.so"));
}

TEST_CASE("what ldd says is understood") {
  CHECK(missing_libraries("\tlinux-vdso.so.1 (0x1)\n\tlibtorch.so => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x1)\n"
                          "\tlibcudart.so.12 => not found\n\tlibtorch.so => not found\n") ==
        std::vector<std::string>{"libtorch.so", "libcudart.so.12"});
  CHECK(missing_libraries("./app: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./app)\n"
                          "\tlibc.so.6 => /lib/libc.so.6\n") == std::vector<std::string>{"GLIBC_2.38 of libc.so.6"});
  CHECK(
      missing_libraries("Error loading shared library libstdc++.so.6: No such file or directory (needed by ./app)\n") ==
      std::vector<std::string>{"libstdc++.so.6"});
  CHECK(missing_libraries("\tnot a dynamic executable\n").empty());
  CHECK(missing_libraries("").empty());
}

TEST_CASE("folders are mounted by content: only what has changed travels") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto code = folder.path() / "code";
  const std::string long_name = "deep/" + std::string(80, 'a') + "/" + std::string(90, 'b') + "/it's a\nname.py";
  write_file(code / "train.py", "print(1)\n", 0755);
  write_file(code / "lib/a.py", "a\n");
  write_file(code / "lib/b.py", "b\n");
  write_file(code / long_name, "long\n");
  write_file(code / "-rf", "odd\n");
  write_file(code / "empty", "");
  write_file(code / "data/raw/large.bin", std::string(3000000, 'x'));
  write_file(code / "data/small.bin", std::string(700, 's'));
  write_file(code / "lib/a.o", "object");
  write_file(code / ".git/config", "git");
  std::filesystem::create_directories(code / "hollow");
  std::filesystem::create_symlink("lib/a.py", code / "link");
  std::filesystem::create_symlink(std::string(150, 'y'), code / "nowhere");
  const auto connection = hosts->open();
  const FileMount mount{.remote = "~/code", .local = code, .exclude = {"*.o", ".git/", "data/raw"}};
  const auto first = mount_files(connection, mount);
  CHECK(first.files == 7);
  CHECK(first.sent == 7);
  CHECK(first.bytes < 40000);
  CHECK(connection.run({"python3", "code/train.py"}).out == "1\n");
  CHECK(
      connection
          .script(
              "cd code && cat lib/a.py link -- ./-rf && cat deep/*/*/* && readlink nowhere | wc -c && ls -d hollow && "
              "stat -c %a train.py lib/a.py && ls -A | wc -l")
          .out == "a\na\nodd\nlong\n151\nhollow\n755\n644\n9\n");
  const auto again = mount_files(connection, mount);
  CHECK(again.sent == 0);
  CHECK(again.bytes == 0);
  CHECK(again.hash == first.hash);

  // A trial that is under way has the old state to its end.
  const auto old_place = connection.script("readlink code").out;
  write_file(code / "lib/b.py", "changed\n");
  std::filesystem::remove(code / "lib/a.py");
  std::filesystem::remove(code / "link");
  std::filesystem::remove_all(code / "deep");
  write_file(code / "new/c.py", "c\n");
  const auto changed = mount_files(connection, mount);
  CHECK(changed.sent == 2);
  CHECK(changed.bytes < 12000);
  CHECK(connection.script("cd code && cat lib/b.py new/c.py train.py; ls -A lib; ls -A | wc -l").out ==
        "changed\nc\nprint(1)\nb.py\n8\n");
  CHECK(connection.script("cat \"$1/lib/b.py\" \"$1/lib/a.py\"", {old_place.substr(0, old_place.size() - 1)}).out ==
        "b\na\n");
  // Back again: it is still there.
  write_file(code / "lib/b.py", "b\n");
  write_file(code / "lib/a.py", "a\n");
  write_file(code / long_name, "long\n");
  std::filesystem::remove_all(code / "new");
  std::filesystem::create_symlink("lib/a.py", code / "link");
  const auto back = mount_files(connection, mount);
  CHECK(back.hash == first.hash);
  CHECK(back.sent == 0);
  // What a program left there is in nobody's way; what it changed is not taken for the real thing.
  connection.must("write", "mkdir code/__pycache__ && echo x > code/__pycache__/x");
  CHECK(mount_files(connection, mount).sent == 0);
  connection.must("damage", "echo damaged > code/train.py");
  CHECK(mount_files(connection, mount).sent == 7);
  CHECK(connection.run({"python3", "code/train.py"}).out == "1\n");
  // A file's place becomes a folder's, and the other way round.
  std::filesystem::remove(code / "empty");
  write_file(code / "empty/full", "f");
  std::filesystem::remove_all(code / "lib");
  write_file(code / "lib", "a file now\n");
  mount_files(connection, mount);
  CHECK(connection.script("cat code/lib code/empty/full").out == "a file now\nf");
  CHECK(connection.script("ls -A ~/.cache/hypertune/mounts | grep '^[.]'").out.empty());
}

TEST_CASE("single files are mounted, and what is somebody else's is left alone") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto file = folder.path() / "data.csv";
  write_file(file, "1,2\n");
  const auto connection = hosts->open();
  const auto where = connection.script("d=$(mktemp -d) && printf %s \"$d\"").out + "/in/data.csv";
  CHECK(mount_files(connection, {where, file, {}}).sent == 1);
  CHECK(connection.run({"cat", where}).out == "1,2\n");
  write_file(file, "3\n");
  CHECK(mount_files(connection, {where, file, {}}).sent == 1);
  CHECK(connection.run({"cat", where}).out == "3\n");
  connection.must("make",
                  "mkdir -p full vacant other && echo mine > full/x && echo mine > plain && ln -s other mylink");
  for (const char* taken : {"full", "plain", "mylink"}) {
    const auto error = error_of([&] { mount_files(connection, {taken, file, {}}); });
    CHECK_THAT(error.what(), ContainsSubstring("move it away"));
  }
  CHECK(connection.script("cat full/x plain; readlink mylink").out == "mine\nmine\nother\n");
  write_file(folder.path() / "d/x", "x");
  CHECK(mount_files(connection, {"vacant", folder.path() / "d", {}}).sent == 1);
  CHECK(connection.script("cat vacant/x").out == "x");
  std::filesystem::create_directories(folder.path() / "hollow");
  mount_files(connection, {"hollow", folder.path() / "hollow", {}});
  CHECK(connection.script("test -d hollow && ls -A hollow/").out.empty());
  CHECK_THROWS_AS(mount_files(connection, {"~", file, {}}), Error);
  CHECK_THROWS_AS(mount_files(connection, {"x", folder.path() / "absent", {}}), SshError);
}

TEST_CASE("a mount that breaks off is not there, and the next one is whole") {
  const auto hosts = test_hosts(1, {"--rate", "16mbit"});
  if (!hosts) return;
  const TemporaryDirectory folder;
  for (int i = 0; i < 20; ++i)
    write_file(folder.path() / "d" / std::to_string(i), std::string(200000, static_cast<char>('a' + i)));
  const auto connection = hosts->open();
  CHECK(error_of([&] {
          mount_files(connection, {"d", folder.path() / "d", {}}, {.transfer = {.deadline = 0.5}});
        }).problem() == Problem::timeout);
  CHECK(connection.run({"test", "-e", "d"}).exit != 0);
  CHECK(mount_files(connection, {"d", folder.path() / "d", {}}).sent == 20);
  CHECK(connection.script("cat d/* | wc -c").out == "4000000\n");
  hosts->exec(1, "mkdir -p ~/small && mount -t tmpfs -o size=1m none ~/small");
  const auto full = error_of([&] { mount_files(connection, {"e", folder.path() / "d", {}}, {.directory = "small"}); });
  CHECK(full.problem() == Problem::disk_full);
  CHECK(connection.script("find ~/small -type f").out.empty());
}
