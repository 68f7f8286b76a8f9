// CommandDialer: the local end of an agent, a command with pipes to its standard streams.
#include <hypertune/checkpoint/posix_files.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/dialer.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

extern "C" char** environ;

namespace hypertune::remote {
namespace {

// Waits for its end, at most `grace` seconds, then ends it and its group by force, and reaps it.
void end_process(pid_t pid, double grace) {
#ifdef SYS_pidfd_open
  if (grace > 0) {
    const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd polled{.fd = handle.get(), .events = POLLIN, .revents = 0};
    if (handle) ::poll(&polled, 1, static_cast<int>(grace * 1000));
  }
#endif
  ::kill(-pid, SIGKILL);  // its number is its own until it is reaped
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
}

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(Errc::io, "cannot make a pipe to a host: {}", std::generic_category().message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace

AgentStream CommandDialer::dial(const std::stop_token&) const {
  const Command command = command_();
  if (command.empty()) fail(Errc::usage, "there is no command that reaches it");
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!environment_.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : environment_) entries.push_back(name + "=" + value);
  std::vector<char*> argv, env;
  for (const auto& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  for (const auto& entry : entries) env.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) fail(Errc::io, "cannot fork for the connection to a host: {}", std::generic_category().message(errno));
  if (pid == 0) {  // only what is safe after a fork
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != self) ::_exit(127);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(in_read.get(), STDIN_FILENO);
    ::dup2(out_write.get(), STDOUT_FILENO);
    ::dup2(err_write.get(), STDERR_FILENO);
    ::execvpe(argv[0], argv.data(), env.data());
    const char* why = ::strerror(errno);
    for (const char* text : {"cannot run '", static_cast<const char*>(argv[0]), "': ", why, "\n"})
      static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
    ::_exit(127);
  }
  ::setpgid(pid, pid);
  return {.to = std::move(in_write),
          .from = std::move(out_read),
          .err = std::move(err_read),
          .carrier = StreamCarrier([pid](double grace) { end_process(pid, grace); })};
}

FailureClass CommandDialer::classify(const std::string& said) const {
  return said.find("error while loading shared libraries") != std::string::npos ? FailureClass::permanent
                                                                                : FailureClass::unknown;
}

}  // namespace hypertune::remote
