// PortForward: a port of a pod on loopback here. LogFollower: what a container says, line by line.
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

/// Whoever connects to its port on loopback is connected to the pod's, through the API server. Ends with its owner, and
/// all its connections with it. Move only.
class PortForward {
 public:
  PortForward() = default;
  explicit PortForward(std::shared_ptr<detail::ForwardTask> task) : task_(std::move(task)) {}
  PortForward(PortForward&&) noexcept = default;
  PortForward& operator=(PortForward&& other) noexcept;
  ~PortForward();

  std::uint16_t port() const;  ///< on 127.0.0.1
  /// Why the last connection that did not come about did not; empty: none failed.
  std::string trouble() const;
  void end() noexcept;

 private:
  std::shared_ptr<detail::ForwardTask> task_;
};

/// Whose log is followed. Meant for designated initialisers.
struct PodLog {
  std::string pod;
  std::string container = {};
  std::string name_space = {};                   ///< empty: the client's
  std::string since = {};                        ///< RFC 3339; empty: from its beginning
  std::size_t max_line = std::size_t{1} << 20U;  ///< a longer line comes in pieces
};

struct LogEvent {
  enum class Kind : std::uint8_t { line, ended, trouble };
  Kind kind;
  std::string_view text = {};  ///< the line; why it ended or is cut
  std::string_view time = {};  ///< of a line, RFC 3339 with nanoseconds, as the node wrote it
};

/// Called on the client's thread: it must not wait.
using LogHandler = std::function<void(const LogEvent&)>;

/// Follows a container's log until the container has ended (`ended`). A stream that is cut is resumed where it was, no
/// line twice. Move only.
class LogFollower {
 public:
  LogFollower() = default;
  explicit LogFollower(std::shared_ptr<detail::LogTask> task) : task_(std::move(task)) {}
  LogFollower(LogFollower&&) noexcept = default;
  LogFollower& operator=(LogFollower&& other) noexcept;
  ~LogFollower();
  /// The handler is not called any more when this returns. Not from within it.
  void end() noexcept;

 private:
  std::shared_ptr<detail::LogTask> task_;
};

}  // namespace hypertune::inline v0::k8s
