// OrderedWaitNotice: the message for a run in order whose workers find no room. No I/O, no clock.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <optional>
#include <string>

namespace hypertune::inline v0::remote {

/// A run that decides in order waits for all of its workers, however long some of them find no room, and seems to hang.
/// After half a minute, and then every ten minutes, a message explains this and how to fix it.
class OrderedWaitNotice {
 public:
  /// `workers`: number of workers of the run. `missing`: how many of them find no room, the first because of `why`.
  /// `needed`: trials wait for a worker. Returns the line to print now; empty: none.
  std::string look(int workers, int missing, const std::string& why, bool needed, Seconds now) {
    constexpr Seconds patience = 30, again = 600;
    if (missing == 0 || !needed) {
      next_.reset();
      return {};
    }
    if (!next_) next_ = now + patience;
    if (now < *next_) return {};
    next_ = now + again;
    const int room = workers - missing;
    return fmt::format(
        "trials are decided in order, so that all wait until each of the {} workers is there, and {} of them find{} no "
        "room{}: set pool to {}, make room (a larger quota, more nodes), or write ordered: false",
        workers, missing, missing == 1 ? "s" : "", why.empty() ? "" : fmt::format(" ({})", why),
        room > 0 ? fmt::to_string(room) : "what there is room for");
  }

 private:
  std::optional<Seconds> next_;  // time of the next message, while workers are missing
};

}  // namespace hypertune::inline v0::remote
