// The choice of an experiment's folder.
#pragma once

#include <hypertune/tune/options.hpp>

#include <filesystem>
#include <vector>

namespace hypertune::inline v0 {

/// The folder of an experiment: the one that the user named, else runs/<name>, or runs/<name>-2, … if that is taken.
/// With `options.resume`: the last of these that exists and has not ended; if all have ended, the last one. `taken`:
/// folders of the name that other drivers have just made.
std::filesystem::path experiment_directory(const Options& options,
                                           const std::vector<std::filesystem::path>& taken = {});

namespace detail {
/// Whether a folder looks like that of a driver that is just starting: made within the last minute, with
/// nothing in it but what a driver makes first.
bool is_just_made(const std::filesystem::path& folder);
/// Tells a user who resumes without naming a folder which one is resumed, if there are several.
void say_which_is_resumed(const Options& options, const std::filesystem::path& directory);
}  // namespace detail

}  // namespace hypertune::inline v0
