// The choice of an experiment's folder.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/tune/options.hpp>

#include <filesystem>

namespace hypertune::inline v0 {

/// The folder of an experiment: the one that the user named, else runs/<name>, or runs/<name>-2, … if that is taken.
/// With `options.resume`: the last of these that exists and has not ended; if all have ended, the last one.
std::filesystem::path experiment_directory(const Options& options);

namespace detail {
/// Tells a user who resumes without naming a folder which one is resumed, if there are several.
void say_which_is_resumed(const Options& options, const std::filesystem::path& directory);
}  // namespace detail

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/experiment_directory.hpp>
#endif
