// Rendezvous of tests: in memory for threads, and served by the parent for processes.
#pragma once

#include <hypertune/trial/group.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hypertune::inline v0::test {

class MemoryRendezvous final : public Rendezvous {
 public:
  void set(const std::string& key, const std::string& value) override {
    const std::lock_guard guard(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }
  std::optional<std::string> wait(const std::string& key, Seconds seconds) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return over_ || values_.contains(key); });
    if (over_) throw *over_;
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  /// The generation is over.
  void end(const GroupError& why) {
    const std::lock_guard guard(mutex_);
    over_ = why;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::optional<GroupError> over_;
};

/// Of one rank, whose questions take their time, as over the connection to a driver: what is there is known some time
/// after it was asked for first.
class AskedRendezvous final : public Rendezvous {
 public:
  explicit AskedRendezvous(Rendezvous& driver) : driver_(driver) {}
  void set(const std::string& key, const std::string& value) override { driver_.set(key, value); }
  std::optional<std::string> wait(const std::string& key, Seconds seconds) override {
    const auto now = std::chrono::steady_clock::now();
    const auto answered = asked_.try_emplace(key, now).first->second + std::chrono::milliseconds(5);
    const double until_answer = std::chrono::duration<double>(answered - now).count();
    const double passing = std::clamp(until_answer, 0.0, seconds);
    if (passing > 0) static_cast<void>(driver_.wait("nothing", passing));
    return seconds < until_answer ? std::nullopt : driver_.wait(key, seconds - passing);
  }

 private:
  Rendezvous& driver_;
  std::map<std::string, std::chrono::steady_clock::time_point> asked_;
};

/// Made before the fork; a child uses it as a Rendezvous, the parent serves it. A connection for each request.
class ServedRendezvous final : public Rendezvous {
 public:
  ServedRendezvous() {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address_.sun_family = AF_UNIX;
    // An abstract name that the kernel chooses.
    socklen_t length = sizeof(sa_family_t);
    check(::bind(listener_, reinterpret_cast<const sockaddr*>(&address_), length));
    check(::listen(listener_, 128));
    length_ = sizeof address_;
    check(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &length_));
  }
  /// Of a process that was not forked by the one that serves: by its name().
  explicit ServedRendezvous(const std::string& name) : length_(static_cast<socklen_t>(name.size())) {
    std::memcpy(&address_, name.data(), std::min(name.size(), sizeof address_));
  }
  ServedRendezvous(const ServedRendezvous&) = delete;
  ServedRendezvous& operator=(const ServedRendezvous&) = delete;
  ~ServedRendezvous() override {
    if (listener_ < 0) return;
    ::shutdown(listener_, SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    for (auto& thread : threads_) thread.join();
    ::close(listener_);
  }

  std::string name() const { return {reinterpret_cast<const char*>(&address_), length_}; }
  MemoryRendezvous& memory() { return memory_; }

  /// In the parent, after the children were forked.
  void serve() {
    acceptor_ = std::thread([this] {
      for (;;) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        threads_.emplace_back([this, fd] { answer(fd); });
      }
    });
  }

  void set(const std::string& key, const std::string& value) override { ask("set\n" + key + "\n" + value); }
  std::optional<std::string> wait(const std::string& key, Seconds seconds) override {
    const auto answer = ask("wait\n" + key + "\n" + std::to_string(seconds));
    if (answer.empty()) throw GroupError(GroupError::Kind::changed, "the generation is over");
    return answer[0] == '+' ? std::optional(answer.substr(1)) : std::nullopt;
  }

 private:
  static void check(int result) {
    if (result < 0) throw std::runtime_error(std::string("rendezvous of the test: ") + std::strerror(errno));
  }
  static std::string read_all(int fd) {
    std::string text;
    char bytes[4096];
    for (;;) {
      const auto count = ::read(fd, bytes, sizeof bytes);
      if (count <= 0) return text;
      text.append(bytes, static_cast<std::size_t>(count));
    }
  }
  static void write_all(int fd, const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const auto count = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }
  std::string ask(const std::string& request) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(::connect(fd, reinterpret_cast<const sockaddr*>(&address_), length_));
    write_all(fd, request);
    ::shutdown(fd, SHUT_WR);
    auto answer = read_all(fd);
    ::close(fd);
    return answer;
  }
  void answer(int fd) {
    const auto request = read_all(fd);
    const auto first = request.find('\n'), second = request.find('\n', first + 1);
    if (second != std::string::npos) {
      const auto key = request.substr(first + 1, second - first - 1), value = request.substr(second + 1);
      if (request.starts_with("set")) {
        memory_.set(key, value);
        write_all(fd, "+");
      } else {
        try {
          const auto found = memory_.wait(key, std::strtod(value.c_str(), nullptr));
          write_all(fd, found ? "+" + *found : "-");
        } catch (const GroupError&) {}  // no answer says so
      }
    }
    ::close(fd);
  }

  MemoryRendezvous memory_;
  int listener_ = -1;
  sockaddr_un address_ = {};
  socklen_t length_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;
};

}  // namespace hypertune::inline v0::test
