// Why a scheduler stopped a trial, as text for users: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/schedule/reason.hpp>

#include <cmath>
#include <utility>

namespace hypertune::inline v0 {

std::string LossText::named(std::span<const double> losses) const {
  std::string all;
  for (std::size_t i = 0; i < losses.size(); ++i) all += (i > 0 ? ", " : "") + name(i) + " " + text(losses[i], i, 4);
  return all;
}

std::string LossText::against(double loss, double bar, const char* word) const {
  int digits = 4;
  while (digits < 17 && loss != bar && text(loss, 0, digits) == text(bar, 0, digits)) ++digits;
  return name(0) + " " + text(loss, 0, digits) + ", " + word + " " + text(bar, 0, digits);
}

std::string LossText::text(double loss, std::size_t objective, int digits) const {
  if (!std::isfinite(loss)) return "(not finite)";
  const bool maximised = objective < metrics_.size() && metrics_[objective].maximised;
  return detail::format("{:.{}g}", maximised && loss != 0 ? -loss : loss, digits);
}

void LossText::add(std::string metric, bool maximised) { metrics_.push_back({std::move(metric), maximised}); }

std::string LossText::value(double loss) const { return text(loss, 0, 4); }

std::string LossText::name(std::size_t objective) const {
  return objective < metrics_.size() ? metrics_[objective].name : "loss";
}

std::string LossText::named(double loss) const { return name(0) + " " + value(loss); }

}  // namespace hypertune::inline v0

namespace hypertune::inline v0::detail {

std::string RungVerdict::text(const LossText& losses) const {
  const std::string at = detail::format("at rung {} ({} step{}): ", rung + 1, steps, steps == 1 ? "" : "s");
  if (quota == 0) return at + losses.named(loss) + detail::format(", too few to compare with ({})", trials);
  return at + losses.against(loss, bar) + detail::format(" (the best {} of {})", quota, trials);
}

}  // namespace hypertune::inline v0::detail
