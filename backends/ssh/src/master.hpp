// Master: the ssh process that holds a host's connection, and the thread that watches it.
#pragma once

#include "control_folder.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/remote/host_facts.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/options.hpp>
#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::ssh::detail {

using hypertune::detail::Descriptor;
using hypertune::detail::steady_seconds;
using remote::detail::last_line;

inline SshError closed_error(const std::string& host) {
  return SshError(Problem::lost, host, fmt::format("host '{}': the connection is closed", host));
}

/// The thread that forks the ssh process lives as long as that process. The kernel ends the ssh process when its parent
/// thread ends, which happens at the latest when this program dies, in whatever way.
class Master {
 public:
  Master(std::string host, SshOptions options) : host_(std::move(host)), options_(std::move(options)) {
    if (host_.empty() || host_.front() == '-' ||
        host_.find_first_of(" \t\n\r'\"\\`$;&|<>(){}*?!#") != std::string::npos)
      fail(Errc::usage, "'{}' is not the name of a host", host_);
    validate(options_);
    if (!options_.config.empty() && ::access(options_.config.c_str(), R_OK) != 0)
      throw SshError(Problem::bad_config, host_,
                     fmt::format("the ssh_config '{}' cannot be read: {}", options_.config.string(),
                                 std::generic_category().message(errno)));
    folder_ = ControlFolder::get();
    socket_ = folder_->next_socket();
    wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) fail(Errc::io, "cannot make an event: {}", std::generic_category().message(errno));
  }
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;
  ~Master() {
    on_stop_.reset();
    close();
  }

  /// Closes when `stop` is requested, at any time. Must be called before open().
  void close_on(std::stop_token stop) {
    on_stop_.emplace(std::move(stop), std::function<void()>([this] { begin_to_close(); }));
  }

  /// Connects; throws SshError.
  void open(double until) {
    thread_ = std::thread([this] { watch(); });
    std::unique_lock hold(mutex_);
    const auto reached = [this] { return state_ == State::open || state_ == State::ended; };
    if (!changed_.wait_for(hold, std::chrono::duration<double>(std::max(0.0, until - steady_seconds())), reached)) {
      const std::string said = last_line(messages_);
      hold.unlock();
      close();
      throw SshError(Problem::unreachable, host_,
                     fmt::format("host '{}': not connected within the deadline{}; is it up, and is the way to it slow?",
                                 host_, said.empty() ? "" : " (" + said + ")"));
    }
    if (state_ == State::open) return;
    const SshError error = error_ ? *error_ : closed_error(host_);
    hold.unlock();
    close();
    throw SshError(error);
  }

  void close() noexcept {
    begin_to_close();
    const std::lock_guard hold(join_mutex_);
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) return;  // called from on_lost(): the thread ends anyway
    thread_.join();
  }

  bool alive() const {
    const std::lock_guard hold(mutex_);
    return state_ == State::open && !closing_;
  }
  std::optional<SshError> lost() const {
    const std::lock_guard hold(mutex_);
    return error_;
  }
  void on_lost(std::function<void(const SshError&)> then) {
    {
      const std::lock_guard hold(mutex_);
      if (!error_) {
        then_.push_back(std::move(then));
        return;
      }
    }
    then(*error_);
  }

  /// After a session failed, waits to see whether the connection was lost.
  std::optional<SshError> lost_within(double seconds) const {
    std::unique_lock hold(mutex_);
    changed_.wait_for(hold, std::chrono::duration<double>(seconds), [this] { return state_ == State::ended; });
    return error_;
  }

  const std::string& host() const { return host_; }
  const SshOptions& options() const { return options_; }
  const std::string& socket() const { return socket_; }

  remote::HostFacts facts;

  /// `ssh` with the configuration and the control socket; it never opens its own connection.
  std::vector<std::string> session_arguments() const {
    std::vector<std::string> all{options_.program};
    if (!options_.config.empty()) all.insert(all.end(), {"-F", options_.config.string()});
    all.insert(all.end(), {"-S", socket_, "-T", "-e", "none"});
    for (const char* option : {"ControlMaster=no", "BatchMode=yes", "ProxyCommand=false", "ClearAllForwardings=yes",
                               "PermitLocalCommand=no", "ForwardX11=no", "LogLevel=ERROR"})
      all.insert(all.end(), {"-o", option});
    for (const auto& option : own_settings(options_.program, true)) all.insert(all.end(), {"-o", option});
    return all;
  }
  /// For `-O forward` and the like; without the configuration, because its forwardings would be added.
  std::vector<std::string> control_arguments(const char* what) const {
    return {options_.program,
            "-F",
            "none",
            "-S",
            socket_,
            "-o",
            "BatchMode=yes",
            "-o",
            "StreamLocalBindUnlink=yes",
            "-O",
            what};
  }

  /// Reserves one of the sessions that may run at once.
  class Session {
   public:
    Session(Master& master, double until) : master_(master) {
      std::unique_lock hold(master.mutex_);
      if (!master.changed_.wait_for(hold, std::chrono::duration<double>(std::max(0.0, until - steady_seconds())),
                                    [&] { return master.sessions_ < master.options_.sessions; }))
        throw SshError(Problem::timeout, master.host_,
                       fmt::format("host '{}': {} commands run there already, and none has ended before the deadline",
                                   master.host_, master.sessions_));
      ++master.sessions_;
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() {
      {
        const std::lock_guard hold(master_.mutex_);
        --master_.sessions_;
      }
      master_.changed_.notify_all();
    }

   private:
    Master& master_;
  };

 private:
  enum class State : std::uint8_t { opening, open, ended };

  std::vector<std::string> arguments() const {
    std::vector<std::string> all{options_.program};
    if (!options_.config.empty()) all.insert(all.end(), {"-F", options_.config.string()});
    if (!options_.user.empty()) all.insert(all.end(), {"-l", options_.user});
    if (options_.port != 0) all.insert(all.end(), {"-p", std::to_string(options_.port)});
    if (!options_.identity.empty()) all.insert(all.end(), {"-i", options_.identity.string()});
    all.insert(all.end(), {"-M", "-N", "-T", "-S", socket_});
    const auto whole = [](double seconds) { return static_cast<long>(std::ceil(seconds)); };
    for (const auto& option : std::vector<std::string>{
             "BatchMode=yes", "ControlPersist=no", "ConnectionAttempts=1",
             fmt::format("ConnectTimeout={}", whole(options_.connect_timeout)),
             fmt::format("ServerAliveInterval={}", whole(options_.alive_interval)),
             fmt::format("ServerAliveCountMax={}", options_.alive_count), "ClearAllForwardings=yes",
             "PermitLocalCommand=no", "ForwardX11=no", "StreamLocalBindUnlink=yes", "LogLevel=INFO"})
      all.insert(all.end(), {"-o", option});
    for (const auto& option : own_settings(options_.program, false)) all.insert(all.end(), {"-o", option});
    for (const auto& option : options_.options) all.insert(all.end(), {"-o", option});
    all.insert(all.end(), {"--", host_});
    return all;
  }

  void begin_to_close() noexcept {
    closing_ = true;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }

  // ---- The thread.

  void watch() {
    try {
      run();
    } catch (const std::exception& error) { end(SshError(Problem::other, host_, error.what())); }
  }

  void run() {
    // Before the fork, because ssh may create the socket at once.
    Descriptor events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (events && ::inotify_add_watch(events.get(), folder_->path().c_str(), IN_CREATE | IN_MOVED_TO) < 0)
      events = Descriptor();
    process::Subprocess client;
    try {
      // Ctrl-C in the terminal must only reach the program, which then closes its connections properly.
      client = process::Subprocess(
          arguments(), {.err = process::Stream::pipe, .group = process::Group::session, .death_signal = SIGTERM});
    } catch (const process::NotStarted& error) {
      end(SshError(Problem::no_client, host_,
                   fmt::format("there is no ssh client '{}' ({}): install OpenSSH's client (openssh-client), or put it "
                               "into PATH",
                               options_.program, error.why())));
      return;
    }
    ::fcntl(client.err.get(), F_SETFL, O_NONBLOCK);
    bool open = false, told_to_leave = false;
    double kill_at = 0;
    for (;;) {
      std::array<pollfd, 4> polled{pollfd{.fd = client.exit_event(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = client.err ? client.err.get() : -1, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = told_to_leave ? -1 : wake_.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = open || !events ? -1 : events.get(), .events = POLLIN, .revents = 0}};
      int wait = -1;
      if (told_to_leave)
        wait = static_cast<int>(std::clamp((kill_at - steady_seconds()) * 1000 + 1, 0.0, 3.6e6));
      else if (!open && !events)
        wait = 20;  // without inotify: poll
      ::poll(polled.data(), polled.size(), wait);
      if (polled[1].revents != 0) read_messages(client.err);
      if (polled[3].revents != 0) {
        std::array<char, 4096> names;
        while (::read(events.get(), names.data(), names.size()) > 0) {}
      }
      if (!open && ::access(socket_.c_str(), F_OK) == 0) {
        open = true;
        events = Descriptor();
        set_open();
      }
      if (polled[0].revents != 0) break;
      if (closing_ && !told_to_leave) {
        told_to_leave = true;
        kill_at = steady_seconds() + 2;
        ::kill(client.pid(), SIGTERM);
      } else if (told_to_leave && steady_seconds() >= kill_at) {
        ::kill(client.pid(), SIGKILL);
        kill_at = steady_seconds() + 3600;
      }
    }
    while (client.err && read_messages(client.err)) {}
    client.wait();
    ::unlink(socket_.c_str());
    std::string said;
    {
      const std::lock_guard hold(mutex_);
      said = messages_;
    }
    if (closing_)
      end(std::nullopt);
    else
      end(classify_client(host_, said, open));
  }

  // Returns false if there is nothing more to read now.
  bool read_messages(Descriptor& from) {
    std::array<char, 4096> buffer;
    const ssize_t n = hypertune::detail::read_some(from.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
      from = Descriptor();
      return false;
    }
    const std::lock_guard hold(mutex_);
    messages_.append(buffer.data(), static_cast<std::size_t>(n));
    if (messages_.size() > 65536) messages_.erase(0, messages_.size() - 32768);
    return true;
  }

  void set_open() {
    {
      const std::lock_guard hold(mutex_);
      state_ = State::open;
      messages_.clear();  // login messages; later ones concern the end of the connection
    }
    changed_.notify_all();
  }

  void end(std::optional<SshError> error) {
    std::vector<std::function<void(const SshError&)>> then;
    {
      const std::lock_guard hold(mutex_);
      const bool was_open = state_ == State::open;
      state_ = State::ended;
      error_ = std::move(error);
      if (error_ && was_open) then.swap(then_);
    }
    changed_.notify_all();
    for (const auto& call : then) call(*error_);
  }

  std::string host_;
  SshOptions options_;
  std::shared_ptr<ControlFolder> folder_;
  std::string socket_;
  Descriptor wake_;
  std::atomic<bool> closing_{false};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::opening;
  std::string messages_;
  std::optional<SshError> error_;
  std::vector<std::function<void(const SshError&)>> then_;
  int sessions_ = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace hypertune::inline v0::ssh::detail
