// Context: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/context.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace hypertune::inline v0 {

const std::filesystem::path& Context::directory() const {
  const auto trials = start_.directory.parent_path();
  std::error_code none;
  if (trials.filename() == "trials" && !std::filesystem::exists(trials.parent_path(), none) && !none)
    fail(Errc::io, "the experiment's folder '{}' is gone", trials.parent_path().string());
  std::filesystem::create_directories(start_.directory);
  return start_.directory;
}

Context::Context(Start start) : start_(std::move(start)), steps_(start_.next_step) {
  if (!start_.group) start_.group = std::make_shared<Group>();
}

std::filesystem::path Context::log() const { return directory() / start_.log; }

void Context::request_workers(int workers) {
  if (workers < 0)
    fail(Errc::usage, "a trial cannot request {} workers: 0 is as many as there is room for, else a positive number",
         workers);
  requested_workers_ = workers;
}

void Context::set_final_save(int steps, Save save) {
  final_save_ = save ? std::optional(FinalSave{steps, std::move(save)}) : std::nullopt;
}

std::optional<Context::FinalSave> Context::take_final_save() { return std::exchange(final_save_, std::nullopt); }

void Context::save(CheckpointWriter& out) const { save_(out); }

void Context::move_to(const Slot& slot) { start_.slot = slot; }

std::uint64_t Context::beats() const { return beats_.load(std::memory_order_relaxed) + start_.group->beats(); }

Context::~Context() = default;

void Context::checkpoints(Save save, const Load& load) {
  save_ = std::move(save);
  if (start_.restore) load(*start_.restore);
}

}  // namespace hypertune::inline v0
