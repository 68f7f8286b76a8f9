// Hosts whose agents are played: they speak the host protocol and train nothing, a thousand of them on one thread.
#pragma once

#include "host_protocol.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/remote/host_pool.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::test {

using hypertune::detail::Descriptor;

/// What the agents have seen and done so far, all together.
struct PlayedCounts {
  std::atomic<std::int64_t> greeted{0}, launches{0}, reports{0}, ends{0}, beats_heard{0}, beats_sent{0};
};

/// What is played.
struct Play {
  int steps = 1;     ///< of each trial, which reports "value", its parameter x times the steps done
  double cpus = 2;   ///< of each host
  double usage = 5;  ///< seconds between two words of a host about what of it is in use
  std::vector<std::vector<std::string>> addresses = {};  ///< of host 0, 1, …; none of those that follow
};

/// The agents' side: a loop over all streams. It is told what to do by a socket, so that it may be in another process.
class PlayedAgents {
 public:
  enum class Deed : int { connect, allow, lose };
  struct Order {
    Deed deed;
    int from, to;  // hosts; of allow: `from` is a number of steps
  };

  PlayedAgents(Descriptor orders, Play play, PlayedCounts& counts)
      : orders_(std::move(orders)), play_(play), counts_(counts), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    watch(orders_.get(), EPOLLIN, nullptr);
  }
  /// Until the other end of `orders` is closed.
  void run() {
    std::array<epoll_event, 256> events;
    for (;;) {
      const int n = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), beat());
      for (int i = 0; i < n; ++i) {
        auto* peer = static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (peer == nullptr) {
          if (!take_order()) return;
        } else if (peer->fd) {
          if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) flush(*peer);
          read(*peer);
        }
      }
      over_.clear();  // no event of this round names them any more
    }
  }

 private:
  struct Trial {
    Attempt attempt = 0;
    double x = 0;
    int steps = 0;
    bool held = false;  // until more steps are allowed
  };
  struct Peer {
    int host = 0;
    Descriptor fd, err;
    FrameDecoder decoder{remote::wire::message_types};
    std::string out;
    bool blocked = false;
    double interval = 1;
    std::map<RunKey, Trial> trials;
  };
  struct Due {
    double at;
    std::weak_ptr<Peer> peer;
  };

  void watch(int fd, std::uint32_t events, Peer* peer, int how = EPOLL_CTL_ADD) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = peer;
    if (::epoll_ctl(poll_.get(), how, fd, &event) != 0) throw std::runtime_error("epoll_ctl failed");
  }

  // ---- Orders ----

  bool take_order() {
    Order order{};
    iovec data{&order, sizeof order};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t n = 0;
    do n = ::recvmsg(orders_.get(), &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof order)) return false;
    std::array<int, 2> fds{-1, -1};
    if (const auto* header = CMSG_FIRSTHDR(&message)) std::memcpy(fds.data(), CMSG_DATA(header), sizeof fds);
    switch (order.deed) {
      case Deed::connect: connect(order.from, Descriptor(fds[0]), Descriptor(fds[1])); break;
      case Deed::allow: allow(order.from); break;
      case Deed::lose:
        for (int host = order.from; host < order.to; ++host)
          if (const auto peer = peers_.find(host); peer != peers_.end()) drop(*peer->second);
        break;
    }
    return true;
  }

  void connect(int host, Descriptor fd, Descriptor err) {
    if (const auto old = peers_.find(host); old != peers_.end()) drop(*old->second);
    const auto peer = std::make_shared<Peer>();
    peer->host = host;
    peer->fd = std::move(fd);
    peer->err = std::move(err);
    ::fcntl(peer->fd.get(), F_SETFL, O_NONBLOCK);
    peers_[host] = peer;
    watch(peer->fd.get(), EPOLLIN, peer.get());
    peer->out = remote::wire::banner;
    remote::wire::Hello hello;
    hello.pid = ::getpid();
    hello.machine = "played";
    hello.host.name = "played";
    hello.host.total.cpus = play_.cpus;
    if (const auto at = static_cast<std::size_t>(host); at < play_.addresses.size())
      hello.host.addresses = play_.addresses[at];
    hello.by_content = true;
    say(*peer, hello);
    flush(*peer);
  }
  void allow(int steps) {
    allowed_ = steps;
    for (const auto& [host, peer] : std::map(peers_)) {
      for (auto& [run, trial] : peer->trials)
        if (std::exchange(trial.held, false)) advance(*peer, run, trial);
      std::erase_if(peer->trials, [](const auto& t) { return t.second.steps < 0; });
      flush(*peer);
    }
  }
  void drop(Peer& peer) {
    if (!peer.fd) return;
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, peer.fd.get(), nullptr);
    peer.fd = Descriptor();
    const auto found = peers_.find(peer.host);
    over_.push_back(std::move(found->second));
    peers_.erase(found);
  }

  // ---- The protocol ----

  void read(Peer& peer) {
    if (!peer.fd) return;
    const ssize_t n = hypertune::detail::read_some(peer.fd.get(), buffer_.data(), buffer_.size());
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return drop(peer);
    peer.decoder.feed(std::string_view(buffer_.data(), static_cast<std::size_t>(n)));
    while (const auto frame = peer.decoder.next()) {
      auto message = remote::wire::decode(*frame);
      std::visit([&](auto& m) { on(peer, m); }, message);
      if (!peer.fd) return;
    }
    flush(peer);
  }

  void on(Peer& peer, const remote::wire::Welcome& m) {
    ++counts_.greeted;
    peer.interval = m.heartbeat;
    const double now = hypertune::detail::steady_seconds();
    const auto some = [&](double most) { return now + most * std::uniform_real_distribution(0.0, 1.0)(random_); };
    insert(beats_, {some(m.heartbeat), peers_.at(peer.host)});
    insert(usages_, {some(play_.usage), peers_.at(peer.host)});
  }
  void on(Peer&, const remote::wire::Heartbeat&) { ++counts_.beats_heard; }
  void on(Peer& peer, const remote::wire::Shutdown&) { drop(peer); }
  void on(Peer& peer, const Launch& m) {
    ++counts_.launches;
    const RunKey run = key_of(m);
    auto& trial = peer.trials[run];
    if (!m.parked) trial = Trial{.x = m.params.get<double>("x")};
    trial.attempt = m.attempt;
    say(peer, Started{m.trial, m.attempt, trial.steps, run.second});
    proceed(peer, run);
  }
  void on(Peer& peer, const Continue& m) {
    if (is(peer, m)) proceed(peer, {m.trial, m.member});
  }
  void on(Peer& peer, const Pause& m) {
    if (is(peer, m)) say(peer, Paused{m.trial, m.attempt, true, m.member});
  }
  void on(Peer& peer, const Stop& m) {
    if (!is(peer, m)) return;
    peer.trials.erase({m.trial, m.member});
    ++counts_.ends;
    say(peer, Stopped{m.trial, m.attempt, m.member});
  }
  template <class M>
  void on(Peer&, const M&) {}

  template <class M>
  static bool is(const Peer& peer, const M& m) {
    const auto found = peer.trials.find({m.trial, m.member});
    return found != peer.trials.end() && found->second.attempt == m.attempt;
  }
  void proceed(Peer& peer, RunKey run) {
    auto& trial = peer.trials.at(run);
    advance(peer, run, trial);
    if (trial.steps < 0) peer.trials.erase(run);
  }
  void advance(Peer& peer, RunKey run, Trial& trial) {
    const auto [id, member] = run;
    if (trial.steps >= play_.steps) {
      trial.steps = -1;
      ++counts_.ends;
      say(peer, Finished{id, trial.attempt, member});
    } else if (trial.steps >= allowed_) {
      trial.held = true;
    } else {
      ++trial.steps;
      ++counts_.reports;
      say(peer, Reported{id, trial.attempt, report("value", trial.x * trial.steps), std::nullopt, member});
    }
  }

  static void say(Peer& peer, const remote::wire::Message& message) { remote::wire::append(peer.out, message); }
  void flush(Peer& peer) {
    if (!peer.fd) return;
    std::size_t sent = 0;
    while (sent < peer.out.size()) {
      const ssize_t n = ::send(peer.fd.get(), peer.out.data() + sent, peer.out.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN) return drop(peer);
      if (n < 0) break;
      sent += static_cast<std::size_t>(n);
    }
    peer.out.erase(0, sent);
    const bool blocked = !peer.out.empty();
    if (std::exchange(peer.blocked, blocked) != blocked)
      watch(peer.fd.get(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, &peer, EPOLL_CTL_MOD);
  }

  // ---- Signs of life, each host's at times of its own ----

  // By rising time; what is added comes near the end.
  static void insert(std::deque<Due>& list, Due due) {
    const auto place =
        std::upper_bound(list.begin(), list.end(), due.at, [](double at, const Due& other) { return at < other.at; });
    list.insert(place, std::move(due));
  }
  template <class Say>
  static void pass(std::deque<Due>& list, double now, const Say& say) {
    while (!list.empty() && list.front().at <= now) {
      const Due due = std::move(list.front());
      list.pop_front();
      if (const auto peer = due.peer.lock(); peer && peer->fd) insert(list, {due.at + say(*peer), due.peer});
    }
  }
  // Milliseconds until the next one.
  int beat() {
    const double now = hypertune::detail::steady_seconds();
    pass(beats_, now, [&](Peer& peer) {
      ++counts_.beats_sent;
      say(peer, remote::wire::Heartbeat{1});
      flush(peer);
      return peer.interval;
    });
    pass(usages_, now, [&](Peer& peer) {
      say(peer, remote::wire::Usage{.cpu = 1, .memory = std::uint64_t{1} << 30U, .memory_total = 2});
      flush(peer);
      return play_.usage;
    });
    double next = now + 1;
    for (const auto* list : {&beats_, &usages_})
      if (!list->empty()) next = std::min(next, list->front().at);
    return static_cast<int>((next - now) * 1000) + 1;
  }

  const Descriptor orders_;
  const Play play_;
  PlayedCounts& counts_;
  const Descriptor poll_;
  int allowed_ = 0;
  std::map<int, std::shared_ptr<Peer>> peers_;
  std::vector<std::shared_ptr<Peer>> over_;
  std::deque<Due> beats_, usages_;
  std::mt19937 random_{1};
  std::array<char, 65536> buffer_;
};

