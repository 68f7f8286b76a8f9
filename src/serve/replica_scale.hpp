// How many replicas there are to be. No I/O and no clock.
#pragma once

#include <hypertune/serve/serve_options.hpp>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::serving {

/// As Ray Serve does it: the requests under way, divided by target_ongoing_requests, within min_replicas and
/// max_replicas, once that was wanted without a break for upscale_delay or downscale_delay.
struct ReplicaScale {
  int replicas = 1;
  double more_since = -1, fewer_since = -1;  ///< when it was first wanted; below 0: it is not

  void step(const ReplicaOptions& options, double ongoing, double now) {
    const int most = std::max(options.min_replicas, options.max_replicas);
    const double wanted = std::ceil(ongoing / std::max(options.target_ongoing_requests, 1e-9));
    const int target =
        static_cast<int>(std::clamp(wanted, static_cast<double>(options.min_replicas), static_cast<double>(most)));
    const auto due = [now](bool is, double& since, double delay) {
      if (!is)
        since = -1;
      else if (since < 0)
        since = now;
      return is && now - since >= delay;
    };
    const bool up = due(target > replicas, more_since, options.upscale_delay);
    const bool down = due(target < replicas, fewer_since, options.downscale_delay);
    if (!up && !down) return;
    replicas = target;
    more_since = fewer_since = -1;
  }
};

}  // namespace hypertune::inline v0::serving
