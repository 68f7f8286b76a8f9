// Dialer: how a byte stream to an agent on one machine is opened, whatever carries it.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/error.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

using hypertune::detail::Descriptor;

/// What is known of why a host cannot be used.
enum class FailureClass : std::uint8_t {
  transient,  ///< another attempt may succeed: the network's troubles
  unknown,    ///< taken for permanent when it has come many times in a row
  permanent,  ///< somebody has to mend it: a refused login, a program that cannot run there
};

/// What dial() throws. `what()` is one line for people, without the host's name: whoever tells it names the host.
class DialError : public Error {
 public:
  DialError(FailureClass failure, const std::string& message, Errc code = Errc::io)
      : Error(code, message), failure_(failure) {}
  FailureClass failure() const noexcept { return failure_; }

 private:
  FailureClass failure_;
};

/// What carries a stream (a process, a thread that pumps), ended once: by end() or by the destructor.
class StreamCarrier {
 public:
  StreamCarrier() = default;
  /// `end` waits for the carrier's own end for so many seconds, then ends it by force. It blocks.
  explicit StreamCarrier(std::function<void(double grace)> end) : end_(std::move(end)) {}
  StreamCarrier(StreamCarrier&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  StreamCarrier& operator=(StreamCarrier&& other) noexcept {
    if (this == &other) return *this;
    end();
    end_ = std::exchange(other.end_, nullptr);
    return *this;
  }
  ~StreamCarrier() { end(); }

  void end(double grace = 0) {
    if (const auto end = std::exchange(end_, nullptr)) end(grace);
  }

 private:
  std::function<void(double)> end_;
};

/// A byte stream to an agent. All three descriptors may be sockets, pipes, or anything else that can be polled.
struct AgentStream {
  Descriptor to;    ///< its standard input
  Descriptor from;  ///< its standard output
  Descriptor err;   ///< what explains a stream that ends before the agent speaks
  StreamCarrier carrier;
};

/// Opens streams to one machine, and tells its own errors apart. Calls never overlap.
template <class D>
concept Dialer = requires(D& dialer, std::stop_token stop, const std::string& said) {
  /// Prepares what is needed (a connection, the program's file) and starts the agent. Called for each attempt on a
  /// thread that lives as long as the stream; may block, for a bounded time. A request to stop ends it soon, and does
  /// nothing to a stream that it has returned. Throws DialError, or another Error: of kind `usage` it counts as
  /// permanent, else as unknown.
  { dialer.dial(stop) } -> std::same_as<AgentStream>;
  /// What it means when a stream ended before the agent's hello, by the end of what came on `err`. Any thread.
  { dialer.classify(said) } -> std::same_as<FailureClass>;
  // It may also have `std::string explain(const std::string& said)`: the same as one line for people. Else that is the
  // last line that was said.
};

/// A Dialer as a value; copies are one dialer.
class AnyDialer {
 public:
  AnyDialer() = default;
  template <class D>
    requires(!std::same_as<std::remove_cvref_t<D>, AnyDialer> && Dialer<std::decay_t<D>>)
  AnyDialer(D&& dialer)  // NOLINT: any dialer is one
      : self_(std::make_shared<Holder<std::decay_t<D>>>(std::forward<D>(dialer))) {}

  explicit operator bool() const { return self_ != nullptr; }
  /// Waits for a call that is still on its way, which is to have been told to stop.
  AgentStream dial(std::stop_token stop) const { return self_->dial(std::move(stop)); }
  FailureClass classify(const std::string& said) const { return self_->classify(said); }
  std::string explain(const std::string& said) const { return self_->explain(said); }

 private:
  static std::string last_line_of(const std::string& said);

  struct Any {
    virtual ~Any() = default;
    virtual AgentStream dial(std::stop_token stop) = 0;
    virtual FailureClass classify(const std::string& said) = 0;
    virtual std::string explain(const std::string& said) = 0;
  };
  template <class D>
  struct Holder final : Any {
    explicit Holder(D d) : dialer(std::move(d)) {}
    AgentStream dial(std::stop_token stop) override {
      const std::lock_guard hold(mutex);
      return dialer.dial(std::move(stop));
    }
    FailureClass classify(const std::string& said) override { return dialer.classify(said); }
    std::string explain(const std::string& said) override {
      if constexpr (requires { dialer.explain(said); })
        return dialer.explain(said);
      else
        return last_line_of(said);
    }
    std::mutex mutex;
    D dialer;
  };

  std::shared_ptr<Any> self_;
};

/// A local command whose standard streams are those of an agent there. It runs in a process group of its own, and the
/// kernel ends it when the thread that dialled ends.
class CommandDialer {
 public:
  using Command = std::vector<std::string>;
  using Environment = std::map<std::string, std::string>;

  /// `environment` is added to this program's. Secrets belong there, or into files, never into the command.
  explicit CommandDialer(Command command, Environment environment = {})
      : CommandDialer([command = std::move(command)] { return command; }, std::move(environment)) {}
  /// The command is made anew for each attempt.
  explicit CommandDialer(std::function<Command()> command, Environment environment = {})
      : command_(std::move(command)), environment_(std::move(environment)) {}

  AgentStream dial(const std::stop_token& stop) const;
  /// What is known of any program: a library that it lacks will be missing the next time, too.
  FailureClass classify(const std::string& said) const;

 private:
  std::function<Command()> command_;
  Environment environment_;
};

}  // namespace hypertune::inline v0::remote
