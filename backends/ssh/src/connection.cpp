// The operations of a connection.
#include "as_ssh_error.hpp"
#include "session.hpp"

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/output_mark.hpp>
#include <hypertune/ssh/quote.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::ssh {
namespace detail {

using remote::detail::last_line;

// Whether the message is from the ssh client itself and not from the remote command.
static bool is_of_client(std::string_view err) {
  for (const char* part : {"mux_client", "Control socket connect", "UNKNOWN port 65535", "master is dead"})
    if (err.find(part) != std::string_view::npos) return true;
  return false;
}

static process::RunOptions run_options(const ShellOptions& options) {
  return {.input = options.input,
          .hold_input = options.hold_input,
          .take_out = options.take_out,
          .take_err = options.take_err,
          .deadline = options.deadline,
          .stall = options.stall,
          .max_output = options.max_output,
          .stop = options.stop};
}

static process::Collected run_client(const Master& master, const std::vector<std::string>& words,
                                     process::RunOptions options) {
  try {
    return process::collect(words, std::move(options));
  } catch (const process::NotStarted& error) {
    throw SshError(Problem::no_client, master.host(),
                   fmt::format("the ssh client '{}' cannot be run: {}", words.front(), error.why()));
  }
}

remote::RunResult exchange(Master& master, const std::vector<std::string>& local, process::RunOptions options) {
  const double until = steady_seconds() + options.deadline;
  const Master::Session session(master, until);
  if (!master.alive()) throw master.lost() ? *master.lost() : closed_error(master.host());
  options.deadline = std::max(0.0, until - steady_seconds());
  options.linger = 1;
  const auto outcome = run_client(master, local, options);
  RunResult result{.exit = outcome.code(), .out = outcome.out, .err = outcome.err};
  const bool odd = outcome.late || is_of_client(result.err) || (result.exit >= 255 && result.err.empty());
  if (odd || (result.exit >= 255 && !master.alive())) {
    if (const auto error = master.lost_within(outcome.late ? 0 : 0.5)) throw SshError(*error);
    if (!master.alive()) throw closed_error(master.host());
  }
  if (outcome.stopped)
    throw SshError(Problem::other, master.host(),
                   fmt::format("host '{}': stopped before the command had ended", master.host()));
  if (outcome.late)
    throw SshError(Problem::timeout, master.host(),
                   fmt::format("host '{}': no end within the deadline ({})", master.host(),
                               steady_seconds() >= until ? fmt::format("{:.3g} s", options.deadline)
                                                         : fmt::format("nothing moved for {:.3g} s", options.stall)));
  if (outcome.too_much)
    throw SshError(Problem::other, master.host(),
                   fmt::format("host '{}': the command printed more than {} bytes", master.host(), options.max_output));
  if (is_of_client(result.err)) {
    const bool refused = result.err.find("refused") != std::string::npos;
    throw SshError(refused ? Problem::other : Problem::lost, master.host(),
                   fmt::format("host '{}': no session over the connection ({}){}", master.host(), last_line(result.err),
                               refused ? "; does its sshd allow enough (MaxSessions), or no commands at all?" : ""));
  }
  return result;
}

static std::vector<std::string> command_over(const Master& master, const std::vector<std::string>& arguments) {
  auto all = master.session_arguments();
  all.insert(all.end(), {"--", master.host(), remote_command_line(arguments)});
  return all;
}

static HostFacts ask_facts(const SshConnection& connection, Seconds deadline) {
  HostFacts facts;
  const auto run = [&] {
    try {
      return connection.script(remote::detail::facts_script, {}, {.deadline = deadline});
    } catch (const SshError& error) {
      if (error.problem() != Problem::timeout) throw;
      throw SshError(Problem::timeout, connection.host(),
                     fmt::format("host '{}': the login works, but it came to no command within {:.3g} s; does a "
                                 "start-up file there (~/.bashrc) hang, or wait for input?",
                                 connection.host(), deadline));
    }
  };
  if (const auto incomplete = remote::detail::measure_facts(facts, run)) {
    const auto said = last_line(incomplete->err.empty() ? incomplete->out : incomplete->err);
    throw SshError(Problem::other, connection.host(),
                   fmt::format("host '{}': the login works, but no command runs there{}; does a start-up file "
                               "there (~/.bashrc) end or replace the shell? If not: does the account have an ordinary "
                               "shell, and its key no forced command?",
                               connection.host(), said.empty() ? "" : " (" + said + ")"));
  }
  return facts;
}

// Converts "/path", "port" or "address:port" to the form that ssh expects.
static std::string endpoint(const std::string& text, const std::string& host) {
  if (text.starts_with('/')) {
    if (text.find(':') != std::string::npos || text.size() > 100)
      fail(Errc::usage, "'{}' cannot be forwarded: a socket's path has no colon and at most 100 characters", text);
    return text;
  }
  const auto colon = text.rfind(':');
  const std::string_view port = colon == std::string::npos ? text : std::string_view(text).substr(colon + 1);
  if (hypertune::detail::parse_number<std::uint16_t>(port).value_or(0) == 0 || colon == 0 || text.front() == '-')
    fail(Errc::usage,
         "host '{}': '{}' cannot be forwarded: give the absolute path of a socket, a port, or address:port", host,
         text);
  return colon == std::string::npos ? "127.0.0.1:" + text : text;
}

static void control(Master& master, const char* what, const char* direction, const std::string& from,
                    const std::string& to, Seconds deadline) {
  if (!master.alive()) throw master.lost() ? *master.lost() : closed_error(master.host());
  auto words = master.control_arguments(what);
  words.insert(words.end(),
               {direction, endpoint(from, master.host()) + ":" + endpoint(to, master.host()), "--", master.host()});
  const auto outcome = run_client(master, words, {.deadline = deadline});
  if (outcome.late)
    throw SshError(
        Problem::timeout, master.host(),
        fmt::format("host '{}': '{}' was not forwarded to '{}' within {:.3g} s", master.host(), from, to, deadline));
  if (outcome.code() == 0) return;
  if (const auto error = master.lost_within(0.2)) throw SshError(*error);
  throw SshError(Problem::other, master.host(),
                 fmt::format("host '{}': '{}' cannot be forwarded to '{}' ({}); is something else there, and does its "
                             "sshd allow it (AllowStreamLocalForwarding, AllowTcpForwarding)?",
                             master.host(), from, to, last_line(outcome.out + outcome.err)));
}

}  // namespace detail

