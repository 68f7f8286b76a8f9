#include "remote_trials.hpp"

#include "local_trials.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/ssh/executor.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

namespace fs = std::filesystem;

fs::path found(const fs::path& path, const Sweep& sweep) { return found_from(sweep, path); }

remote::HostSource hosts_of(const Sweep& sweep) {
  const SshHosts& hosts = sweep.executor.ssh->hosts;
  if (hosts.slurm) return remote::HostSource::slurm();
  if (!hosts.file.empty()) return remote::HostSource::file(found(hosts.file, sweep), hosts.interval);
  if (!hosts.command.empty()) {
    auto command = hosts.command;
    if (command.front().find('/') != std::string::npos) command.front() = found(command.front(), sweep).string();
    return remote::HostSource::command(std::move(command), hosts.interval);
  }
  if (hosts.list.empty()) return {};  // those of the environment
  return hosts.list;
}

}  // namespace

fs::path found_from(const Sweep& sweep, const fs::path& path) { return hypertune::found_from(sweep.file, path); }

std::vector<FileMount> mounts_of(const Sweep& sweep, std::vector<FileMount> mounts, std::vector<fs::path>& programs) {
  std::error_code ignored;
  for (auto& mount : mounts) {
    mount.local = found(mount.local, sweep);
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
  const auto local = found(place, sweep);
  if (!fs::is_regular_file(local, ignored) || ::access(local.c_str(), X_OK) != 0) return mounts;
  mounts.push_back({.remote = place.string(), .local = local, .exclude = {}});
  programs.push_back(local);
  return mounts;
}

ssh::SshSetup remote_setup_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  const SshExecutorOptions& text = *sweep.executor.ssh;
  ssh::SshSetup setup;
  setup.ssh = text.ssh;
  setup.ssh.config = found(text.ssh.config, sweep);
  setup.ssh.identity = found(text.ssh.identity, sweep);
  if (text.heartbeat_timeout > 0) {
    setup.remote.timeouts.heartbeat = text.heartbeat_timeout;
    // ssh must not give up the connection before the host is given up.
    setup.ssh.alive_count =
        std::max(setup.ssh.alive_count, static_cast<int>(std::ceil(text.heartbeat_timeout / setup.ssh.alive_interval)));
  }
  setup.mounts = mounts_of(sweep, text.file_mounts, setup.programs);
  if (const auto& program = sweep.trial->command.front();
      program.find('{') == std::string::npos && !sweep.trial->environment.contains("PATH"))
    setup.needs.push_back(program);
  setup.directory = text.workdir.empty() ? "hypertune/" + *sweep.options.name : text.workdir;
  if (!text.cache.empty()) setup.ship.directory = text.cache;
  setup.limits = {.name = {},
                  .cpus = sweep.executor.cpus,
                  .gpus = sweep.executor.gpus,
                  .memory = sweep.executor.memory,
                  .custom = sweep.executor.custom};
  setup.remote.notice_command = text.notice_command;
  setup.remote.notice_url = text.notice_url;
  setup.remote.transfer = text.transfer;
  if (auto& shared = setup.remote.transfer.shared) shared->folder = found(shared->folder, sweep);
  setup.remote.program = sweep_description(sweep, file, set);
  return setup;
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

AnyExecutor remote_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  auto setup = remote_setup_of(sweep, file, set);
  setup.hosts = hosts_of(sweep);
  return ssh::SshExecutor(std::move(setup));
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
