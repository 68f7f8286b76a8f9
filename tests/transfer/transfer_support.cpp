#include "transfer_support.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace hypertune::inline v0::test {

namespace {

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof address.sun_path)
    throw std::runtime_error("the test's socket has too long a path");
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

int listen_at(const std::filesystem::path& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(path);
  ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 64) != 0)
    throw std::runtime_error("cannot listen at the test's socket");
  return fd;
}

int connect_at(const std::filesystem::path& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = address_of(path);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

bool send_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Accepts, and runs a thread per connection; at the end, all their sockets are shut down.
class Acceptor {
 public:
  Acceptor(const std::filesystem::path& path, std::function<void(int connection, int fd)> serve)
      : listener_(listen_at(path)), serve_(std::move(serve)), thread_([this] { run(); }) {}

  ~Acceptor() {
    stopped_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& thread : threads_) thread.join();
    ::close(listener_);
  }

  void watch(int fd) {
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    if (stopped_) ::shutdown(fd, SHUT_RDWR);
  }
  void close(int fd) {
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
  }
  int connections() const { return count_; }

 private:
  void run() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      if (stopped_) {
        ::close(fd);
        return;
      }
      watch(fd);
      threads_.emplace_back([this, fd, number = count_++] {
        serve_(number, fd);
        close(fd);
      });
    }
  }

  int listener_;
  std::function<void(int, int)> serve_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> count_{0};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread thread_;
};

}  // namespace

std::string random_bytes(std::uint64_t seed, std::size_t size) {
  std::string bytes(size + 8, '\0');
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t i = 0; i < size; i += 8) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    z ^= z >> 31U;
    std::memcpy(bytes.data() + i, &z, 8);
  }
  bytes.resize(size);
  return bytes;
}

std::vector<std::string> TwoNodes::partial(TrialId trial) const {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(target.folder(trial), none))
    if (entry.path().filename().string().starts_with(".incoming-")) names.push_back(entry.path().string());
  return names;
}

std::pair<Errc, std::string> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find('\n') == std::string::npos);
    return {e.code(), e.what()};
  }
  FAIL("no hypertune::Error was thrown");
  return {};
}

class Proxy::Impl {
 public:
  Impl(std::filesystem::path listen, std::filesystem::path server, Meddling meddling)
      : path_(std::move(listen)),
        server_(std::move(server)),
        meddling_(std::move(meddling)),
        acceptor_(path_, [this](int connection, int fd) { relay(connection, fd); }) {}

  const std::filesystem::path path_, server_;
  const Meddling meddling_;
  Acceptor acceptor_;

 private:
  void relay(int connection, int client) {
    const int server = connect_at(server_);
    if (server < 0) return;
    acceptor_.watch(server);
    std::uint64_t at = 0;
    const std::uint64_t end = meddling_.cut_after ? meddling_.cut_after(connection) : UINT64_MAX;
    std::vector<char> buffer(65536);
    for (bool open = true; open && at < end;) {
      pollfd fds[2] = {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}};
      if (::poll(fds, 2, -1) < 0) continue;
      if (fds[0].revents != 0) {
        const ssize_t n = ::recv(client, buffer.data(), buffer.size(), 0);
        open = n > 0 && send_all(server, buffer.data(), static_cast<std::size_t>(n));
      }
      if (open && fds[1].revents != 0) {
        const ssize_t n = ::recv(server, buffer.data(), std::min<std::uint64_t>(buffer.size(), end - at), 0);
        if (n > 0 && meddling_.spoil) meddling_.spoil(connection, at, buffer.data(), static_cast<std::size_t>(n));
        open = n > 0 && send_all(client, buffer.data(), static_cast<std::size_t>(n));
        at += n > 0 ? static_cast<std::uint64_t>(n) : 0;
      }
    }
    acceptor_.close(server);
  }
};

Proxy::Proxy(std::filesystem::path listen, std::filesystem::path server, Meddling meddling)
    : impl_(std::make_unique<Impl>(std::move(listen), std::move(server), std::move(meddling))) {}
Proxy::~Proxy() = default;
Endpoint Proxy::endpoint() const { return {.address = UnixSocket{impl_->path_}, .certificate = {}, .token = {}}; }
int Proxy::connections() const { return impl_->acceptor_.connections(); }

class ScriptedServer::Impl {
 public:
  Impl(std::filesystem::path listen, std::function<Answer(const std::string&)> script)
      : path_(std::move(listen)), script_(std::move(script)), acceptor_(path_, [this](int, int fd) { serve(fd); }) {}
  const std::filesystem::path path_;

 private:
  void serve(int fd) {
    std::string request;
    for (;;) {
      while (request.find("\r\n\r\n") == std::string::npos) {
        char block[4096];
        const ssize_t n = ::recv(fd, block, sizeof block, 0);
        if (n <= 0) return;
        request.append(block, static_cast<std::size_t>(n));
      }
      const auto end = request.find("\r\n\r\n") + 4;
      const Answer answer = script_(request.substr(0, end));
      request.erase(0, end);
      if (!send_all(fd, answer.bytes.data(), answer.bytes.size())) return;
      while (!answer.repeated.empty())
        if (!send_all(fd, answer.repeated.data(), answer.repeated.size())) return;
      if (!answer.hold) return;
    }
  }

  const std::function<Answer(const std::string&)> script_;
  Acceptor acceptor_;
};

ScriptedServer::ScriptedServer(std::filesystem::path listen, std::function<Answer(const std::string&)> script)
    : impl_(std::make_unique<Impl>(std::move(listen), std::move(script))) {}
ScriptedServer::~ScriptedServer() = default;
Endpoint ScriptedServer::endpoint() const {
  return {.address = UnixSocket{impl_->path_}, .certificate = {}, .token = {}};
}

std::string exchange(const std::filesystem::path& socket, std::string_view text, std::chrono::milliseconds timeout) {
  const int fd = connect_at(socket);
  if (fd < 0) return "no connection";
  std::string answer;
  if (!send_all(fd, text.data(), text.size())) {
    answer = "<closed>";
  } else {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) break;
      char block[4096];
      const ssize_t n = ::recv(fd, block, sizeof block, 0);
      if (n <= 0) {
        answer += "<closed>";
        break;
      }
      answer.append(block, static_cast<std::size_t>(n));
    }
  }
  ::close(fd);
  return answer;
}

}  // namespace hypertune::inline v0::test
