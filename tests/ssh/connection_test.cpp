#include "ssh/support/test_hosts.hpp"
#include "support/test.hpp"

#include <hypertune/random.hpp>
#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/output_mark.hpp>
#include <hypertune/ssh/quote.hpp>

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>
#include <tuple>

using namespace hypertune;
using namespace hypertune::ssh;
using hypertune::test::error_of;
using hypertune::test::local_command;
using hypertune::test::plain_test_hosts;
using hypertune::test::test_hosts;

namespace {

// Empty if it cannot be read, as that of a process which ends meanwhile.
std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

double now() { return hypertune::detail::steady_seconds(); }

std::vector<std::string> printed_arguments(const std::string& out) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < out.size();) {
    const auto end = out.find('\0', begin);
    all.push_back(out.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

}  // namespace

TEST_CASE("a connection runs commands and knows its host") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const auto connection = hosts->open();
  CHECK(connection.alive());
  CHECK_FALSE(connection.lost());
  CHECK(connection.facts().system == "Linux");
  CHECK(connection.facts().cpus >= 1);
  CHECK_FALSE(connection.facts().architecture.empty());
  CHECK(connection.facts().home.starts_with("/"));
  CHECK_FALSE(connection.facts().clock_skewed());
  const auto result =
      connection.run({"sh", "-c", "cat; echo oops >&2; exit 7"}, {.input = hypertune::process::whole("hello\n")});
  CHECK(result.exit == 7);
  CHECK(result.out == "hello\n");
  CHECK(result.err == "oops\n");
  CHECK(connection.run({"sh", "-c", "exit 255"}).exit == 255);
  CHECK(connection.run({"sh", "-c", "kill -9 $$"}).exit == 255);
  CHECK(connection.run({"there-is-no-such-program"}).exit == 127);
  CHECK(connection.check() < 5);
}

TEST_CASE("what a user's configuration says of their own logins does not change ours") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto touched = folder.path() / "touched";
  const std::vector<std::string> settings{"StdinNull yes",
                                          "ForkAfterAuthentication yes",
                                          "SessionType none",
                                          "RequestTTY force",
                                          "RemoteCommand echo another",
                                          "PermitLocalCommand yes",
                                          "LocalCommand touch " + touched.string(),
                                          "ControlMaster auto",
                                          "ControlPersist yes",
                                          "ControlPath " + (folder.path() / "theirs-%C").string(),
                                          "EscapeChar ~",
                                          "EnableEscapeCommandline yes",
                                          "ExitOnForwardFailure yes",
                                          "LocalForward " + (folder.path() / "local.socket").string() + " 127.0.0.1:1",
                                          "ForwardX11 yes",
                                          "LogLevel DEBUG3",
                                          "VisualHostKey yes",
                                          "BatchMode no",
                                          "StreamLocalBindUnlink no",
                                          "ProxyUseFdpass no"};
  const auto opened = [&](const std::vector<std::string>& lines) {
    const auto file = folder.path() / "config";
    std::ofstream out(file);
    out << "Host *\n";
    for (const auto& line : lines) out << "  " << line << '\n';
    out << "Include " << hosts->config().string() << '\n';
    out.close();
    auto options = hosts->options();
    options.config = file;
    const auto connection = SshConnection::open("host1", options, 30);
    const auto result = connection.run({"sh", "-c", "cat; echo oops >&2; exit 7"},
                                       {.input = hypertune::process::whole("~.\nhello\n"), .deadline = 30});
    CHECK(result.exit == 7);
    CHECK(result.out == "~.\nhello\n");
    CHECK(result.err == "oops\n");
    CHECK(connection.alive());
  };
  for (const auto& line : settings) {
    INFO(line);
    opened({line});
  }
  opened(settings);
  opened({"SessionType subsystem"});
  CHECK_FALSE(std::filesystem::exists(touched));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK(entry.path().filename() == "config");  // no connection of theirs was left, and nothing forwarded
}

