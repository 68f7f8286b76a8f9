// What the user is told about checkpoints that could not be saved.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/execute/executor.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hypertune::inline v0 {

/// Reports the first failure at once, then at most once per `interval` (seconds) their number, because on a full disk
/// every checkpoint fails.
class SaveFailures {
 public:
  static constexpr Seconds interval = 60;

  /// Counts a failure. Returns the line for the user if one is due.
  std::optional<std::string> line(SaveFailed failure, Seconds now) {
    ++untold_;
    latest_ = std::move(failure);
    if (told_ && now - *told_ < interval) return std::nullopt;
    told_ = now;
    return rest();
  }
  bool any() const { return told_.has_value(); }
  /// A line on the failures that were not reported yet, if any.
  std::optional<std::string> rest() {
    if (untold_ == 0) return std::nullopt;
    const std::string others =
        untold_ == 1 ? "is lost" : detail::format("is lost, and {} before it since the last such line", untold_ - 1);
    untold_ = 0;
    return detail::format("trial {}: the checkpoint after {} steps {}: {}", latest_.trial, latest_.steps, others,
                          latest_.why);
  }

 private:
  std::int64_t untold_ = 0;
  SaveFailed latest_{};
  std::optional<Seconds> told_;
};

}  // namespace hypertune::inline v0
