// DescriptorWatch: waits for many descriptors with one wait of the io_context.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// A service of an io_context with one thread (asio::use_service); must be used on that thread. With Asio, each wait
/// for a descriptor costs a system call and a completion; here, all descriptors that are ready at once share one.
/// Waiting needs no buffer.
class DescriptorWatch : public boost::asio::execution_context::service {
 public:
  using key_type = DescriptorWatch;
  static inline boost::asio::execution_context::id id;

  explicit DescriptorWatch(boost::asio::io_context& io)
      : service(io), epoll_(io, new_epoll()), fd_(epoll_.native_handle()) {}

  /// Calls `ready` whenever `events` (EPOLLIN, EPOLLOUT), the end of the stream or an error are pending, until
  /// remove(fd), which must come before `fd` is closed. Returns false and sets errno if the descriptor cannot be
  /// watched.
  bool add(int fd, std::uint32_t events, std::function<void()> ready) {
    auto watched = std::make_unique<Watched>(std::move(ready));
    epoll_event event{};
    event.events = events;
    event.data.ptr = watched.get();
    if (::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
    watched_[fd] = std::move(watched);
    wait();
    return true;
  }
  /// May be called from `ready`. Without descriptors, the io_context has no pending work here.
  void remove(int fd) {
    const auto found = watched_.find(fd);
    if (found == watched_.end()) return;
    ::epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
    auto gone = std::move(found->second);  // its destruction may call remove() again
    watched_.erase(found);
    if (watched_.empty()) epoll_.cancel();
    gone->removed = true;
    if (looking_) removed_.push_back(std::move(gone));  // an event that look() holds may name it
  }

 private:
  struct Watched {
    explicit Watched(std::function<void()> r) : ready(std::move(r)) {}
    const std::function<void()> ready;
    bool removed = false;
  };

  static int new_epoll() {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) fail(Errc::io, "cannot watch streams: {}", std::generic_category().message(errno));
    return fd;
  }

  void shutdown() override {
    const auto held = std::exchange(watched_, {});
    boost::system::error_code ignored;
    epoll_.close(ignored);
  }

  void wait() {
    if (waiting_ || watched_.empty()) return;
    waiting_ = true;
    epoll_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
      waiting_ = false;
      try {
        if (!error) look();
      } catch (...) {
        wait();  // for the other descriptors
        throw;
      }
      wait();
    });
  }
  // Level-triggered: what is not handled now is reported again.
  void look() {
    struct Looking {
      DescriptorWatch& self;
      explicit Looking(DescriptorWatch& s) : self(s) { self.looking_ = true; }
      ~Looking() {
        self.looking_ = false;
        const auto held = std::exchange(self.removed_, {});
      }
    } const looking(*this);
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(fd_, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const auto* watched = static_cast<const Watched*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!watched->removed) watched->ready();
    }
  }

  boost::asio::posix::stream_descriptor epoll_;
  const int fd_;
  std::unordered_map<int, std::unique_ptr<Watched>> watched_;
  std::vector<std::unique_ptr<Watched>> removed_;  // by handlers that look() calls
  bool waiting_ = false, looking_ = false;
};

}  // namespace hypertune::inline v0::remote::detail