TEST_CASE("arguments arrive byte by byte, whatever is in them") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const auto connection = hosts->open();
  const std::vector<std::string> hard{"",
                                      " ",
                                      "a b  c",
                                      "it's",
                                      "\"double\" and 'single'",
                                      "line\nbreak\n\n",
                                      "\ttab\r",
                                      "$HOME `id` $(id)",
                                      "back\\slash\\\\ \\n \\0101",
                                      "bang! !!",
                                      "*?[a-z]{b,c}~",
                                      "-n",
                                      "--",
                                      "%s %b %%",
                                      "żółć 漢字 🙂",
                                      "\xff\xfe",
                                      "#; & | > < ( )",
                                      std::string(3000, '\'')};
  std::vector<std::string> words{"printf", "%s\\0"};
  words.insert(words.end(), hard.begin(), hard.end() - 1);
  CHECK(printed_arguments(connection.run(words).out) == std::vector<std::string>(hard.begin(), hard.end() - 1));
  for (const auto& one : hard) CHECK(printed_arguments(connection.run({"printf", "%s\\0", one}).out).at(0) == one);
  std::mt19937_64 random(7);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::string> line{"printf", "%s\\0"};
    for (int i = 0; i < 8; ++i) {
      std::string word;
      for (auto n = random() % 40; n > 0; --n) word += static_cast<char>(1 + random() % 255);
      line.push_back(word);
    }
    CHECK(printed_arguments(connection.run(line).out) == std::vector<std::string>(line.begin() + 2, line.end()));
  }
  CHECK_THROWS_WITH(connection.run({"echo", std::string(200000, 'x')}), ContainsSubstring("standard input"));
  CHECK_THROWS_WITH(connection.run({"echo", std::string("a\0b", 3)}), ContainsSubstring("NUL"));
}

TEST_CASE("the line for the remote shell means the same to shells that are none of POSIX") {
  for (const char* shell : {"dash", "bash", "zsh", "fish", "tcsh", "csh", "ksh"}) {
    if (local_command({"sh", "-c", std::string("command -v ") + shell}).exit != 0) continue;
    const std::vector<std::string> words{"plain",     "two words", "it's", "a\\b\\\\",
                                         "new\nline", "wow!",      "żółć", "$x `y`"};
    std::vector<std::string> command{"printf", "%s\\0"};
    command.insert(command.end(), words.begin(), words.end());
    INFO(shell);
    CHECK(printed_arguments(local_command({shell, "-c", remote_command_line(command)}).out) == words);
  }
}

