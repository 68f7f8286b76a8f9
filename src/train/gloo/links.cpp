#include "links.hpp"

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/train/detail/rendezvous_values.hpp>
#include <hypertune/trial/detail/group_address.hpp>

#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// Makes Gloo's thread run another round of its loop, with a pause so that it does not take a whole processor
/// meanwhile. It has no state, as that thread may be about to call it when a GlooBusyLoop is destroyed.
class AnotherRound final : public gloo::transport::tcp::Handler {
 public:
  void handleEvents(int) override { std::this_thread::sleep_for(std::chrono::microseconds(300)); }
};

/// Runs a GlooBusyLoop during its lifetime.
class BusyLoopScope {
 public:
  explicit BusyLoopScope(std::shared_ptr<GlooBusyLoop> busy_loop) : busy_loop_(std::move(busy_loop)) {
    busy_loop_->start();
  }
  BusyLoopScope(const BusyLoopScope&) = delete;
  BusyLoopScope& operator=(const BusyLoopScope&) = delete;
  ~BusyLoopScope() { busy_loop_->stop(); }

 private:
  std::shared_ptr<GlooBusyLoop> busy_loop_;
};

/// Connects to one rank after another on a thread of its own, so that the caller can notice the end of the generation.
class Connecting {
 public:
  Connecting(const GlooLinks& links, std::vector<std::vector<char>> addresses, std::vector<int> ranks, Rendezvous& to,
             const std::string& key)
      : links_(links),
        busy_(links.busy_loop),
        thread_([this, addresses = std::move(addresses), ranks = std::move(ranks), &to, key] {
          for (std::size_t i = 0; i < ranks.size(); ++i) {
            try {
              links_.context->getPair(ranks[i])->connect(addresses[i]);
            } catch (const std::exception& error) {
              error_ = std::make_exception_ptr(
                  GroupError(GroupError::Kind::lost,
                             fmt::format("rank {} cannot be reached: {}", ranks[i], error.what()), {ranks[i]}));
              failed_ = true;
              return;
            }
          }
          try {
            to.set(key, "1");
          } catch (...) {
            error_ = std::current_exception();
            failed_ = true;
          }
        }) {}
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;
  ~Connecting() {
    if (!thread_.joinable()) return;
    links_.close();
    thread_.join();
  }
  void check() const {
    if (failed_) std::rethrow_exception(error_);
  }
  /// Called when all ranks have connected to all.
  void done() {
    thread_.join();
    check();
  }

 private:
  const GlooLinks& links_;
  BusyLoopScope busy_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

/// The values of "<prefix><rank>" of all other ranks, by rank.
std::vector<std::string> collect(Rendezvous& rendezvous, const std::string& prefix, const std::vector<int>& others,
                                 Clock::time_point limit, double timeout) {
  std::vector<std::string> keys, values;
  for (const int rank : others) keys.push_back(prefix + fmt::format("{}", rank));
  auto found = rendezvous_values(rendezvous, keys, limit);
  std::vector<int> missing;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (found[i])
      values.push_back(std::move(*found[i]));
    else
      missing.push_back(others[i]);
  }
  if (!missing.empty())
    throw GroupError(GroupError::Kind::late,
                     fmt::format("{} did not come to the rendezvous within {} s", describe_ranks(missing), timeout),
                     missing);
  return values;
}

}  // namespace

GlooBusyLoop::GlooBusyLoop(gloo::transport::Device& device)
    : fd_(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK)) {
  static AnotherRound another_round;
  if (fd_ >= 0) dynamic_cast<gloo::transport::tcp::Device&>(device).registerDescriptor(fd_, EPOLLIN, &another_round);
}
GlooBusyLoop::~GlooBusyLoop() {
  if (fd_ >= 0) ::close(fd_);
}
void GlooBusyLoop::start() const {
  const std::uint64_t one = 1;
  if (fd_ >= 0) static_cast<void>(!::write(fd_, &one, sizeof one));
}
void GlooBusyLoop::stop() const {
  std::uint64_t one = 0;
  if (fd_ >= 0) static_cast<void>(!::read(fd_, &one, sizeof one));
}

void GlooLinks::close() const {
  const BusyLoopScope busy(busy_loop);
  // A wait that exceeds its limit closes all connections. Gloo has no other way to do so that sends what was written.
  const auto nothing = context->createUnboundBuffer(nullptr, 0);
  try {
    nothing->waitRecv(std::chrono::milliseconds(0));
  } catch (const std::exception&) {}  // the expected timeout
}

GlooLinks link_gloo(const GroupPlace& place, Rendezvous& rendezvous, const CommunicatorOptions& options) {
  const auto limit = steady_after(options.timeout);
  const std::string prefix = fmt::format("gloo/{}/", place.generation);
  std::vector<int> others;
  for (int rank = 0; rank < place.size(); ++rank)
    if (rank != place.rank) others.push_back(rank);

  const std::string address = address_of(place);
  const SignalBlock for_new_threads;
  GlooLinks links;
  std::string mine;
  try {
    links.device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
    links.busy_loop = std::make_shared<GlooBusyLoop>(*links.device);
    links.context = links.device->createContext(place.rank, place.size());
    // Gloo waits five times as long for a connection to be made.
    links.context->setTimeout(
        std::chrono::milliseconds(std::max(1LL, static_cast<long long>(seconds_until(limit) * 200))));
    for (const int rank : others) mine += to_hex(links.context->createPair(rank)->address().bytes()) + " ";
  } catch (const std::exception& error) {
    throw GroupError(GroupError::Kind::failed,
                     fmt::format("rank {} cannot listen at {}: {}", place.rank, address, error.what()));
  }
  rendezvous.set(prefix + fmt::format("{}", place.rank), mine);

  std::vector<std::vector<char>> addresses;
  const auto values = collect(rendezvous, prefix, others, limit, options.timeout);
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto bad = [&] {
      return GroupError(GroupError::Kind::failed, fmt::format("rank {} left no address in the rendezvous", others[i]),
                        {others[i]});
    };
    // Each rank publishes one address for each other rank; take the one for this rank.
    const auto number = static_cast<std::size_t>(place.rank < others[i] ? place.rank : place.rank - 1);
    std::size_t begin = 0;
    for (std::size_t n = 0; n < number; ++n) {
      begin = values[i].find(' ', begin);
      if (begin == std::string::npos) throw bad();
      ++begin;
    }
    auto bytes = from_hex(values[i].substr(begin, values[i].find(' ', begin) - begin));
    if (!bytes || bytes->empty()) throw bad();
    addresses.emplace_back(bytes->begin(), bytes->end());
  }

  Connecting connecting(links, std::move(addresses), others, rendezvous,
                        prefix + fmt::format("connected/{}", place.rank));
  for (const int rank : others) {
    // In short waits, to notice a failure of this rank's connecting; a wait ends at once when the other rank is done.
    while (!rendezvous.wait(prefix + fmt::format("connected/{}", rank), std::min(0.2, seconds_until(limit)))) {
      connecting.check();
      if (seconds_until(limit) <= 0)
        throw GroupError(GroupError::Kind::late,
                         fmt::format("rank {} did not connect to all others within {} s", rank, options.timeout),
                         {rank});
    }
  }
  connecting.done();
  return links;
}

}  // namespace hypertune::inline v0::detail
