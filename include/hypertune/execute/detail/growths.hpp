// Growths: determines which generation of an attempt trains while further workers are starting.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace hypertune::inline v0 {

/// The generations of an attempt since it began or lost a worker, for as long as workers have joined it since. The
/// workers that train go on until the new ones are ready, and let them join after the next report. So the records alone
/// do not tell which generation trains: that also depends on the startup time of workers, which the executor knows.
class Growths {
 public:
  struct Stage {
    std::uint32_t generation = 0;
    int workers = 1;
    Seconds asked = 0;   ///< when the last of its workers was asked for
    Seconds last = 0;    ///< last report before the next generation was asked for: this one trained if ready by then
    Seconds formed = 0;  ///< when this generation was asked for: it cannot train before the next report

    Seconds ready(Seconds startup) const { return asked + startup < formed ? formed : asked + startup; }
  };

  bool empty() const { return stages_.empty(); }
  void clear() { stages_.clear(); }

  /// Another number of workers is asked for, without a loss: the first ranks of `before` go on.
  void resize(const Stage& before, const Stage& next);
  /// These ranks of `before` are lost, and `next` is asked for: the remaining workers, and perhaps others. If only
  /// workers that were to join are lost, those that train go on; otherwise the attempt has to form a generation anew.
  void lose(const Stage& before, const std::vector<int>& ranks, const Stage& next, Seconds startup);

  /// Whether the newest generation trains, if the attempt was last between two steps at `last`.
  bool complete(Seconds last, Seconds startup) const;
  /// The last generation before the newest one that has trained, if workers take `startup` seconds to start.
  const Stage& training(Seconds startup) const;
  /// When the newest generation was asked for.
  Seconds formed() const;
  /// When each rank of the newest generation is ready; 0 for workers of the first generation.
  std::vector<Seconds> ready(Seconds startup) const;

 private:
  static constexpr Seconds never = -std::numeric_limits<Seconds>::infinity();

  std::size_t index_of_training(Seconds startup) const;

  std::vector<Stage> stages_;  // oldest first, each with no fewer workers than the one before
};

}  // namespace hypertune::inline v0
