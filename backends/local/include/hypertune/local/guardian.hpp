// Guardian: the process that forks workers, reaps them, and leaves nothing behind when the driver dies.
#pragma once

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/linkage.hpp>

#include <cstdint>
#include <functional>
#include <optional>

namespace hypertune::inline v0::local::detail {

using hypertune::detail::Descriptor;

struct GuardianRequest {
  enum class What : std::uint32_t { spawn = 1, kill = 2, quit = 3 };
  What what{};
  std::uint64_t id = 0;
};
struct GuardianReply {
  enum class What : std::uint32_t { spawned = 1, exited = 2, failed = 3 };
  What what{};
  std::uint64_t id = 0;
  std::int32_t pid = 0;
  std::int32_t status = 0;  ///< exited: of wait(2); failed: errno
};

/// Serves a worker's socket; returns the process's exit code.
using WorkerMain = std::function<int(int socket)>;

/// The driver's handle on its guardian. Made by forking: whatever memory the program has by then, workers share it
/// copy-on-write. Best made before the program starts threads: of other threads nothing but memory exists in a worker,
/// so a lock that one holds at that moment stays locked there for ever (those of malloc and stdio excepted).
class Guardian {
 public:
  /// `at_end`: what the guardian does last, when all that it guarded is gone.
  explicit Guardian(const WorkerMain& worker_main, const std::function<void()>& at_end = {});
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// Ends all workers, and what they left behind; waits until they are gone, at most some seconds.
  ~Guardian();

  int control() const { return control_.get(); }
  pid_t pid() const { return pid_; }

  /// Asks for a worker that serves `socket`. False: the guardian is gone.
  bool spawn(std::uint64_t id, int socket) { return request({GuardianRequest::What::spawn, id}, socket); }
  bool kill(std::uint64_t id) { return request({GuardianRequest::What::kill, id}); }

  /// Has it go on where it was stopped (SIGSTOP): nobody else notices that, and no worker begins or ends meanwhile.
  bool wake();

  /// The next reply, if there is one. `lost` becomes true when the guardian is gone.
  std::optional<GuardianReply> reply(bool& lost);

 private:
  bool request(const GuardianRequest& request, int socket = -1);

  Descriptor control_;
  pid_t pid_ = -1;
};

}  // namespace hypertune::inline v0::local::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/guardian.hpp>
#endif