TEST_CASE("files go up and down whole or not at all") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto connection = hosts->open();
  std::string content;
  std::mt19937_64 random(1);
  for (int i = 0; i < 400000; ++i) {
    const auto word = random();
    content.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  const auto local = folder.path() / "it's a file";
  std::ofstream(local, std::ios::binary) << content;
  ::chmod(local.c_str(), 0750);
  connection.upload(local, "~/deep/er/it's there\nnow");
  const auto back = folder.path() / "back";
  connection.download("deep/er/it's there\nnow", back);
  CHECK(read_file(back) == content);
  struct stat info{};
  REQUIRE(::stat(back.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0750);
  connection.upload_text("", "empty");
  connection.download("empty", folder.path() / "empty");
  CHECK(read_file(folder.path() / "empty").empty());
  // Nothing but these, one of which has two lines for a name.
  CHECK(connection.script("cd && find . -type f | wc -l").out == "3\n");

  CHECK(error_of([&] { connection.download("not-there", back); }).problem() == Problem::missing_directory);
  CHECK(read_file(back) == content);
  CHECK(error_of([&] { connection.download("deep", back); }).what() ==
        std::string("host 'host1': cannot read '" + connection.absolute("deep") + "': '" + connection.absolute("deep") +
                    "' is a folder"));
  CHECK(error_of([&] { connection.upload(folder.path() / "nothing", "x"); }).problem() == Problem::local_file);
  CHECK(error_of([&] { connection.upload(local, "/proc/nowhere/x"); }).problem() == Problem::missing_directory);
  connection.upload_text("x", "file");
  CHECK(error_of([&] { connection.upload_text("y", "file/below"); }).problem() != Problem::lost);
}

TEST_CASE("what cannot be connected is said in one line, with how to mend it") {
  const auto hosts = plain_test_hosts(2);
  if (!hosts) return;
  auto options = hosts->options();
  const auto problem = [&](const std::string& host, const SshOptions& with, const std::string& part) {
    const auto error = error_of([&] { SshConnection::open(host, with, 10); });
    CHECK_THAT(error.what(), ContainsSubstring(part));
    return error.problem();
  };
  SECTION("no ssh client") {
    options.program = "no-such-ssh";
    CHECK(problem("host1", options, "openssh-client") == Problem::no_client);
  }
  SECTION("no configuration") {
    options.config = hosts->state() / "missing";
    CHECK(problem("host1", options, "missing") == Problem::bad_config);
    std::ofstream(hosts->state() / "bad") << "Host *\n  NoSuchKeyword yes\n";
    options.config = hosts->state() / "bad";
    CHECK(problem("host1", options, "nosuchkeyword") == Problem::bad_config);
  }
  SECTION("no such name") { CHECK(problem("no-such-host.invalid", options, "spelling") == Problem::name_not_found); }
  SECTION("nobody listens") {
    options.port = 1;
    CHECK(problem("host1", options, "reached") == Problem::unreachable);
  }
  SECTION("a key that nobody knows") {
    local_command({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", (hosts->state() / "other").string()});
    auto text = read_file(hosts->config());
    const auto id = (hosts->state() / "id").string();
    text.replace(text.find(id), id.size(), (hosts->state() / "other").string());
    std::ofstream(hosts->state() / "other_config") << text;
    options.config = hosts->state() / "other_config";
    CHECK(problem("host1", options, "IdentityFile") == Problem::login_refused);
  }
  SECTION("a host key that is not known") {
    std::ofstream(hosts->state() / "known_hosts") << "";
    CHECK(problem("host1", options, "known_hosts") == Problem::unknown_host_key);
  }
  SECTION("a host key that has changed") {
    auto known = read_file(hosts->state() / "known_hosts");
    const auto end = known.find('\n');
    const auto second_key = known.substr(known.find(' ', end));
    std::ofstream(hosts->state() / "known_hosts") << known.substr(0, known.find(' ')) + second_key;
    const auto error = error_of([&] { SshConnection::open("host1", options, 10); });
    CHECK(error.problem() == Problem::changed_host_key);
    // The file that ssh names, which the ssh_config chose, and the name that stands there.
    const auto advice = "ssh-keygen -f " + (hosts->state() / "known_hosts").string() + " -R ";
    const std::string text = error.what();
    REQUIRE_THAT(text, ContainsSubstring(advice));
    REQUIRE(local_command({"sh", "-c", text.substr(text.find("ssh-keygen -f"))}).exit == 0);
    CHECK(problem("host1", options, "known_hosts") == Problem::unknown_host_key);
  }
  SECTION("names that are none") {
    CHECK_THROWS_AS(SshConnection::open("-oProxyCommand=touch /tmp/x", options), Error);
    CHECK_THROWS_AS(SshConnection::open("a;b", options), Error);
    CHECK_THROWS_AS(SshConnection::open("", options), Error);
  }
  SECTION("options that weaken the check of host keys") {
    for (const char* option : {"StrictHostKeyChecking=no", "stricthostkeychecking=OFF", "UserKnownHostsFile=/dev/null",
                               "ControlPath=/tmp/x", "nothing"}) {
      options.options = {option};
      CHECK_THROWS_AS(SshConnection::open("host1", options), Error);
    }
  }
  SECTION("an account without a shell") {
    auto keys = read_file(hosts->state() / "host1" / "authorized_keys");
    std::ofstream(hosts->state() / "host1" / "authorized_keys") << "command=\"echo go away; exit 1\" " << keys;
    CHECK(problem("host1", options, "go away") == Problem::other);
  }
  SECTION("start-up files that come to no command") {
    std::string start_up, says;
    Problem of{};
    std::tie(start_up, of, says) = GENERATE(
        table<std::string, Problem, std::string>({{"exit 3\n", Problem::other, "no command runs there"},
                                                  {"sleep 1000\n", Problem::timeout, "came to no command within"}}));
    hosts->open().upload_text(start_up, "~/.bashrc");
    const auto error = error_of([&] { SshConnection::open("host1", options, 3); });
    CHECK(error.problem() == of);
    CHECK_THAT(error.what(), ContainsSubstring(says) && ContainsSubstring("~/.bashrc"));
  }
}

TEST_CASE("what is printed before a script's output is passed over, in whatever pieces it comes") {
  const auto own = [](const std::string& text, std::size_t piece) {
    OutputMark mark;
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += piece) out += mark.own(std::string_view(text).substr(i, piece));
    return mark.passed() ? out : "none";
  };
  for (const std::size_t piece : {1, 2, 7, 1000}) {
    CHECK(own("\nhypertune-output\nit\n", piece) == "it\n");
    CHECK(own("hello\n\nhypertune-out\n\nhypertune-output\n", piece).empty());
    CHECK(own("hello hypertune-output\nhypertune-output\nit\nhypertune-output\n", piece) == "it\nhypertune-output\n");
    CHECK(own("hello, \nhypertune-output", piece) == "none");
  }
}

TEST_CASE("a chatty start-up file and the user's own settings do no harm") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  {
    const auto connection = hosts->open();
    connection.upload_text("echo welcome to this host\n", "~/.bashrc");
    connection.upload_text("some\nbytes\n", "~/data");
  }
  // What makes trouble for a program: forwardings, a command, sharing, questions, silence.
  std::ofstream(hosts->config(), std::ios::app)
      << "  LocalForward 1 localhost:1\n  RemoteCommand echo hijacked\n  RequestTTY yes\n  ControlMaster auto\n"
         "  ControlPersist 60\n  ControlPath "
      << folder.path().string() << "/%C\n  LogLevel QUIET\n  BatchMode no\n  PermitLocalCommand yes\n"
      << "  LocalCommand touch " << folder.path().string() << "/touched\n";
  const auto connection = hosts->open();
  connection.download("data", folder.path() / "data");
  CHECK(connection.script("printf 'all of it'").out == "all of it");
  CHECK(read_file(folder.path() / "data") == "some\nbytes\n");
  CHECK(connection.run({"printf", "x"}).out.ends_with("x"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "touched"));
  const auto entries = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  CHECK(entries == 1);
}

TEST_CASE("commands have deadlines, and many run at once") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const auto connection = hosts->open();
  CHECK(error_of([&] { connection.run({"sleep", "100"}, {.deadline = 0.3}); }).problem() == Problem::timeout);
  CHECK(connection.alive());
  CHECK(error_of([&] {
          connection.run({"sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxx; done"}, {.max_output = 100000});
        }).problem() == Problem::other);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 24; ++i)  // more than a server allows at once
    threads.emplace_back([&, i] {
      const auto text = std::to_string(i);
      if (connection.run({"echo", text}).out == text + "\n") ++right;
    });
  for (auto& thread : threads) thread.join();
  CHECK(right == 24);
}

