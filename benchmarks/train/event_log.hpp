// What workers, and whoever disturbs them, note with the time: in memory that processes share, however they begin.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace elastic {

/// Of the clock that all processes of a machine share.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Event {
  enum class What : std::uint32_t {
    entered,    ///< the trial's function
    joined,     ///< the executor has formed the group; the ranks are to connect
    connected,  ///< the collectives can begin
    formed,     ///< all have the same state, and train
    failed,     ///< a collective has thrown
    committed,  ///< also: what is measured has been done `value` times
    reported,   ///< about to
    killed,
  };
  double time = 0;
  What what = {};
  std::int32_t trial = 0, pid = 0, rank = 0, size = 0;
  std::uint32_t generation = 0;
  double value = 0;
};

/// A file's memory: events in the order in which they were noted.
class EventLog {
 public:
  static constexpr std::size_t most = 1U << 19U;

  explicit EventLog(const std::filesystem::path& file) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* memory = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, sizeof(Shared)) == 0)
      memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) ::close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the events");
    shared_ = static_cast<Shared*>(memory);
  }
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog() { ::munmap(shared_, sizeof(Shared)); }

  /// Also: what the workers are told by whoever disturbs them. Zero at the beginning.
  std::atomic<std::int32_t>& stop() { return shared_->stop; }
  std::atomic<std::int32_t>& release() { return shared_->release; }

  void note(Event event) {
    const std::uint64_t place = shared_->next.fetch_add(1);
    if (place >= most) return;
    if (event.pid == 0) event.pid = ::getpid();
    if (event.time == 0) event.time = now();
    shared_->events[place] = event;
    shared_->there[place].store(1, std::memory_order_release);
  }
  /// Those from place `from` on that are there without a gap.
  std::vector<Event> read(std::size_t from = 0) const {
    std::vector<Event> events;
    for (; from < most && shared_->there[from].load(std::memory_order_acquire) != 0; ++from)
      events.push_back(shared_->events[from]);
    return events;
  }

 private:
  struct Shared {  // zero is a value of all
    std::atomic<std::uint64_t> next;
    std::atomic<std::int32_t> stop, release;
    std::atomic<std::uint8_t> there[most];
    Event events[most];
  };
  Shared* shared_ = nullptr;
};

}  // namespace elastic
