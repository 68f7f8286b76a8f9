// MoAsha: definitions.
#pragma once

#include <hypertune/schedule/detail/epsilon_net.hpp>
#include <hypertune/schedule/detail/rung.hpp>
#include <hypertune/schedule/mo_asha.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::detail {

struct MoAshaState {
  struct Rung {
    int steps = 0;
    std::vector<LossVector> losses{};  // a ring buffer of the latest
    std::size_t oldest = 0;
  };
  std::vector<Rung> rungs{};
  std::unordered_map<TrialId, std::size_t> next{};  // of running trials
  LossVector judged{};                              // the losses of the last report
};

/// Whether a trial passes a rung with these losses, which enter it.
bool enter(MoAshaState::Rung& rung, const LossVector& losses, const MoAsha& options) {
  if (rung.losses.size() < static_cast<std::size_t>(options.history)) {
    rung.losses.push_back(losses);
  } else {
    rung.losses[rung.oldest] = losses;
    rung.oldest = (rung.oldest + 1) % rung.losses.size();
  }
  const std::size_t quota = rung.losses.size() / static_cast<std::size_t>(options.reduction_factor);
  if (quota == 0) return true;  // too few trials to compare with
  const auto finite = [](const LossVector& v) {
    return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
  };
  if (!finite(losses)) return std::none_of(rung.losses.begin(), rung.losses.end(), finite);
  // Trials with equal losses are treated alike: all rank as the first of them.
  const auto first = std::find(rung.losses.begin(), rung.losses.end(), losses);
  return among_first(rung.losses, static_cast<std::size_t>(first - rung.losses.begin()), quota);
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

void MoAsha::check() const {
  if (max_steps < grace_period)
    throw OptionError(type, "max_steps",
                      detail::format("is {}, but must be at least grace_period, {}", max_steps, grace_period));
}

Decision MoAsha::on_report(const Progress& progress) {
  auto& state = state_.made();
  if (state.rungs.empty())
    for (const int steps : detail::rung_steps(grace_period, max_steps, reduction_factor))
      state.rungs.push_back({steps});
  detail::LossVector losses(progress.losses.begin(), progress.losses.end());
  if (losses.empty()) losses.push_back(worst_loss);
  for (double& loss : losses) loss = detail::ranked_loss(loss);
  state.judged = losses;
  bool survives = true;
  std::size_t& next = state.next[progress.trial];
  for (; survives && next < state.rungs.size() && state.rungs[next].steps <= progress.steps; ++next)
    survives = enter(state.rungs[next], losses, *this);
  if (progress.steps >= max_steps) return Decision::complete;
  return survives ? Decision::proceed : Decision::stop;
}

std::string MoAsha::why(TrialId trial, const LossText& losses) const {
  const auto& state = state_.or_default();
  const auto next = state.next.find(trial);
  if (next == state.next.end() || next->second == 0 || next->second > state.rungs.size()) return {};
  const std::size_t at = next->second - 1;
  const auto& rung = state.rungs[at];
  return detail::format("at rung {} ({} step{}): {}, not among the best {} of {} by all objectives", at + 1, rung.steps,
                        rung.steps == 1 ? "" : "s", losses.named(state.judged),
                        rung.losses.size() / static_cast<std::size_t>(reduction_factor), rung.losses.size());
}

void MoAsha::on_end(TrialId trial, TrialState) {
  auto& state = state_.made();
  state.next.erase(trial);
}

}  // namespace hypertune::inline v0