TEST_CASE("sockets are forwarded both ways") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  if (local_command({"python3", "-c", "pass"}).exit != 0) return;
  const TemporaryDirectory folder;
  const auto connection = hosts->open();
  const auto listen_at = [](const std::string& path) {
    return std::vector<std::string>{
        "python3", "-c",
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint('up',flush=True)\n"
        "c,_=s.accept()\nc.sendall(c.recv(100).upper())\nc.close()\n",
        path};
  };
  const auto ask = [](const std::string& path) {
    return std::vector<std::string>{"python3", "-c",
                                    "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(10)\n"
                                    "s.connect(sys.argv[1])\ns.sendall(b'hello')\nprint(s.recv(100).decode())\n",
                                    path};
  };
  // A server that says when it listens: the other side asks then.
  const auto serve = [](const std::vector<std::string>& words, const std::function<void()>& then) {
    std::mutex mutex;
    std::condition_variable changed;
    bool up = false;
    std::thread server([&] {
      hypertune::process::RunOptions options;
      options.take_out = [&](std::string_view) {
        const std::lock_guard hold(mutex);
        up = true;
        changed.notify_all();
        return true;
      };
      options.deadline = 20;
      hypertune::process::run(words, options);
    });
    {
      std::unique_lock hold(mutex);
      CHECK(changed.wait_for(hold, std::chrono::seconds(15), [&] { return up; }));
    }
    then();
    server.join();
  };
  const auto remote = connection.script("d=$(mktemp -d) && printf %s \"$d\"").out + "/s";
  const auto local = (folder.path() / "s").string();
  serve(connection.command(listen_at(remote)), [&] {
    connection.forward(local, remote);
    CHECK(local_command(ask(local)).out == "HELLO\n");
    connection.cancel_forward(local, remote);
    CHECK_FALSE(std::filesystem::exists(local));
  });
  const auto back = remote + "2", here = local + "2";
  serve(listen_at(here), [&] {
    connection.reverse_forward(back, here);
    CHECK(connection.run(ask(back)).out == "HELLO\n");
    connection.cancel_reverse_forward(back, here);
  });
  serve(listen_at(here + "3"), [&] {  // the old socket is in the way, and goes
    connection.reverse_forward(back, here + "3");
    CHECK(connection.run(ask(back)).out == "HELLO\n");
  });
  CHECK_THROWS_AS(connection.forward("/tmp/with:colon", remote), Error);
  CHECK_THROWS_AS(connection.forward("0", remote), Error);
  CHECK(error_of([&] { connection.forward("/no/such/folder/s", remote); }).problem() == Problem::other);
}

