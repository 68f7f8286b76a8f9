// Minimises smooth functions within a box.
#pragma once

#include <hypertune/detail/linear.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct LbfgsOptions {
  int evaluations = 50;      ///< maximum number of evaluations of the function
  double tolerance = 1e-5;   ///< stops if no free component of the gradient is larger
  double progress = 1e-9;    ///< stops if a step gains less than this, relative to the value
  double first_step = 0.25;  ///< maximum length of the first step in any coordinate
};

/// Minimises f over lower <= x <= upper by the limited-memory BFGS method with projection on the box (Nocedal and
/// Wright, "Numerical Optimization", chapters 7 and 16). Returns the least value; x is then its argument. `f(x,
/// gradient)` returns the value and fills the gradient. If a value is not finite, a shorter step is taken. Empty
/// bounds: there are none.
inline double minimise(const std::function<double(const std::vector<double>&, std::vector<double>&)>& f,
                       std::vector<double>& x, std::span<const double> lower, std::span<const double> upper,
                       const LbfgsOptions& options = {}) {
  constexpr std::size_t memory = 8;
  const std::size_t n = x.size();
  const auto project = [&](std::vector<double>& p) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!lower.empty()) p[i] = std::max(p[i], lower[i]);
      if (!upper.empty()) p[i] = std::min(p[i], upper[i]);
    }
  };
  const auto held = [&](std::size_t i, double slope) {  // at a bound, and descent leads out of the box
    return (!lower.empty() && x[i] <= lower[i] && slope > 0) || (!upper.empty() && x[i] >= upper[i] && slope < 0);
  };
  struct Step {
    std::vector<double> dx, dg;
    double curvature;
  };
  std::vector<Step> steps;
  std::vector<double> gradient(n, 0.0), next(n), next_gradient(n, 0.0), direction(n), factors(memory);
  project(x);
  double value = f(std::as_const(x), gradient);
  for (int used = 1; std::isfinite(value) && used < options.evaluations;) {
    double steepest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      direction[i] = held(i, gradient[i]) ? 0 : -gradient[i];
      steepest = std::max(steepest, std::fabs(direction[i]));
    }
    if (!(steepest > options.tolerance)) break;
    for (std::size_t k = steps.size(); k-- > 0;) {
      factors[k] = dot(steps[k].dx.data(), direction.data(), n) / steps[k].curvature;
      axpy(-factors[k], steps[k].dg.data(), direction.data(), n);
    }
    if (!steps.empty()) {
      const Step& last = steps.back();
      const double scale = last.curvature / dot(last.dg.data(), last.dg.data(), n);
      for (double& d : direction) d *= scale;
    }
    for (std::size_t k = 0; k < steps.size(); ++k)
      axpy(factors[k] - dot(steps[k].dg.data(), direction.data(), n) / steps[k].curvature, steps[k].dx.data(),
           direction.data(), n);
    for (std::size_t i = 0; i < n; ++i)
      if (held(i, gradient[i])) direction[i] = 0;
    double slope = dot(direction.data(), gradient.data(), n);
    if (!(slope < 0)) {  // the remembered steps are not suitable here
      steps.clear();
      for (std::size_t i = 0; i < n; ++i) direction[i] = held(i, gradient[i]) ? 0 : -gradient[i];
    }
    double length = 1;
    if (steps.empty()) length = std::min(1.0, options.first_step / steepest);
    bool moved = false;
    double gained = 0;
    for (int tries = 0; tries < 12 && used < options.evaluations; ++tries) {
      for (std::size_t i = 0; i < n; ++i) next[i] = x[i] + length * direction[i];
      project(next);
      const double trial = f(std::as_const(next), next_gradient);
      ++used;
      slope = 0;
      for (std::size_t i = 0; i < n; ++i) slope += gradient[i] * (next[i] - x[i]);
      if (std::isfinite(trial) && trial <= value + 1e-4 * slope) {
        Step step{next, next_gradient, 0};
        axpy(-1, x.data(), step.dx.data(), n);
        axpy(-1, gradient.data(), step.dg.data(), n);
        step.curvature = dot(step.dx.data(), step.dg.data(), n);
        if (step.curvature > 1e-10 * dot(step.dg.data(), step.dg.data(), n)) {
          if (steps.size() == memory) steps.erase(steps.begin());
          steps.push_back(std::move(step));
        }
        gained = value - trial;
        value = trial;
        x.swap(next);
        gradient.swap(next_gradient);
        moved = true;
        break;
      }
      // The minimum of the parabola through the known values, if that is a reasonable step back.
      const double bend = trial - value - slope;
      length *= std::isfinite(trial) && bend > 0 ? std::clamp(-slope / (2 * bend), 0.1, 0.5) : 0.2;
    }
    if (!moved) {
      if (steps.empty()) break;
      steps.clear();
    } else if (gained <= options.progress * (1 + std::fabs(value))) {
      break;
    }
  }
  return value;
}

}  // namespace hypertune::inline v0::detail
