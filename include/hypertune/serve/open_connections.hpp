// OpenConnections: those of a server, of which that which is missed least makes room for the next one.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <cstddef>
#include <list>
#include <utility>

namespace hypertune::inline v0::detail {

/// Used by the one thread of the server's io_context.
class OpenConnections {
 public:
  using Clock = std::chrono::steady_clock;

  /// One in the list of those that are open, for as long as it is served.
  struct Connection {
    Connection(OpenConnections& a, boost::beast::tcp_stream& stream)
        : all(a), socket(stream), at(a.open_.insert(a.open_.end(), this)) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
      all.open_.erase(at);
      if (!all.ending_) all.room_->cancel();
    }
    OpenConnections& all;
    boost::beast::tcp_stream& socket;
    Clock::time_point since = Clock::now();  // of its beginning, or of its last request
    bool proven = false;                     // it has sent a whole request
    bool busy = false;                       // one of its requests is being answered
    bool closed = false;
    std::list<Connection*>::iterator at;
  };

  /// `room` is cancelled whenever one ends.
  explicit OpenConnections(boost::asio::steady_timer* room) : room_(room) {}
  void end() { ending_ = true; }  ///< the timer is about to go
  std::size_t size() const { return open_.size(); }

  /// Closes the connection that is missed least: of those that have never sent a request the oldest, else the one that
  /// has been idle for longest; none that waits for its answer.
  void make_room() {
    Connection* chosen = nullptr;
    for (Connection* each : open_) {
      if (each->closed) return;  // there will be room in a moment
      if (each->busy) continue;
      if (chosen == nullptr || std::pair(each->proven, each->since) < std::pair(chosen->proven, chosen->since))
        chosen = each;
    }
    if (chosen == nullptr) return;
    chosen->closed = true;
    chosen->socket.close();
  }

 private:
  std::list<Connection*> open_;
  boost::asio::steady_timer* room_;
  bool ending_ = false;
};

}  // namespace hypertune::inline v0::detail
