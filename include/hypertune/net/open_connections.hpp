// OpenConnections: the open connections of a server. The least needed one can be closed for the next one.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <utility>

namespace hypertune::inline v0::detail {

/// To be used only by the thread of the server's io_context.
class OpenConnections {
 public:
  using Clock = std::chrono::steady_clock;

  /// An entry in the list of open connections, for as long as the connection is served.
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
    Clock::time_point since = Clock::now();  // time of its beginning, or of its last request
    bool proven = false;                     // it has sent a complete request
    bool begun = false;                      // a byte of its next request has come
    bool busy = false;                       // one of its requests is being answered
    bool goes_on = false;                    // the answer that was sent by the server itself is complete
    std::function<void()> draining;          // called when the server is to end
    bool closed = false;
    std::list<Connection*>::iterator at;
  };

  /// `room` is cancelled whenever a connection ends.
  explicit OpenConnections(boost::asio::steady_timer* room) : room_(room) {}
  void end() { ending_ = true; }  ///< the timer is about to be destroyed
  std::size_t size() const { return open_.size(); }

  /// Closes the least needed connection: the oldest one that has never sent a request, if those take more than a quarter of
  /// the room, else the one that has been idle for longest. Connections that wait for an answer are not closed.
  void make_room() {
    Connection *stranger = nullptr, *idle = nullptr;
    std::size_t strangers = 0;
    for (Connection* each : open_) {
      if (each->closed) return;  // there will be room in a moment
      if (each->busy) continue;
      strangers += each->proven ? 0 : 1;
      Connection*& chosen = each->proven ? idle : stranger;
      if (chosen == nullptr || each->since < chosen->since) chosen = each;
    }
    // The request of one that has just come may be on its way.
    Connection* const chosen =
        stranger != nullptr && (idle == nullptr || strangers > open_.size() / 4) ? stranger : idle;
    if (chosen != nullptr) close(*chosen);
  }

  /// Closes all that wait for no answer, and tells the others. One whose next request has just come is answered.
  void end_idle() {
    boost::system::error_code error;
    for (Connection* each : open_)
      if (!each->begun && !each->busy && each->socket.socket().available(error) == 0)
        close(*each);
      else if (each->draining)
        each->draining();
  }

 private:
  static void close(Connection& connection) {
    connection.closed = true;
    connection.socket.close();
  }

  std::list<Connection*> open_;
  boost::asio::steady_timer* room_;
  bool ending_ = false;
};

}  // namespace hypertune::inline v0::detail
