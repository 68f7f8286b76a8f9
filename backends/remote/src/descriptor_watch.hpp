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
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
    ready_[fd] = std::make_shared<const std::function<void()>>(std::move(ready));
    wait();
    return true;
  }
  /// May be called from `ready`. Without descriptors, the io_context has no pending work here.
  void remove(int fd) {
    const auto found = ready_.find(fd);
    if (found == ready_.end()) return;
    ::epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
    const auto held = std::move(found->second);  // its destruction may call remove() again
    ready_.erase(found);
    if (ready_.empty()) epoll_.cancel();
  }

 private:
  static int new_epoll() {
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) fail(Errc::io, "cannot watch streams: {}", std::generic_category().message(errno));
    return fd;
  }

  void shutdown() override {
    const auto held = std::exchange(ready_, {});
    boost::system::error_code ignored;
    epoll_.close(ignored);
  }

  void wait() {
    if (waiting_ || ready_.empty()) return;
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
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(fd_, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const auto found = ready_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == ready_.end()) continue;  // removed by an earlier handler
      const auto held = found->second;
      (*held)();
    }
  }

  boost::asio::posix::stream_descriptor epoll_;
  const int fd_;
  std::unordered_map<int, std::shared_ptr<const std::function<void()>>> ready_;
  bool waiting_ = false;
};

}  // namespace hypertune::inline v0::remote::detail
