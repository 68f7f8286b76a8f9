// Where an experiment is kept.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/tune/options.hpp>

#include <filesystem>

namespace hypertune::inline v0 {

/// The folder of an experiment: what the user named, or runs/<name>, or runs/<name>-2, … where that is taken. With
/// `options.resume`, the last one of these that is there and has not ended; where all have ended, the last one.
std::filesystem::path experiment_directory(const Options& options);

namespace detail {
/// Tells who resumes without naming a folder which one it is, where there are several.
void say_which_is_resumed(const Options& options, const std::filesystem::path& directory);
}  // namespace detail

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/experiment_directory.hpp>
#endif
