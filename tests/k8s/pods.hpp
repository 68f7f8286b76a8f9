// Pods as child processes of the test, each with a folder of its own, and the driver's end of their streams.
#pragma once

#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/k8s/agent_listener.hpp>
#include <hypertune/k8s/pod_keeper.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/process/subprocess.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A keeper with what a pod gives it. Ended by force with its owner.
class Pod {
 public:
  using Variables = std::map<std::string, std::optional<std::string>>;

  explicit Pod(std::vector<std::string> command, Variables variables = {}) : command_(std::move(command)) {
    variables_ = {{"HYPERTUNE_AGENTS", (folder_.path() / "agents").string()},
                  {"HYPERTUNE_POD_DRIVER", (folder_.path() / "driver").string()},
                  {"XDG_CACHE_HOME", (folder_.path() / "cache").string()},
                  {"TEST_NOTES", (folder_.path() / "notes").string()}};
    variables.merge(variables_);
    variables_ = std::move(variables);
  }
  /// One that calls home, whose agents are this command.
  static Pod calling(const std::string& worker, const Secret& token, std::vector<std::string> agent,
                     std::vector<std::string> limits = {"0.2", "1", "3"}) {
    std::vector<std::string> command{HYPERTUNE_TEST_POD, "keep"};
    command.insert(command.end(), limits.begin(), limits.end());
    command.insert(command.end(), agent.begin(), agent.end());
    return Pod(std::move(command), {{"HYPERTUNE_POD_NAME", worker}, {"HYPERTUNE_POD_TOKEN", token.reveal()}});
  }

  Pod& start() {
    const hypertune::detail::Descriptor log(
        ::open((folder_.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    process::SpawnOptions options{.out = process::Stream::pipe, .err = log.get(), .environment = variables_};
    child_ = process::Subprocess(command_, options);
    return *this;
  }
  /// Says where the driver is, as the kubelet does: at once or not at all.
  Pod& point_to(const k8s::DriverAddress& driver) {
    std::ofstream(folder_.path() / "driver.new") << driver.to_string();
    std::filesystem::rename(folder_.path() / "driver.new", folder_.path() / "driver");
    return *this;
  }
  void signal(int number) const { ::kill(child_.pid(), number); }
  bool ended(double seconds = 20) {
    return eventually([&] { return child_.ready(0).exited; }, seconds);
  }
  int exit_code() { return process::exit_code(child_.wait()); }
  pid_t pid() const { return child_.pid(); }
  std::vector<pid_t> agents() const { return process::children_of(pid()); }
  std::string log() const { return text_of(folder_.path() / "log"); }
  bool says(const std::string& text, double seconds = 20) const {
    return eventually([&] { return log().find(text) != std::string::npos; }, seconds);
  }
  std::filesystem::path folder() const { return folder_.path(); }
  const Variables& variables() const { return variables_; }

 private:
  TemporaryDirectory folder_;
  std::vector<std::string> command_;
  Variables variables_;
  process::Subprocess child_;
};

/// What a listener says to its user.
class Said {
 public:
  std::function<void(const std::string&)> taker() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

inline k8s::ListenerOptions on_loopback(Secret token) {
  k8s::ListenerOptions options;
  options.address = "127.0.0.1";
  options.token = std::move(token);
  options.experiment = "test";
  options.ping = 0.2;
  options.silence = 1;
  return options;
}

/// The driver's end of a stream.
class Talk {
 public:
  explicit Talk(remote::AgentStream stream) : stream_(std::move(stream)) {}

  void say(std::string_view text) {
    while (!text.empty()) {
      const auto n = ::write(stream_.to.get(), text.data(), text.size());
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// The next bytes, as many as that; fewer if the stream ends or nothing comes for long.
  std::string hear(std::size_t size, double seconds = 20) { return from(stream_.from.get(), size, seconds); }
  /// All that explains its end.
  std::string errors(double seconds = 20) { return from(stream_.err.get(), std::string::npos, seconds); }
  bool ended(double seconds = 20) { return hear(1, seconds).empty() && over_; }
  remote::AgentStream& stream() { return stream_; }

 private:
  std::string from(int fd, std::size_t size, double seconds) {
    std::string text;
    char bytes[4096];
    over_ = false;
    while (text.size() < size) {
      pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&polled, 1, static_cast<int>(seconds * 1000)) <= 0) break;
      const auto n = ::read(fd, bytes, std::min(sizeof bytes, size - text.size()));
      over_ = n <= 0;
      if (over_) break;
      text.append(bytes, static_cast<std::size_t>(n));
    }
    return text;
  }
  remote::AgentStream stream_;
  bool over_ = false;
};

}  // namespace hypertune::inline v0::test
