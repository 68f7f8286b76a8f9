#include "remote_trials.hpp"

#include "local_trials.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/read_file.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

fs::path found_from(const Sweep& sweep, const fs::path& path) { return hypertune::found_from(sweep.file, path); }

std::vector<FileMount> mounts_of(const Sweep& sweep, std::vector<FileMount> mounts, std::vector<fs::path>& programs) {
  std::error_code ignored;
  for (auto& mount : mounts) {
    mount.local = found_from(sweep, mount.local);
    if (!fs::exists(mount.local, ignored))
      fail(Errc::usage, "{}: 'executor.file_mounts': there is no '{}' to bring to '{}'", sweep.file.string(),
           mount.local.string(), mount.remote);
  }
  const std::string& word = sweep.trial->command.front();
  const auto place = fs::path(word).lexically_normal();
  if (word.find('/') == std::string::npos || word.find('{') != std::string::npos || place.is_absolute() ||
      place.string().starts_with(".."))
    return mounts;
  for (const auto& mount : mounts) {
    if (mount.remote.starts_with('/') || mount.remote.starts_with('~')) continue;
    const auto covered = place.lexically_relative(fs::path(mount.remote).lexically_normal());
    if (!covered.empty() && !covered.string().starts_with("..")) return mounts;
  }
  const auto local = found_from(sweep, place);
  if (!fs::is_regular_file(local, ignored) || ::access(local.c_str(), X_OK) != 0) return mounts;
  mounts.push_back({.remote = place.string(), .local = local, .exclude = {}});
  programs.push_back(local);
  return mounts;
}

std::string sweep_description(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  boost::json::object description;
  description["file"] = file;
  description["text"] = detail::read_file(file).value_or("");
  description["set"] = boost::json::value_from(set);
  boost::json::object templates;
  for (const auto& each : sweep.trial->files)
    if (!each.text) templates[each.path] = template_text(sweep, each);
  description["templates"] = std::move(templates);
  return boost::json::serialize(description);
}

std::shared_ptr<const Program> program_from_description(const std::string& description) {
  boost::system::error_code error;
  boost::json::parse_options bytes;  // a template may have bytes that are no UTF-8
  bytes.allow_invalid_utf8 = true;
  const auto value = boost::json::parse(description, error, {}, bytes);
  if (error || !value.is_object()) fail(Errc::protocol, "the driver's description of the sweep cannot be read");
  const auto text_of = [](const boost::json::value* each) {
    return each != nullptr && each->is_string() ? std::string(each->as_string()) : std::string();
  };
  const auto& object = value.as_object();
  Node root = load_yaml_text(text_of(object.if_contains("text")), text_of(object.if_contains("file")));
  if (const auto* set = detail::array_in(object, "set"))
    for (const auto& each : *set) root = with_override(root, text_of(&each));
  // How trials get here, and which ones, is the driver's business: files that it reads for that are not on this host.
  for (const char* own : {"executor=local", "start_with=[]", "known=[]"}) root = with_override(root, own);
  Sweep sweep = sweep_from_yaml(root, false);
  sweep.executor.isolation = "process";
  if (const auto* templates = detail::object_in(object, "templates"))
    for (auto& each : sweep.trial->files)
      if (const auto* text = templates->if_contains(each.path)) each.text = text_of(text);
  try {
    return program_of(sweep);
  } catch (const Error& problem) {
    const bool slurm = std::getenv("SLURM_JOB_ID") != nullptr;
    fail(problem.code(), "{}; the trials run in '{}' there: {}", problem.what(), fs::current_path().string(),
         slurm ? "it must be a folder that the nodes share (executor.workdir)" : "bring it with executor.file_mounts");
  }
}

}  // namespace hypertune::inline v0::command
