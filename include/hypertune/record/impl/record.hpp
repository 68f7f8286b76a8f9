// Records: definitions.
#pragma once

#include <hypertune/record/record.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

Objective minimize(std::string metric) { return {std::move(metric), Mode::minimize}; }
Objective maximize(std::string metric) { return {std::move(metric), Mode::maximize}; }

bool operator==(const Objective& a, const Objective& b) { return a.metric == b.metric && a.mode == b.mode; }

bool operator==(const MetricBound& a, const MetricBound& b) {
  return a.metric == b.metric && a.side == b.side && a.value == b.value;
}

namespace record {

bool operator==(const WorkerPlace& a, const WorkerPlace& b) {
  return a.host == b.host && a.cpus == b.cpus && a.gpus == b.gpus;
}

}  // namespace record

}  // namespace hypertune::inline v0
