// A checkpoint as a trial sees it: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/checkpoint.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0 {

bool operator==(const CheckpointInfo& a, const CheckpointInfo& b) {
  return a.trial == b.trial && a.steps == b.steps && a.name == b.name && a.bytes == b.bytes && a.digest == b.digest;
}

void require_safe_name(std::string_view name) {
  const std::filesystem::path path(name);
  bool safe = !name.empty() && path.is_relative() && name.find('\0') == std::string_view::npos;
  for (const auto& part : path) safe = safe && !part.empty() && part != ".." && part != ".";
  if (!safe)
    fail(Errc::usage, "'{}' cannot be a checkpoint file's name: use a relative path without '.', '..' or empty parts",
         name);
}

std::filesystem::path CheckpointWriter::file(std::string_view name) const {
  require_safe_name(name);
  auto path = staging_ / name;
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", path.parent_path().string(), error.message());
  return path;
}

bool Checkpoint::has(std::string_view name) const {
  require_safe_name(name);
  return std::filesystem::is_regular_file(directory_ / name);
}

std::filesystem::path Checkpoint::file(std::string_view name) const {
  if (!has(name)) fail(Errc::usage, "checkpoint '{}' of trial {} has no file '{}'", info_.name, info_.trial, name);
  return directory_ / name;
}

CheckpointWriter::CheckpointWriter(TrialId trial, int steps, std::filesystem::path staging, std::string parent)
    : trial_(trial), steps_(steps), staging_(std::move(staging)), parent_(std::move(parent)) {}

Checkpoint::Checkpoint(CheckpointInfo info, std::filesystem::path directory)
    : info_(std::move(info)), directory_(std::move(directory)) {}

}  // namespace hypertune::inline v0