SshConnection::SshConnection(std::shared_ptr<detail::Master> master) : master_(std::move(master)) {}
SshConnection::SshConnection(SshConnection&&) noexcept = default;
SshConnection& SshConnection::operator=(SshConnection&& other) noexcept {
  if (this != &other) {
    close();
    master_ = std::move(other.master_);
  }
  return *this;
}
SshConnection::~SshConnection() { close(); }

SshConnection SshConnection::open(const std::string& host, SshOptions options, Seconds deadline, std::stop_token stop) {
  const double until = detail::steady_seconds() + deadline;
  SshConnection connection(std::make_shared<detail::Master>(host, std::move(options)));
  connection.master_->close_on(std::move(stop));
  connection.master_->open(until);
  connection.master_->facts = detail::ask_facts(connection, std::max(0.1, until - detail::steady_seconds()));
  return connection;
}

const std::string& SshConnection::host() const { return master_->host(); }
const HostFacts& SshConnection::facts() const { return master_->facts; }
const SshOptions& SshConnection::options() const { return master_->options(); }
bool SshConnection::alive() const { return master_ && master_->alive(); }
std::optional<SshError> SshConnection::lost() const { return master_->lost(); }
void SshConnection::on_lost(std::function<void(const SshError&)> then) { master_->on_lost(std::move(then)); }
void SshConnection::close() noexcept {
  if (master_) master_->close();
}

Seconds SshConnection::check(Seconds deadline) const {
  const double begin = detail::steady_seconds();
  run({"true"}, {.deadline = deadline});
  return detail::steady_seconds() - begin;
}

std::vector<std::string> SshConnection::command(const std::vector<std::string>& arguments) const {
  return detail::command_over(*master_, arguments);
}

RunResult SshConnection::run(const std::vector<std::string>& arguments, const ShellOptions& options) const {
  return detail::exchange(*master_, command(arguments), detail::run_options(options));
}

RunResult SshConnection::script(std::string_view text, const std::vector<std::string>& arguments,
                                const ShellOptions& options) const {
  return shell().run(text, arguments, options);
}

RunResult SshConnection::must(std::string_view doing, std::string_view text, const std::vector<std::string>& arguments,
                              const ShellOptions& options) const {
  return detail::as_ssh_error(host(), [&] { return shell().must(doing, text, arguments, options); });
}

remote::HostShell SshConnection::shell() const {
  const auto run = [master = master_](std::string_view script, const std::vector<std::string>& arguments,
                                      const ShellOptions& options) {
    OutputMark mark;
    auto run = detail::run_options(options);
    if (options.take_out)
      run.take_out = [&](std::string_view piece) {
        const auto own = mark.own(piece);
        return own.empty() || options.take_out(own);
      };
    auto result = detail::exchange(
        *master, detail::command_over(*master, remote::script_arguments(OutputMark::before(script), arguments)),
        std::move(run));
    if (options.take_out) return result;
    const auto own = mark.own(result.out);
    if (mark.passed()) result.out = std::string(own);  // otherwise: the messages of the login shell or of ssh
    return result;
  };
  return {.title = fmt::format("host '{}'", host()), .facts = facts(), .run = run};
}

std::string SshConnection::absolute(const std::string& remote) const {
  return remote::detail::absolute_path(remote, facts().home, fmt::format("host '{}'", host()));
}

void SshConnection::upload(const std::filesystem::path& local, const std::string& remote,
                           const TransferOptions& options) const {
  detail::as_ssh_error(host(), [&] { remote::upload(shell(), local, remote, options); });
}
void SshConnection::upload_text(std::string_view bytes, const std::string& remote,
                                const TransferOptions& options) const {
  detail::as_ssh_error(host(), [&] { remote::upload_text(shell(), bytes, remote, options); });
}
void SshConnection::download(const std::string& remote, const std::filesystem::path& local,
                             const TransferOptions& options) const {
  detail::as_ssh_error(host(), [&] { remote::download(shell(), remote, local, options); });
}

void SshConnection::forward(const std::string& local, const std::string& remote, Seconds deadline) const {
  detail::control(*master_, "forward", "-L", local, remote, deadline);
}
void SshConnection::cancel_forward(const std::string& local, const std::string& remote) const {
  detail::control(*master_, "cancel", "-L", local, remote, 10);
  if (local.starts_with('/')) ::unlink(local.c_str());
}
void SshConnection::reverse_forward(const std::string& remote, const std::string& local, Seconds deadline) const {
  if (remote.starts_with('/'))  // by default, sshd does not remove an existing socket
    must(fmt::format("remove the old socket '{}'", remote), R"sh(if [ -S "$1" ]; then rm -f -- "$1"; fi)sh", {remote},
         {.deadline = deadline});
  detail::control(*master_, "forward", "-R", remote, local, deadline);
}
void SshConnection::cancel_reverse_forward(const std::string& remote, const std::string& local) const {
  detail::control(*master_, "cancel", "-R", remote, local, 10);
}

}  // namespace hypertune::inline v0::ssh
