// fmt formatters for the public types. The formatters of Params and TrialResult are in the headers of these types.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/resources.hpp>
#include <hypertune/trial/trial.hpp>

#include <fmt/core.h>

#include <string>

namespace hypertune::inline v0 {

std::string to_string(const Objective& objective);
std::string to_string(const Report& report);
std::string to_string(const SearchSpace& space);
std::string to_string(const Resources& resources);
std::string to_string(const Host& host);
std::string to_string(const Results& results);

}  // namespace hypertune::inline v0

template <>
struct fmt::formatter<hypertune::TrialState> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::Decision> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::Mode> : hypertune::detail::WordFormatter {};
template <>
struct fmt::formatter<hypertune::FailureSource> : hypertune::detail::WordFormatter {};

/// "accuracy (max)"
template <>
struct fmt::formatter<hypertune::Objective> : hypertune::detail::TextFormatter {};

/// "accuracy=0.93 loss=0.2", with "step 3: " before it if the report names its step.
template <>
struct fmt::formatter<hypertune::Report> : hypertune::detail::TextFormatter {};

/// The text of SearchSpace::describe(): one line per dimension.
template <>
struct fmt::formatter<hypertune::SearchSpace> : hypertune::detail::WordFormatter {};

/// "2 cpus, 1 gpus, 1024 bytes of memory, 1 licence"; amounts of 0 are left out.
template <>
struct fmt::formatter<hypertune::Resources> : hypertune::detail::TextFormatter {};

/// "host1: 8 cpus, 1 gpus"
template <>
struct fmt::formatter<hypertune::Host> : hypertune::detail::TextFormatter {};

/// "30 trials: 12 completed, 17 stopped, 1 failed; best: trial 7  accuracy=0.985 at step 20  lr=0.01"
template <>
struct fmt::formatter<hypertune::Results> : hypertune::detail::TextFormatter {};
