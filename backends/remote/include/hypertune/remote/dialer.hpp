// Dialer: opens a byte stream to an agent on one machine, over any transport.
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

/// Whether a later attempt to use a host may succeed.
enum class FailureClass : std::uint8_t {
  transient,  ///< another attempt may succeed: network problems
  unknown,    ///< treated as permanent after many failures in a row
  permanent,  ///< somebody must fix it: a refused login, a program that cannot run there
};

/// Thrown by dial(). `what()` is one line for the user, without the host's name, which the caller adds.
class DialError : public Error {
 public:
  DialError(FailureClass failure, const std::string& message, Errc code = Errc::io)
      : Error(code, message), failure_(failure) {}
  FailureClass failure() const noexcept { return failure_; }

 private:
  FailureClass failure_;
};

/// The carrier of a stream (a process, or a thread that copies data); ended once, by end() or the destructor.
class StreamCarrier {
 public:
  StreamCarrier() = default;
  /// `end` waits up to `grace` seconds for the carrier to end by itself, then ends it by force. It blocks.
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

/// A byte stream to an agent. The descriptors may be sockets, pipes, or anything else that can be polled.
struct AgentStream {
  Descriptor to;    ///< the agent's standard input
  Descriptor from;  ///< the agent's standard output
  Descriptor err;   ///< messages that explain why a stream ended before the agent's hello
  StreamCarrier carrier;
};

/// Opens streams to one machine and classifies failures. Calls never overlap.
template <class D>
concept Dialer = requires(D& dialer, std::stop_token stop, const std::string& said) {
  /// Prepares what is needed (a connection, the program's file) and starts the agent. Called once per attempt, on a
  /// thread that lives as long as the stream. May block for a bounded time. A stop request ends the call soon, but does
  /// not affect a stream that was already returned. Throws DialError, or another Error: kind `usage` counts as
  /// permanent, other kinds as unknown.
  { dialer.dial(stop) } -> std::same_as<AgentStream>;
  /// Classifies the end of a stream before the agent's hello, by the last output on `err`. May be called from any
  /// thread.
  { dialer.classify(said) } -> std::same_as<FailureClass>;
  // Optional: `std::string explain(const std::string& said)` returns the reason as one line for the user. The default
  // is the last line of `said`.
};

/// Holds any Dialer by value; copies share one dialer.
class AnyDialer {
 public:
  AnyDialer() = default;
  template <class D>
    requires(!std::same_as<std::remove_cvref_t<D>, AnyDialer> && Dialer<std::decay_t<D>>)
  AnyDialer(D&& dialer)  // NOLINT: implicit on purpose
      : self_(std::make_shared<Holder<std::decay_t<D>>>(std::forward<D>(dialer))) {}

  explicit operator bool() const { return self_ != nullptr; }
  /// Waits for an earlier call that is still running; that one should have been asked to stop.
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

/// Runs a local command whose standard streams are those of the agent. It runs in its own process group, and the kernel
/// kills it when the thread that called dial() ends.
class CommandDialer {
 public:
  using Command = std::vector<std::string>;
  using Environment = std::map<std::string, std::string>;

  /// `environment` is added to this program's. Put secrets there or into files, never into the command.
  explicit CommandDialer(Command command, Environment environment = {})
      : CommandDialer([command = std::move(command)] { return command; }, std::move(environment)) {}
  /// `command` is called for each attempt.
  explicit CommandDialer(std::function<Command()> command, Environment environment = {})
      : command_(std::move(command)), environment_(std::move(environment)) {}

  AgentStream dial(const std::stop_token& stop) const;
  /// Classifies messages that any program may print, such as a missing library, which is permanent.
  FailureClass classify(const std::string& said) const;

 private:
  std::function<Command()> command_;
  Environment environment_;
};

}  // namespace hypertune::inline v0::remote
