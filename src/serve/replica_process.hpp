// The processes of replicas: commands, and predictors of this program.
#pragma once

#include "model_files.hpp"

#include <hypertune/detail/descriptor.hpp>
#include <hypertune/local/guardian.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/serve/serve.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::serving {

/// Messages to and from a predictor: two numbers of 8 bytes, the size of the message and of its JSON, and the message. To
/// and from a command: a line.
struct FrameHead {
  std::uint64_t size = 0, json = 0;
};
inline constexpr std::uint64_t largest_frame = std::uint64_t{1} << 31U;

/// A process that was started, and the ways to it. `end` kills it; the destructor of what it holds does, too.
struct ReplicaProcess {
  hypertune::detail::Descriptor to, from;
  hypertune::detail::Descriptor exited;  ///< can be read from when the process has ended; none: `from` ends then
  bool framed = false;
  std::function<std::string()> end = {};  ///< returns how it ended, as far as is known
};

/// Starts replicas. To be used by one thread.
class ReplicaStarter {
 public:
  /// Forks, for predictors: before this program starts threads.
  ReplicaStarter(const detail::ServedProgram& program, const ReplicaOptions& options);
  /// Whether the model gets tensors in binary form; else in JSON.
  bool framed() const { return program_.make != nullptr; }
  /// Whether the process that starts predictors is gone, and with it all that it has started.
  bool gone();
  /// Errors: `usage` (a command that cannot be run), `io`.
  ReplicaProcess start(const ModelFiles& model, int number);

 private:
  Slot slot_of(int number) const;
  ReplicaProcess start_command(const ModelFiles& model, const Slot& slot) const;
  ReplicaProcess start_predictor(const ModelFiles& model, const Slot& slot);

  detail::ServedProgram program_;
  ReplicaOptions options_;
  std::vector<int> cores_;
  std::vector<std::string> gpus_;
  std::function<int(int)> main_;  // of a predictor's process
  std::unique_ptr<local::detail::Guardian> guardian_;
  std::uint64_t next_id_ = 0;
};

}  // namespace hypertune::inline v0::serving
