// From a list of hosts to a pool of agents.
#include "remote_error.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/remote/notices.hpp>
#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/executor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::ssh {
namespace detail {

/// Calls a function once if it still lives after so many seconds.
class Overdue {
 public:
  Overdue(double seconds, std::function<void()> then)
      : thread_([this, seconds, then = std::move(then)] {
          std::unique_lock hold(mutex_);
          if (!over_.wait_for(hold, std::chrono::duration<double>(seconds), [this] { return done_; })) then();
        }) {}
  Overdue(const Overdue&) = delete;
  Overdue& operator=(const Overdue&) = delete;
  ~Overdue() {
    {
      const std::lock_guard hold(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

/// One host of the list: its connection, and how an agent comes to be there.
class SshDialer {
 public:
  SshDialer(HostSpec host, std::shared_ptr<const SshSetup> setup, std::shared_ptr<remote::Notices> notices)
      : host_(std::move(host)), setup_(std::move(setup)), notices_(std::move(notices)) {}

  remote::AgentStream dial(const std::stop_token& stop) {
    try {
      std::stop_source until_dialled;  // what runs over the connection from then on is not for `stop` to end
      const std::stop_callback relay(stop, [&] { until_dialled.request_stop(); });
      return remote::CommandDialer(prepare(until_dialled.get_token())).dial(stop);
    } catch (const SshError& error) {
      std::string why = error.what();  // whoever tells it names the host
      if (const auto name = fmt::format("host '{}': ", host_.name); why.starts_with(name)) why.erase(0, name.size());
      throw remote::DialError(error.problem() == Problem::name_not_found ? classify(why) : failure_of(error.problem()),
                              why, error.code());
    }
  }
  remote::FailureClass classify(const std::string& said) const { return classify_agent(host_.name, said); }

 private:
  // Returns the command that starts an agent there.
  std::vector<std::string> prepare(const std::stop_token& stop) {
    // A connection that had an agent may still hold what is left of it: it ends with the connection.
    connection_.reset();
    connection_ = SshConnection::open(host_.name, setup_->ssh, setup_->ssh.connect_timeout * 2 + 10, stop);
    const auto shipped = setup_->program.empty() ? ship_self(*connection_, setup_->ship)
                                                 : ship_program(*connection_, setup_->program, setup_->ship);
    const auto folder = connection_->absolute(setup_->directory);
    for (auto mount : setup_->mounts) {
      if (!mount.remote.starts_with('/') && !mount.remote.starts_with('~')) mount.remote = folder + "/" + mount.remote;
      const auto mounted = mount_files(*connection_, mount, setup_->ship);
      for (const auto& program : setup_->programs)
        if (program == mount.local) check_program(*connection_, program, mounted.remote);
    }
    check_needs(folder);
    if (connection_->facts().clock_skewed() && !std::exchange(clock_told_, true))
      notices_->say(
          fmt::format("host '{}': its clock is {:.0f} s {}: times of files and logs from there mislead, "
                      "nothing else depends on it",
                      host_.name, std::abs(connection_->facts().clock_ahead),
                      connection_->facts().clock_ahead > 0 ? "ahead" : "behind"));
    std::vector<std::string> words{
        "sh",   "-c",        std::string(start_script), "hypertune", setup_->remote.transfer.shared ? "007" : "077",
        folder, shipped.path};
    words.insert(words.end(), setup_->arguments.begin(), setup_->arguments.end());
    words.insert(words.end(), {"--hypertune-agent", remote::agent_limits_text(host_)});
    return connection_->command(words);
  }

  // Nobody else enters the folder that is made here, unless the disk is shared with other accounts. What trials make is
  // as the account wants it, but that on such a disk the driver's account must be able to move it.
  static constexpr std::string_view start_script = R"sh(own=$(umask)
umask "$1"
mkdir -p -- "$2" && cd -- "$2" || exit 1
umask "$own"
if [ "$1" = 007 ]; then umask g=rwx; fi
shift 2
exec "$@")sh";

  // What is missing would fail in every trial alike.
  void check_needs(const std::string& folder) const {
    if (setup_->needs.empty()) return;
    std::vector<std::string> words{folder};
    words.insert(words.end(), setup_->needs.begin(), setup_->needs.end());
    const auto seen = connection_->script(R"sh(
mkdir -p -- "$1" && cd -- "$1" || exit 1
shift
for program do
  command -v -- "$program" >/dev/null || { printf '\nhypertune-missing %s\n' "$program"; exit 0; }
done
)sh",
                                          words);
    if (!seen.ok()) throw remote_error(host_.name, fmt::format("use the folder '{}'", folder), seen);
    const std::string mark = "\nhypertune-missing ";
    const auto at = seen.out.find(mark);
    if (at == std::string::npos) return;
    const auto program = last_line(seen.out.substr(at + mark.size()));
    const bool path = program.find('/') != std::string::npos;
    throw SshError(Problem::missing_program, host_.name,
                   fmt::format("host '{}': there is no program '{}' {}: {}", host_.name, program,
                               path ? fmt::format("that may be run in '{}'", folder) : "in its PATH",
                               path ? "bring it there with file_mounts" : "install it there, or name it by its path"));
  }

  HostSpec host_;
  std::shared_ptr<const SshSetup> setup_;
  std::shared_ptr<remote::Notices> notices_;
  bool clock_told_ = false;
  std::optional<SshConnection> connection_;
};

HostSpec with_limits(HostSpec host, const HostSpec& limits) {
  if (host.slots == 0 && host.cpus == 0) host.slots = limits.slots;
  if (host.cpus == 0 && host.slots == 0) host.cpus = limits.cpus;
  if (host.gpus < 0) host.gpus = limits.gpus;
  if (host.memory == 0) host.memory = limits.memory;
  for (const auto& [name, amount] : limits.custom) host.custom.emplace(name, amount);
  return host;
}

}  // namespace detail

SshSetup detail::with_environment(SshSetup setup) {
  if (setup.hosts.given()) return setup;
  auto hosts = HostSource::environment();
  if (!hosts) return setup;
  setup.hosts = std::move(*hosts);
  const char* config = std::getenv("HYPERTUNE_SSH_CONFIG");
  if (setup.ssh.config.empty() && config != nullptr) setup.ssh.config = config;
  const char* notices = std::getenv("HYPERTUNE_NOTICE_URL");
  if (setup.remote.notice_command.empty() && setup.remote.notice_url.empty() && notices != nullptr)
    setup.remote.notice_url = notices;
  return setup;
}

/// The pool follows the list on a thread of its own, where the list can change.
class SshExecutor::State {
 public:
  explicit State(SshSetup setup)
      : setup_(std::make_shared<SshSetup>(detail::with_environment(std::move(setup)))),
        executor_(pool_, patient(*setup_)) {
    setup_->ssh.validate();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { stop_following(); }

  remote::RemoteExecutor& executor() { return executor_; }
  remote::Notices& notices() { return *notices_; }

  /// The first look at the list; throws what is wrong with it.
  void begin() {
    const std::lock_guard hold(begin_mutex_);
    if (begun_) return;
    if (!setup_->hosts.given())
      fail(Errc::usage,
           "there are no hosts to run trials on: name them (.hosts), or set HYPERTUNE_HOSTS to their names, "
           "separated by commas, or to @FILE");
    {
      // A list that takes its time is not waited for in silence.
      const detail::Overdue overdue(
          1, [this] { notices_->say_now(fmt::format("waits for {}: they are not known yet", setup_->hosts.what())); });
      follow_once();
    }
    if (setup_->hosts.hosts().empty() && setup_->hosts.interval() == 0)
      fail(Errc::usage, "there are no hosts to run trials on: {} is empty", setup_->hosts.what());
    begun_ = true;
    if (setup_->hosts.interval() > 0) thread_ = std::thread([this] { follow(); });
  }

  void stop_following() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    list_.request_stop();
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // A list that can change may be the one that is mended.
  static remote::RemoteOptions patient(const SshSetup& setup) {
    auto options = setup.remote;
    if (setup.hosts.interval() > 0)
      options.all_refused = std::max(options.all_refused, std::max(60.0, 3 * setup.hosts.interval()));
    return options;
  }

  void follow_once() {
    const auto change = setup_->hosts.poll(list_.get_token());
    if (list_.stop_requested()) return;
    const bool empty = setup_->hosts.kept_outside() && setup_->hosts.hosts().empty() && !change.trouble;
    if (empty && !std::exchange(empty_told_, empty))
      notices_->say_now(fmt::format("there is no host to run trials on: {} are none; looks again every {:g} s",
                                    setup_->hosts.what(), setup_->hosts.interval()));
    empty_told_ = empty;
    if (change.trouble && change.trouble != trouble_)
      notices_->say(fmt::format("{} cannot be read, the last ones hold: {}", setup_->hosts.what(), *change.trouble));
    trouble_ = change.trouble;
    for (const auto& name : change.left) {
      const bool again =
          std::any_of(change.joined.begin(), change.joined.end(), [&](const auto& host) { return host.name == name; });
      if (!again) pool_.remove(name);
    }
    for (const auto& host : change.joined) {
      pool_.add({.name = host.name,
                 .dialer = detail::SshDialer(detail::with_limits(host, setup_->limits), setup_, notices_)});
    }
  }

  void follow() {
    std::unique_lock hold(mutex_);
    while (!stop_.wait_for(hold, std::chrono::duration<double>(setup_->hosts.interval()), [&] { return stopping_; })) {
      hold.unlock();
      follow_once();
      hold.lock();
    }
  }

  std::shared_ptr<SshSetup> setup_;
  std::shared_ptr<remote::Notices> notices_ = std::make_shared<remote::Notices>();
  remote::HostPool pool_;
  remote::RemoteExecutor executor_;
  std::mutex begin_mutex_, mutex_;
  std::condition_variable stop_;
  bool begun_ = false, stopping_ = false, empty_told_ = false;
  std::stop_source list_;  // ends the program that lists hosts
  std::optional<std::string> trouble_;
  std::thread thread_;
};

SshExecutor::SshExecutor(SshSetup setup) : self_(std::make_shared<State>(std::move(setup))) {}
SshExecutor::SshExecutor(SshExecutor&&) noexcept = default;
SshExecutor& SshExecutor::operator=(SshExecutor&&) noexcept = default;
SshExecutor::~SshExecutor() = default;

std::vector<Host> SshExecutor::hosts() const {
  self_->begin();
  return self_->executor().hosts();
}
Seconds SshExecutor::now() const { return self_->executor().now(); }
void SshExecutor::start(ExecutorStart start) {
  self_->begin();
  self_->notices().start(start.sink);
  self_->executor().start(std::move(start));
}
void SshExecutor::perform(Command command) {
  self_->notices().take();
  self_->executor().perform(std::move(command));
}
void SshExecutor::wait(Seconds deadline) {
  self_->notices().flush();
  self_->executor().wait(deadline);
}
void SshExecutor::notify() { self_->executor().notify(); }
void SshExecutor::shutdown() {
  self_->stop_following();
  self_->notices().end();
  self_->executor().shutdown();
}
std::vector<remote::HostAccount> SshExecutor::accounts() const { return self_->executor().accounts(); }

}  // namespace hypertune::ssh
