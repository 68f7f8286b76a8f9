// A sweep's trials on other machines: how they get there, and how the command runs them there.
#pragma once

#include <hypertune/config/sweep_options.hpp>
#include <hypertune/trial/program.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

/// Resolves a path of the file: "~/x" is below the home folder; a relative path that does not exist in the working
/// directory is looked up in the file's folder.
std::filesystem::path found_from(const Sweep& sweep, const std::filesystem::path& path);

/// The files to copy to hosts: these mounts, with their local paths resolved by found_from(), and, if the command names
/// a program by a relative path, that program, with the same path below the working folder; it is added to `programs`.
/// Error of kind `usage` if one does not exist.
std::vector<FileMount> mounts_of(const Sweep& sweep, std::vector<FileMount> mounts,
                                 std::vector<std::filesystem::path>& programs);

/// A description from which agents make the sweep's program: the text of `file`, `set`, and the texts of templates.
std::string sweep_description(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);

/// To be called on a host: the program of such a description.
std::shared_ptr<const Program> program_from_description(const std::string& description);

}  // namespace hypertune::inline v0::command
