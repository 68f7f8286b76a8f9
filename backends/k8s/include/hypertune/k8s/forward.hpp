// PortForward: forwards a local loopback port to a pod's port. LogFollower: reads a container's log line by line.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {

/// A port in a pod.
struct PodPort {
  std::string pod;
  std::uint16_t port = 0;
  std::string name_space = {};  ///< empty: the client's
};

namespace detail {
struct ForwardTask;
struct LogTask;
}  // namespace detail

/// Connections to its loopback port are connected to the pod's port, through the API server. Destroying it ends it and
/// all its connections. Move only.
class PortForward {
 public:
  PortForward() = default;
  explicit PortForward(std::shared_ptr<detail::ForwardTask> task) : task_(std::move(task)) {}
  PortForward(PortForward&&) noexcept = default;
  PortForward& operator=(PortForward&& other) noexcept;
  ~PortForward();

  std::uint16_t port() const;  ///< on 127.0.0.1
  /// Why the last failed connection failed; empty: none failed.
  std::string trouble() const;
  void end() noexcept;

 private:
  std::shared_ptr<detail::ForwardTask> task_;
};

/// The container whose log is followed. Meant for designated initialisers.
struct PodLog {
  std::string pod;
  std::string container = {};
  std::string name_space = {};                   ///< empty: the client's
  std::string since = {};                        ///< RFC 3339; empty: from its beginning
  std::size_t max_line = std::size_t{1} << 20U;  ///< a longer line is split
};

struct LogEvent {
  enum class Kind : std::uint8_t { line, ended, trouble };
  Kind kind;
  std::string_view text = {};  ///< the line; or why it ended or is cut
  std::string_view time = {};  ///< of a line, RFC 3339 with nanoseconds, as the node wrote it
};

/// Called on the client's thread: it must not wait.
using LogHandler = std::function<void(const LogEvent&)>;

/// Follows a container's log until the container has ended (`ended`). A stream that breaks is resumed at the same
/// place; no line comes twice. Move only.
class LogFollower {
 public:
  LogFollower() = default;
  explicit LogFollower(std::shared_ptr<detail::LogTask> task) : task_(std::move(task)) {}
  LogFollower(LogFollower&&) noexcept = default;
  LogFollower& operator=(LogFollower&& other) noexcept;
  ~LogFollower();
  /// When this returns, the handler is not called any more. Must not be called from within the handler.
  void end() noexcept;

 private:
  std::shared_ptr<detail::LogTask> task_;
};

}  // namespace hypertune::inline v0::k8s
