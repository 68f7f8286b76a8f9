// Replica: a process that answers, and the messages to and from it.
#pragma once

#include "inference_codec.hpp"
#include "replica_process.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::serving {

class Replica;

/// What becomes of a replica. Called on the thread of its io_context.
struct ReplicaEvents {
  /// It is ready. nullopt: it does not say what it takes.
  std::function<void(Replica&, std::optional<Signature>)> ready;
  /// It has answered the batch. The bytes are not checked.
  std::function<void(Replica&, std::string_view bytes, std::optional<std::size_t> json)> answered;
  /// It is gone; nothing comes after this.
  std::function<void(Replica&, const std::string& why)> ended;
};

/// Owned by shared pointers. To be used by the thread of the io_context.
class Replica : public std::enable_shared_from_this<Replica> {
 public:
  enum class State : std::uint8_t { starting, idle, busy, ended };

  Replica(boost::asio::io_context& io, ReplicaProcess process, int number, ReplicaEvents events);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica();

  /// Waits for it to be ready, for `seconds` at most.
  void begin(double seconds);
  /// Sends a batch to an idle one. It is ended if it has not answered after `seconds`.
  void send(const std::vector<Tensor>& inputs, double seconds);
  /// Ends it because of what it has answered.
  void distrust(const std::string& why) { lost(why); }
  /// The number of what it was asked last, which a command's answer may repeat.
  std::uint64_t asked() const { return asked_; }
  /// Ends it, without a call of `ended`.
  void end();

  State state() const { return state_; }
  int number() const { return number_; }
  /// It was lost before it could read all of its batch.
  bool unsent() const { return writing_; }

 private:
  using ErrorCode = boost::system::error_code;
  void read();
  void received(std::size_t bytes);
  bool next_message();
  void message(std::string_view bytes, std::optional<std::size_t> json);
  void limit(double seconds, std::string what);
  std::string close();
  void lost(const std::string& why);

  boost::asio::posix::stream_descriptor to_, from_, exited_;
  boost::asio::steady_timer limit_;
  std::uint64_t limits_ = 0;  // how often a limit was set: an old one's end does not count
  std::function<std::string()> end_process_;
  bool framed_;
  int number_;
  ReplicaEvents events_;
  State state_ = State::starting;
  std::array<char, 65536> piece_;
  std::string in_, out_;
  std::uint64_t asked_ = 0;
  bool writing_ = false;      // `out_` is being sent
  std::size_t searched_ = 0;  // bytes of `in_` that are known to have no end of a line
  bool stray_ = false;        // a line that is no message was told
};

}  // namespace hypertune::inline v0::serving
