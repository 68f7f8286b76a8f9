// ExecTask: a command in a container; its streams are copied between a WebSocket and socket pairs.
#pragma once

#include "channel_socket.hpp"
#include "children.hpp"
#include "engine.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/net/wakeup.hpp>

#include <boost/asio/local/stream_protocol.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace hypertune::inline v0::k8s::detail {

using hypertune::detail::Descriptor;

/// Data is read from one side only after the other side has taken the data before it, so there are no queues.
class ExecTask : public std::enable_shared_from_this<ExecTask> {
 public:
  struct Wanted {
    bool in = true;
    bool must_end_input = false;  ///< its input must end, which old API servers cannot convey
    bool explain = false;         ///< the last line on err says how it ended
    bool terminal = false;        ///< it has a terminal, sized by resize(); nothing comes on err
  };

  /// Makes the socket pairs. Error of kind `io`.
  ExecTask(std::shared_ptr<Client::State> engine, PodCommand what, Wanted wanted);
  /// Ends it.
  ~ExecTask();
  ExecTask(const ExecTask&) = delete;
  ExecTask& operator=(const ExecTask&) = delete;

  /// Asks the API server to start the command. Throws ApiError.
  void open(double seconds, const std::stop_token& stop);
  /// Starts to copy the streams.
  void start();
  /// Drops the connection. May be called from any thread, after start().
  void cancel() { task_.cancel(engine_->io()); }
  /// Sets the size of its terminal. May be called from any thread, after start(); a shared pointer must own the task.
  void resize(unsigned columns, unsigned rows);
  /// Waits up to `grace` seconds for its end, then drops the connection.
  void end(double grace) noexcept;
  /// After end(): how it ended, or what went wrong.
  const CommandEnd& how() const { return end_; }
  /// Bytes copied so far in both directions. May be called from any thread.
  std::uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }

  // The caller's ends.
  Descriptor to, from, err;

 private:
  using Socket = asio::local::stream_protocol::socket;
  static constexpr std::size_t piece = std::size_t{128} << 10U;

  asio::awaitable<bool> try_open(double seconds);
  asio::awaitable<void> pump();
  asio::awaitable<void> receive();
  asio::awaitable<void> send();
  asio::awaitable<void> tell_size();
  asio::awaitable<std::string> write(asio::const_buffer message);
  asio::awaitable<void> keep_alive();
  void explain();
  std::string target() const;
  std::string doing() const;

  std::shared_ptr<Client::State> engine_;
  PodCommand what_;
  Wanted wanted_;
  bool half_close_ = false;  // v5
  std::shared_ptr<Wire> wire_;
  std::unique_ptr<ChannelSocket> socket_;
  Socket in_, out_, errors_;
  std::string status_, trouble_;
  CommandEnd end_;
  bool delivering_ = false;  // waiting for the caller to read, not for the server
  std::string size_;         // still to be sent
  hypertune::detail::Wakeup size_news_;
  bool writing_ = false;
  hypertune::detail::Wakeup written_;
  Children children_;
  std::atomic<std::uint64_t> moved_{0};
  bool started_ = false;
  Task task_;
};

}  // namespace hypertune::inline v0::k8s::detail
