// Records and folders for the tests of the Journal and of what reads it.
#pragma once

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/journal.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace support {

namespace ht = hypertune;

/// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hypertune-record-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  operator const std::filesystem::path&() const { return path_; }  // NOLINT: that is what it is
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::vector<ht::Record> read_all(const std::filesystem::path& directory) {
  std::vector<ht::Record> records;
  ht::read_journal(directory, [&](const ht::Record& record) { records.push_back(record); });
  return records;
}

/// Any record, with hostile strings and numbers.
class RandomRecords {
 public:
  explicit RandomRecords(std::uint64_t seed) : random_(seed) {}

  ht::record::Any next() {
    const ht::TrialId trial = integer(0, 1'000'000);
    switch (integer(0, 15)) {
      case 0: {
        ht::record::ExperimentStarted started{text(),
                                              {{text(), ht::Mode::maximize}, {text(), ht::Mode::minimize}},
                                              text(),
                                              text(),
                                              text(),
                                              text(),
                                              integer(-5, 1000),
                                              random_(),
                                              flag()};
        if (flag()) started.searcher_options = text();
        if (flag()) started.scheduler_options = text();
        if (flag()) started.command = text();
        return started;
      }
      case 1: return ht::record::TrialCreated{trial, {number(), number()}, params(), flag()};
      case 2: {
        ht::record::TrialStarted started{trial, 3, int(integer(0, 99)), text(), {0, 1, 5}, {-1}};
        if (flag()) started.others = places();
        if (flag()) started.generation = ht::Attempt(integer(0, 4294967295));
        return started;
      }
      case 13:
        return ht::record::TrialResized{trial, 2, ht::Attempt(integer(1, 4294967295)), places(), text(), texts()};
      case 14: return ht::record::WorkersRequested{trial, int(integer(0, 100'000)), flag()};
      case 3: return ht::record::TrialCheckpointed{trial, checkpoint(trial)};
      case 4: return ht::record::CheckpointDropped{trial, checkpoint(trial), text()};
      case 5: return ht::record::TrialPaused{trial};
      case 6: {
        const bool retry = flag();
        return ht::record::AttemptFailed{trial, 4294967295U, cause(), retry, retry && flag(), flag() ? text() : ""};
      }
      case 7:
        return ht::record::TrialEnded{trial, ht::TrialState(integer(3, 5)),
                                      flag() ? std::optional(cause()) : std::nullopt};
      case 8: return ht::record::HostGained{text()};
      case 9: return ht::record::HostLost{text(), text(), flag()};
      case 10: return ht::record::ExperimentEnded{flag(), text()};
      case 11: return ht::record::TrialExploited{trial, integer(0, 9), checkpoint(7), {number(), number()}, params()};
      case 12: return ht::record::AttributesSet{flag() ? trial : -1, params()};
      default:
        return ht::record::TrialReported{trial, ht::Attempt(integer(0, 3)), int(integer(0, 2'000'000)), metrics(),
                                         flag()};
    }
  }

  ht::Metrics metrics() {
    ht::Metrics metrics;
    for (auto n = integer(0, 4); n > 0; --n) metrics.emplace_back(flag() ? "loss" : text(), number());
    return metrics;
  }
  double number() {
    static const double special[] = {0.0,
                                     -0.0,
                                     1.0,
                                     -3.0,
                                     0.1,
                                     1e300,
                                     -1e-300,
                                     5e-324,
                                     9007199254740993.0,
                                     std::numeric_limits<double>::quiet_NaN(),
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity()};
    return flag() ? special[integer(0, 11)] : std::normal_distribution<double>()(random_);
  }
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool flag() { return integer(0, 1) == 1; }
  std::string text() {
    std::string text;
    for (auto n = integer(0, 12); n > 0; --n) text += "a\"'\n\\\0\xff\xc3\xa9;%"[integer(0, 11)];
    return text;
  }

 private:
  ht::Params params() {
    ht::Params params;
    params.set("lr" + text(), number());
    params.set("layers", integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
    params.set("flag", flag());
    params.set(text(), text());
    return params;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> list(static_cast<std::size_t>(integer(0, 2)));
    for (auto& one : list) one = text();
    return list;
  }
  std::vector<ht::record::WorkerPlace> places() {
    std::vector<ht::record::WorkerPlace> places(static_cast<std::size_t>(integer(0, 4)));
    for (auto& place : places) place = {text(), {int(integer(0, 99))}, {}};
    return places;
  }
  ht::CheckpointInfo checkpoint(ht::TrialId trial) { return {trial, int(integer(0, 100)), text(), random_(), text()}; }
  ht::Cause cause() { return {ht::FailureSource(integer(0, 2)), text(), flag(), flag()}; }

  std::mt19937_64 random_;
};

/// Equality that takes NaN for equal to NaN and tells the zeros apart.
inline bool same(double a, double b) { return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b)); }
inline bool same(const ht::Value& a, const ht::Value& b) {
  if (a.index() != b.index()) return false;
  const auto* x = std::get_if<double>(&a);
  return x == nullptr ? a == b : same(*x, std::get<double>(b));
}
template <class Pairs>
bool same_pairs(const Pairs& a, const Pairs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

struct SameAs {
  const ht::record::Any& other;
  template <class Event>
  const Event& as() const {
    return std::get<Event>(other);
  }
  bool operator()(const ht::record::ExperimentStarted& x) const {
    const auto& y = as<ht::record::ExperimentStarted>();
    return x.name == y.name && x.objectives == y.objectives && x.space == y.space && x.searcher == y.searcher &&
           x.scheduler == y.scheduler && x.executor == y.executor && x.samples == y.samples && x.seed == y.seed &&
           x.resumed == y.resumed && x.searcher_options == y.searcher_options &&
           x.scheduler_options == y.scheduler_options && x.command == y.command;
  }
  bool operator()(const ht::record::TrialCreated& x) const {
    const auto& y = as<ht::record::TrialCreated>();
    return x.trial == y.trial && x.known == y.known && same_pairs(x.params, y.params) &&
           std::equal(x.point.begin(), x.point.end(), y.point.begin(), y.point.end(),
                      [](double p, double q) { return same(p, q); });
  }
  bool operator()(const ht::record::TrialStarted& x) const {
    const auto& y = as<ht::record::TrialStarted>();
    return x.trial == y.trial && x.attempt == y.attempt && x.next_step == y.next_step && x.host == y.host &&
           x.cpus == y.cpus && x.gpus == y.gpus && x.others == y.others && x.generation == y.generation;
  }
  bool operator()(const ht::record::TrialResized& x) const {
    const auto& y = as<ht::record::TrialResized>();
    return x.trial == y.trial && x.attempt == y.attempt && x.generation == y.generation && x.workers == y.workers &&
           x.why == y.why && x.lost == y.lost;
  }
  bool operator()(const ht::record::WorkersRequested& x) const {
    const auto& y = as<ht::record::WorkersRequested>();
    return x.trial == y.trial && x.workers == y.workers && x.by_user == y.by_user;
  }
  bool operator()(const ht::record::TrialReported& x) const {
    const auto& y = as<ht::record::TrialReported>();
    return x.trial == y.trial && x.attempt == y.attempt && x.step == y.step && x.over == y.over &&
           same_pairs(x.metrics, y.metrics);
  }
  bool operator()(const ht::record::TrialCheckpointed& x) const {
    return x.trial == as<ht::record::TrialCheckpointed>().trial &&
           x.checkpoint == as<ht::record::TrialCheckpointed>().checkpoint;
  }
  bool operator()(const ht::record::CheckpointDropped& x) const {
    const auto& y = as<ht::record::CheckpointDropped>();
    return x.trial == y.trial && x.checkpoint == y.checkpoint && x.why == y.why;
  }
  bool operator()(const ht::record::TrialPaused& x) const { return x.trial == as<ht::record::TrialPaused>().trial; }
  bool operator()(const ht::record::TrialExploited& x) const {
    const auto& y = as<ht::record::TrialExploited>();
    return x.trial == y.trial && x.donor == y.donor && x.checkpoint == y.checkpoint && same_pairs(x.params, y.params) &&
           std::equal(x.point.begin(), x.point.end(), y.point.begin(), y.point.end(),
                      [](double p, double q) { return same(p, q); });
  }
  bool operator()(const ht::record::AttemptFailed& x) const {
    const auto& y = as<ht::record::AttemptFailed>();
    return x.trial == y.trial && x.attempt == y.attempt && x.cause == y.cause && x.retry == y.retry &&
           x.doubted == y.doubted && x.host == y.host;
  }
  bool operator()(const ht::record::TrialEnded& x) const {
    const auto& y = as<ht::record::TrialEnded>();
    return x.trial == y.trial && x.state == y.state && x.cause == y.cause;
  }
  bool operator()(const ht::record::HostGained& x) const { return x.host == as<ht::record::HostGained>().host; }
  bool operator()(const ht::record::HostLost& x) const {
    return x.host == as<ht::record::HostLost>().host && x.why == as<ht::record::HostLost>().why;
  }
  bool operator()(const ht::record::AttributesSet& x) const {
    const auto& y = as<ht::record::AttributesSet>();
    return x.trial == y.trial && same_pairs(x.attributes, y.attributes);
  }
  bool operator()(const ht::record::ExperimentEnded& x) const {
    return x.interrupted == as<ht::record::ExperimentEnded>().interrupted &&
           x.why == as<ht::record::ExperimentEnded>().why;
  }
};

inline bool same(const ht::record::Any& a, const ht::record::Any& b) {
  return a.index() == b.index() && std::visit(SameAs{b}, a);
}

}  // namespace support
