// Guardian: a process that forks and reaps workers, and ends all of them when the driver dies.
#pragma once

#include <hypertune/detail/descriptor.hpp>

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
  std::int32_t status = 0;  ///< exited: the status of wait(2); failed: errno
};

/// Runs a worker on its socket; returns the exit code of the process.
using WorkerMain = std::function<int(int socket)>;

/// The driver's handle of its guardian. The constructor forks: workers share copy-on-write the memory that the program
/// has by then. It should be constructed before the program starts threads, because other threads do not exist in a
/// worker: a lock that one of them holds at that moment stays locked there for ever (except those of malloc and stdio).
class Guardian {
 public:
  /// `at_end`: called by the guardian last, when all workers and their descendants are gone. `at_begin`: called by it first,
  /// with the descriptor that it must keep.
  explicit Guardian(const WorkerMain& worker_main, const std::function<void()>& at_end = {},
                    const std::function<void(int control)>& at_begin = {});
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  /// Ends all workers and what they have started; waits at most 10 seconds until they are gone.
  ~Guardian();

  int control() const { return control_.get(); }
  pid_t pid() const { return pid_; }

  /// Asks the guardian to fork a worker for `socket`. False: the guardian is gone.
  bool spawn(std::uint64_t id, int socket) { return request({GuardianRequest::What::spawn, id}, socket); }
  bool kill(std::uint64_t id) { return request({GuardianRequest::What::kill, id}); }

  /// Continues the guardian if it was stopped (SIGSTOP); returns whether it was. Nothing else notices this, and no
  /// worker starts or ends meanwhile.
  bool wake();

  /// The next reply, if there is one. Sets `lost` if the guardian is gone.
  std::optional<GuardianReply> reply(bool& lost);

 private:
  bool request(const GuardianRequest& request, int socket = -1);

  Descriptor control_;
  pid_t pid_ = -1;
};

}  // namespace hypertune::inline v0::local::detail