/// The driver's side: a pool of such hosts, and what becomes of them.
class PlayedHosts {
 public:
  /// Whether the agents are played by a thread, or by a process of their own; then this process must have no threads.
  enum class In { thread, process };

  explicit PlayedHosts(const Play& play, In in = In::thread) {
    // Anonymous and shared: a child counts here as well.
    void* memory = ::mmap(nullptr, sizeof(PlayedCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    counts_ = new (memory) PlayedCounts;
    auto [near, far] = pair(SOCK_SEQPACKET);
    orders_ = std::make_shared<Descriptor>(std::move(near));
    if (in == In::thread) {
      thread_ =
          std::jthread([agents = std::make_unique<PlayedAgents>(std::move(far), play, *counts_)] { agents->run(); });
      return;
    }
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("cannot fork");
    if (child_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    orders_.reset();
    PlayedAgents(std::move(far), play, *counts_).run();
    ::_exit(0);
  }
  PlayedHosts(const PlayedHosts&) = delete;
  PlayedHosts& operator=(const PlayedHosts&) = delete;
  /// After the executor of its hosts.
  ~PlayedHosts() {
    ::shutdown(orders_->get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
    ::munmap(counts_, sizeof(PlayedCounts));
  }

  /// Hosts "0", "1", …
  remote::HostPool pool(int count) const {
    std::vector<remote::RemoteHost> hosts;
    for (int i = 0; i < count; ++i)
      hosts.push_back({.name = std::to_string(i), .dialer = PlayedDialer{.orders = orders_, .host = i}});
    return remote::HostPool(std::move(hosts));
  }
  const PlayedCounts& counts() const { return *counts_; }

  /// Trials report until they have done so many steps, and wait there. At first: none.
  void allow(int steps) const { tell(*orders_, {PlayedAgents::Deed::allow, steps, 0}); }
  /// Their connections end; they can be reached again.
  void lose(int from, int to) const { tell(*orders_, {PlayedAgents::Deed::lose, from, to}); }

 private:
  struct PlayedDialer {
    std::shared_ptr<const Descriptor> orders;
    int host;
    remote::AgentStream dial(const std::stop_token&) const {
      auto stream = pair(SOCK_STREAM), errors = pair(SOCK_STREAM);
      tell(*orders, {PlayedAgents::Deed::connect, host, 0}, {stream.second.get(), errors.second.get()});
      return {.to = Descriptor(::fcntl(stream.first.get(), F_DUPFD_CLOEXEC, 0)),
              .from = std::move(stream.first),
              .err = std::move(errors.first),
              .carrier = {}};
    }
    remote::FailureClass classify(const std::string&) const { return remote::FailureClass::transient; }
  };

  static std::pair<Descriptor, Descriptor> pair(int kind) {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends.data()) != 0)
      fail(Errc::io, "no socket: {}; are too many files open?", errno);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }
  static void tell(const Descriptor& orders, PlayedAgents::Order order, const std::vector<int>& fds = {}) {
    iovec data{&order, sizeof order};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(2 * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), 2 * sizeof(int));
    }
    ssize_t n = 0;
    do n = ::sendmsg(orders.get(), &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof order)) fail(Errc::io, "the played hosts are gone");
  }

  PlayedCounts* counts_ = nullptr;
  std::shared_ptr<Descriptor> orders_;
  std::jthread thread_;
  pid_t child_ = -1;
};

}  // namespace hypertune::inline v0::test