TEST_CASE("no process, socket or folder outlives a connection or the program") {
  const auto hosts = plain_test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory folder;
  const auto masters = [&] {
    const auto config = hosts->config().string();
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto line = read_file(entry.path() / "cmdline");
      n += line.starts_with("ssh") && line.find(config) != std::string::npos ? 1 : 0;
    }
    return n;
  };
  const auto soon = [&](const auto& holds) {
    for (const double until = now() + 10; now() < until;)
      if (holds()) return true;
    return false;
  };
  std::string socket_folder;
  {
    auto connection = hosts->open();
    CHECK(masters() == 1);
    const auto words = connection.command({"true"});
    const auto socket = *(std::find(words.begin(), words.end(), "-S") + 1);
    socket_folder = std::filesystem::path(socket).parent_path();
    struct stat info{};
    REQUIRE(::stat(socket_folder.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777U) == 0700);
    auto moved = std::move(connection);
    CHECK(moved.alive());
    CHECK(masters() == 1);
    moved.close();
    CHECK(masters() == 0);
    CHECK_FALSE(moved.alive());
    CHECK_FALSE(moved.lost());
    CHECK(error_of([&] { moved.run({"true"}); }).problem() == Problem::lost);
  }
  CHECK_FALSE(std::filesystem::exists(socket_folder));
  // A driver that is killed: the kernel ends its ssh.
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t driver = ::fork();
  if (driver == 0) {
    {
      const auto connection = hosts->open();
      static_cast<void>(!::write(ready[1], "+", 1));
      ::pause();
    }
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(masters() == 1);
  ::kill(driver, SIGKILL);
  ::waitpid(driver, nullptr, 0);
  CHECK(soon([&] { return masters() == 0; }));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a host that is taken away, or cut off, is noticed, and what waits for it ends") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const bool killed = GENERATE(true, false);
  auto connection = hosts->open(1);
  const auto other = hosts->open(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::string why;
  connection.on_lost([&](const SshError& error) {
    const std::lock_guard hold(mutex);
    why = error.what();
    changed.notify_all();
  });
  std::optional<Problem> problem;
  std::thread waiting([&] {
    try {
      connection.run({"sleep", "100"});
    } catch (const SshError& error) { problem = error.problem(); }
  });
  killed ? hosts->kill(1) : hosts->cut(1);
  {
    std::unique_lock hold(mutex);
    CHECK(changed.wait_for(hold, std::chrono::seconds(60), [&] { return !why.empty(); }));
  }
  waiting.join();
  CHECK(problem == Problem::lost);
  CHECK_FALSE(connection.alive());
  REQUIRE(connection.lost());
  CHECK(connection.lost()->problem() == Problem::lost);
  CHECK_THAT(why, ContainsSubstring("host1"));
  CHECK(error_of([&] { connection.upload_text("x", "x"); }).problem() == Problem::lost);
  CHECK(error_of([&] { SshConnection::open("host1", hosts->options(), 1.5); }).problem() == Problem::unreachable);
  CHECK(other.run({"echo", "still here"}).out == "still here\n");
  killed ? hosts->up(2) : hosts->heal(1);
  connection = hosts->open(1);
  CHECK(connection.run({"hostname"}).out == "host1\n");
}

TEST_CASE("an upload that breaks off leaves nothing, and disks, permissions and clocks are told apart") {
  const auto hosts = test_hosts(1, {"--rate", "16mbit"});
  if (!hosts) return;
  const auto connection = hosts->open();
  hosts->exec(1, "mkdir -p ~/small ~/ro && mount -t tmpfs -o size=256k none ~/small && mount -t tmpfs -o ro none ~/ro");
  const std::string large(std::size_t{4} << 20U, 'x');
  const auto full = error_of([&] { connection.upload_text(large, "~/small/file"); });
  CHECK(full.problem() == Problem::disk_full);
  CHECK_THAT(full.what(), ContainsSubstring("free some space"));
  CHECK(connection.script("ls -A ~/small").out.empty());
  CHECK(error_of([&] { connection.upload_text("x", "~/ro/file"); }).problem() == Problem::permission);
  CHECK(error_of([&] { connection.upload_text(large, "slow", {.deadline = 0.5}); }).problem() == Problem::timeout);
  CHECK(connection.script("ls -A ~ | grep -v small | grep -v ro").out.find("slow") == std::string::npos);

  hosts->exec(
      1,
      "printf '#!/bin/sh\\n/bin/busybox true 2>/dev/null; echo $(($(cut -d. -f1 /proc/uptime) + 100))\\n' > ~/date"
      " && chmod +x ~/date && mount --bind ~/date /usr/bin/date");
  const auto skewed = hosts->open();
  CHECK(skewed.facts().clock_skewed());
  CHECK(skewed.facts().clock_ahead < -3600);
}

TEST_CASE("a slow line with losses does, too") {
  const auto hosts = test_hosts(1, {"--delay", "100", "--loss", "1", "--rate", "8mbit"});
  if (!hosts) return;
  const auto connection = hosts->open();
  CHECK(connection.facts().round_trip > 0.2);
  const TemporaryDirectory folder;
  const std::string content(1500000, 'y');
  connection.upload_text(content, "file");
  connection.download("file", folder.path() / "file");
  CHECK(read_file(folder.path() / "file") == content);
}
