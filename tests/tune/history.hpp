// Histories of experiments: written down to compare, cut short to resume from.
#pragma once

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/journal.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace support {

inline std::vector<hypertune::Record> records_of(const std::filesystem::path& directory) {
  std::vector<hypertune::Record> records;
  hypertune::read_journal(directory, [&](const hypertune::Record& record) { records.push_back(record); });
  return records;
}

inline std::string hosts(const std::vector<hypertune::record::WorkerPlace>& places) {
  std::string names;
  for (const auto& place : places) names += place.host + " ";
  return names;
}

/// The decisions in a history, one line each, with their times to the bit. What says only how a driver came and went,
/// and what became of checkpoints, is left out.
inline std::vector<std::string> decisions(const std::vector<hypertune::Record>& records) {
  namespace record = hypertune::record;
  std::vector<std::string> lines;
  for (const auto& r : records) {
    const auto add = [&](auto&&... parts) {
      std::string line = fmt::format("{:a}", r.time);
      ((line += fmt::format(" {}", parts)), ...);
      lines.push_back(std::move(line));
    };
    std::visit(
        [&](const auto& e) {
          using E = std::decay_t<decltype(e)>;
          if constexpr (std::is_same_v<E, record::TrialCreated>)
            add("created", e.trial);
          else if constexpr (std::is_same_v<E, record::TrialStarted>)
            add("started", e.trial, e.attempt, e.next_step, e.host, hosts(e.others));
          else if constexpr (std::is_same_v<E, record::TrialResized>)
            add("resized", e.trial, e.attempt, e.generation, hosts(e.workers), e.why);
          else if constexpr (std::is_same_v<E, record::TrialReported>)
            add("reported", e.trial, e.attempt, e.step, fmt::format("{:a}", e.metrics.front().second));
          else if constexpr (std::is_same_v<E, record::TrialPaused>)
            add("paused", e.trial);
          else if constexpr (std::is_same_v<E, record::TrialExploited>)
            add("mutated", e.trial, e.donor, e.checkpoint.trial, e.checkpoint.steps,
                fmt::format("{:a}", e.point.front()));
          else if constexpr (std::is_same_v<E, record::AttemptFailed>)
            add("failed", e.trial, e.attempt, e.cause.text, e.retry);
          else if constexpr (std::is_same_v<E, record::TrialEnded>)
            add("ended", e.trial, hypertune::to_string(e.state), e.cause ? e.cause->text : "");
          else if constexpr (std::is_same_v<E, record::HostGained> || std::is_same_v<E, record::HostLost>)
            add(std::is_same_v<E, record::HostLost> ? "lost" : "gained", e.host);
        },
        r.what);
  }
  return lines;
}

/// A driver that was killed when `count` records of `from` were durable: its folder is made in `to`. The checkpoints
/// are those that `from` has at its end; a resumed driver must know what to do with those ahead of its record.
inline void cut(const std::filesystem::path& from, const std::vector<hypertune::Record>& records, std::size_t count,
                const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  if (std::filesystem::exists(from / "trials"))
    std::filesystem::copy(from / "trials", to / "trials", std::filesystem::copy_options::recursive);
  auto journal = hypertune::Journal::open(to, {.sync = hypertune::Sync::normal});
  for (std::size_t i = 0; i < count; ++i) journal.append(records[i].time, records[i].what);
  journal.flush();
}

}  // namespace support
