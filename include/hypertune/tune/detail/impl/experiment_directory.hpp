// The choice of an experiment's folder: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

// runs/<name>, runs/<name>-2, …: those that exist or are taken, followed by the first one that does not and is not.
std::vector<std::filesystem::path> folders_of_name(const Options& options,
                                                   const std::vector<std::filesystem::path>& taken = {}) {
  const std::string& name = *options.name;
  const bool controls = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos || controls)
    fail(Errc::usage, ".name is '{}', but must be a word that can be a folder's name: its folder is runs/<name>", name);
  const std::filesystem::path first = std::filesystem::path("runs") / name;
  std::vector<std::filesystem::path> folders{first};
  while (has_journal(folders.back()) || std::find(taken.begin(), taken.end(), folders.back()) != taken.end()) {
    folders.push_back(first);
    folders.back() += detail::format("-{}", folders.size());
  }
  return folders;
}

bool is_just_made(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto made = fs::last_write_time(folder, error);
  if (error || fs::file_time_type::clock::now() > made + std::chrono::minutes(1)) return false;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != "driver.lock" && name != "trials" && !name.starts_with("experiment.db")) return false;
  }
  return !error;
}

// An unreadable experiment counts as not ended: opening it later says what is wrong.
bool has_ended(const std::filesystem::path& folder) {
  try {
    return JournalReader(folder).ended();
  } catch (const Error&) { return false; }
}

void say_which_is_resumed(const Options& options, const std::filesystem::path& directory) {
  if (!options.resume || !options.output.empty() || options.display == Display::quiet) return;
  if (folders_of_name(options).size() <= 2) return;
  say(detail::format(
      "hypertune: goes on with '{}', the last experiment of that name{}; any other one by its folder (--output)",
      directory.string(), has_ended(directory) ? "" : " that has not ended"));
}

}  // namespace detail

std::filesystem::path experiment_directory(const Options& options, const std::vector<std::filesystem::path>& taken) {
  if (!options.output.empty()) return options.output;
  auto folders = detail::folders_of_name(options, taken);
  if (!options.resume || folders.size() == 1) return folders.back();
  folders.pop_back();
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    if (folders.size() == 1 || !detail::has_ended(*folder)) return *folder;
  return folders.back();
}

}  // namespace hypertune::inline v0
