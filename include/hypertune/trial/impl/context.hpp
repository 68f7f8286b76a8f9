// Context: definitions.
#pragma once

#include <hypertune/trial/context.hpp>

namespace hypertune::inline v0 {

const std::filesystem::path& Context::directory() const {
  const auto trials = start_.directory.parent_path();
  std::error_code none;
  if (trials.filename() == "trials" && !std::filesystem::exists(trials.parent_path(), none) && !none)
    fail(Errc::io, "the experiment's folder '{}' is gone", trials.parent_path().string());
  std::filesystem::create_directories(start_.directory);
  return start_.directory;
}

}  // namespace hypertune::inline v0
