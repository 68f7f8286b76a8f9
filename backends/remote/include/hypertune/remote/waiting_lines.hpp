// WaitingLines: the messages about waiting workers. No I/O, no clock.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote {

/// A worker that has not started.
struct WaitingWorker {
  std::string word;      ///< short reason: "Resources", "Unschedulable"; empty: not known
  std::string sentence;  ///< long reason, as the rest of a sentence after the worker's name: "waits for a node (…)"
};

/// One line for all waiting workers; repeated for each new reason, and once a minute while nothing runs.
class WaitingLines {
 public:
  /// `where`: "in Slurm's queue". Returns the line to print now; empty: none.
  std::string look(const std::vector<WaitingWorker>& waiting, const std::string& where, bool some_run, Seconds now) {
    constexpr Seconds again = 60;
    if (waiting.empty()) return {};
    std::map<std::string, int> words;
    news_ = false;
    for (const auto& worker : waiting) {
      ++words[worker.word];
      news_ = told_.insert(worker.word).second || news_;
    }
    if (!news_ && (some_run || now - told_at_ < again)) return {};
    told_at_ = now;
    const auto all = waiting.size();
    if (words.size() == 1)
      return fmt::format("{} worker{} {}", all, all == 1 ? "" : "s, each", waiting.front().sentence);
    std::string parts;
    for (const auto& [word, count] : words)
      parts +=
          fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, word.empty() ? "for no reason that it says" : word);
    return fmt::format("{} workers wait {}: {}", all, where, parts);
  }
  /// Whether the last look() had a new reason.
  bool news() const { return news_; }
  /// No worker waits any more.
  void clear() { told_.clear(); }

 private:
  std::set<std::string> told_;
  Seconds told_at_ = 0;
  bool news_ = false;
};

}  // namespace hypertune::inline v0::remote
