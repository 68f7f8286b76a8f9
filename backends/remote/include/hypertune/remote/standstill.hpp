// Standstill: what is said where trials are decided in order and wait for workers that find no room. No I/O, no clock.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <optional>
#include <string>

namespace hypertune::inline v0::remote {

/// A run that decides in order waits for all of its places, however long some of them find no room. That looks as if it
/// hung: after half a minute it is said, with what mends it, and again every ten minutes.
class Standstill {
 public:
  /// `workers`: places of the run. `missing`: those of them that find no room, the first of them because of `why`.
  /// `needed`: trials wait for a place. Returns the line to be said now; empty: none.
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
        "room{}: set workers to {}, make room (a larger quota, more nodes), or write ordered: false",
        workers, missing, missing == 1 ? "s" : "", why.empty() ? "" : fmt::format(" ({})", why),
        room > 0 ? fmt::to_string(room) : "what there is room for");
  }

 private:
  std::optional<Seconds> next_;  // when it is said, where any is missing
};

}  // namespace hypertune::inline v0::remote
