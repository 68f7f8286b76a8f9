#include "support/test.hpp"

#include <hypertune/record/csv_logger.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/jsonl_logger.hpp>
#include <hypertune/record/tensorboard_logger.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

namespace ht = hypertune;
namespace fs = std::filesystem;
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "hypertune-loggers-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string read(const fs::path& file) const { return ht::detail::read_whole(path / file); }
  std::string csv(ht::TrialId trial) const { return read(fs::path("trials") / std::to_string(trial) / "progress.csv"); }
};

// A history: numbers the records, one a second.
struct History {
  std::vector<ht::Record> records;
  void add(ht::record::Any what) {
    const auto n = static_cast<std::int64_t>(records.size()) + 1;
    records.push_back({n, 1000.0 + static_cast<double>(n), std::move(what)});
  }
  void create(ht::TrialId trial) { add(ht::record::TrialCreated{trial, {0.5}, ht::Params{{"lr", 0.5}}}); }
  void report(ht::TrialId trial, int step, ht::Metrics metrics) {
    add(ht::record::TrialReported{trial, 0, step, std::move(metrics)});
  }
  void end(ht::TrialId trial) { add(ht::record::TrialEnded{trial, ht::TrialState::completed, std::nullopt}); }
};

template <class Logger>
void run(const fs::path& directory, std::span<const ht::Record> records, std::size_t batch = 3) {
  if (records.empty()) return;
  ht::AnyCallback logger{Logger()};
  logger.open(directory);
  for (std::size_t i = 0; i < records.size(); i += batch)
    logger.batch(records.subspan(i, std::min(batch, records.size() - i)));
}

// Several trials side by side, whose metrics change on the way.
History sample(int trials, int steps) {
  History h;
  h.add(ht::record::ExperimentStarted{"x", {ht::minimize("loss")}, "lr: {uniform: [0, 1]}", "", "", "", 3, 1, false});
  for (int t = 0; t < trials; ++t) h.create(t);
  for (int s = 0; s < steps; ++s)
    for (int t = 0; t < trials; ++t) {
      ht::Metrics metrics{{"loss", 1.0 / (1 + s + t)}};
      if (s > t) metrics.emplace_back("accuracy", 0.1 * s);
      if (s == 2) metrics.emplace_back("odd, \"name\"", not_a_number);
      h.report(t, s, metrics);
    }
  for (int t = 0; t < trials; t += 2) h.end(t);
  h.add(ht::record::ExperimentEnded{});
  return h;
}

void into_journal(const fs::path& directory, std::span<const ht::Record> records) {
  auto journal = ht::Journal::open(directory);
  for (const auto& record : records) journal.append(record.time, record.what);
  journal.flush();
}

template <class Logger>
std::vector<std::string> files(const fs::path& directory, const History& h) {
  std::vector<std::string> out;
  for (const auto& r : h.records)
    if (const auto* c = std::get_if<ht::record::TrialCreated>(&r.what))
      for (const char* name : {"progress.csv", "events.out.tfevents.0.hypertune"})
        out.push_back(ht::detail::read_whole(ht::detail::trial_file(directory, c->trial, name)));
  out.push_back(ht::detail::read_whole(directory / "events.jsonl"));
  return out;
}

// Whatever a kill leaves, the files of the resumed run are those of a run that was never killed.
template <class Logger>
void survives_kills() {
  const History h = sample(3, 6);
  const std::span<const ht::Record> all(h.records);
  Folder whole;
  run<Logger>(whole.path, all);
  const auto expected = files<Logger>(whole.path, h);
  std::mt19937 random(5);
  for (std::size_t cut = 1; cut < all.size(); ++cut) {
    Folder killed;
    into_journal(killed.path, all);
    const std::size_t seen = random() % cut;
    run<Logger>(killed.path, all.first(seen));
    // The next batch is being written when the kill comes: some files have none of it, some a part, some all; the
    // position is still the old one.
    std::map<fs::path, std::string> before, after;
    const auto contents = [&](std::map<fs::path, std::string>& to) {
      for (const auto& entry : fs::recursive_directory_iterator(killed.path))
        if (entry.is_regular_file() && !entry.path().filename().string().starts_with("experiment.db"))
          to[entry.path()] = ht::detail::read_whole(entry.path());
    };
    contents(before);
    run<Logger>(killed.path, all.subspan(seen, cut - seen), all.size());
    contents(after);
    for (const auto& [path, text] : after) {
      const std::string& old = before[path];
      if (path.filename().string()[0] == '.')
        ht::detail::append_to(path, old, 0);
      else if (text.starts_with(old))
        ht::detail::append_to(path, {}, old.size() + random() % (text.size() - old.size() + 1));
    }
    const std::size_t committed = cut + random() % (all.size() - cut);  // the logger had not seen them all
    run<Logger>(killed.path, all.subspan(committed), 2);
    INFO("killed after record " << cut << ", resumed at " << committed);
    REQUIRE(files<Logger>(killed.path, h) == expected);
  }
}

}  // namespace

TEST_CASE("csv: metrics that are called step or time stand apart from ours, after a resume as well") {
  // A metric called `time` keeps its name, as everywhere; the column of the report's own time steps aside.
  const Folder folder;
  History h;
  h.create(0);
  h.report(0, 0, {{"time", 0.5}, {"loss", 1}});
  h.report(0, 1, {{"time", 0.25}, {"step", 7}, {"loss", 2}, {"metrics_time", 3}});
  into_journal(folder.path, h.records);
  run<ht::CsvLogger>(folder.path, std::span(h.records).first(2));
  run<ht::CsvLogger>(folder.path, std::span(h.records).subspan(2));
  CHECK(folder.csv(0) ==
        "step,timestamp,time,loss,metrics_step,metrics_time\n0,1002,0.5,1,,\n"
        "1,1003,0.25,2,7,3\n");
}

TEST_CASE("csv: a file of an earlier version, which called the metric metrics_time, goes on with the metric's name") {
  const Folder folder;
  History h;
  h.create(0);
  h.report(0, 0, {{"time", 0.5}, {"loss", 1}});
  h.report(0, 1, {{"time", 0.25}, {"loss", 2}});
  h.report(0, 2, {{"timestamp", 9}});
  into_journal(folder.path, h.records);
  run<ht::CsvLogger>(folder.path, std::span(h.records).first(2));
  ht::detail::replace_file(folder.path / "trials/0/progress.csv", "step,time,metrics_time,loss\n0,1002,0.5,1\n");
  run<ht::CsvLogger>(folder.path, std::span(h.records).subspan(2));
  CHECK(folder.csv(0) ==
        "step,timestamp_,time,loss,timestamp\n0,1002,0.5,1,\n"
        "1,1003,0.25,2,\n2,1004,,,9\n");
}

TEST_CASE("progress.csv has a line per report and gets a column for a metric that comes later") {
  Folder folder;
  History h;
  h.create(7);
  h.report(7, 0, {{"loss", 0.5}});
  h.report(7, 1, {{"loss", not_a_number}, {"a,b", infinity}});
  h.report(7, 3, {{"a,b", -infinity}});
  h.report(7, 4, {{"say \"hi\"", 1e-300}, {"loss", 2}});
  for (const std::size_t batch : {1U, 2U, 9U}) {
    run<ht::CsvLogger>(folder.path, h.records, batch);
    CHECK(folder.csv(7) ==
          "step,time,loss,\"a,b\",\"say \"\"hi\"\"\"\n"
          "0,1002,0.5,,\n"
          "1,1003,nan,inf,\n"
          "3,1004,,-inf,\n"
          "4,1005,2,,1e-300\n");
  }
}

TEST_CASE("progress.csv goes on after any kill as if there had been none") { survives_kills<ht::CsvLogger>(); }
TEST_CASE("events.jsonl goes on after any kill as if there had been none") { survives_kills<ht::JsonlLogger>(); }
TEST_CASE("event files go on after any kill as if there had been none") { survives_kills<ht::TensorBoardLogger>(); }

TEST_CASE("a logger that is added to a resumed experiment gets all of its history") {
  const History h = sample(2, 3);
  Folder folder, whole;
  into_journal(folder.path, h.records);
  run<ht::CsvLogger>(whole.path, h.records);
  run<ht::CsvLogger>(folder.path, std::span(h.records).last(1));
  CHECK(folder.csv(0) == whole.csv(0));
  CHECK(folder.csv(1) == whole.csv(1));
}

TEST_CASE("a new experiment in an old folder does not keep old rows") {
  Folder folder;
  History old, fresh;
  old.create(0);
  for (int s = 0; s < 5; ++s) old.report(0, s, {{"old", s}});
  fresh.create(0);
  fresh.report(0, 10, {{"loss", 1}});
  for (const auto* h : {&old, &fresh}) {
    run<ht::CsvLogger>(folder.path, h->records);
    run<ht::JsonlLogger>(folder.path, h->records);
  }
  CHECK(folder.csv(0) == "step,time,loss\n10,1002,1\n");
  const std::string lines = folder.read("events.jsonl");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  CHECK_THAT(lines, !ContainsSubstring("\"old\""));
}

TEST_CASE("a progress.csv that somebody else wrote is refused, not overwritten") {
  Folder folder;
  ht::detail::append_to(folder.path / "trials/0/progress.csv", "epoch;acc\n1;2\n");
  History h;
  h.report(0, 5, {{"loss", 1}});
  CHECK_THROWS_WITH(run<ht::CsvLogger>(folder.path, h.records), ContainsSubstring("was not written by hypertune"));
  CHECK(folder.csv(0) == "epoch;acc\n1;2\n");
}

TEST_CASE("what cannot be written is one clear error") {
  Folder folder;
  ht::detail::append_to(folder.path / "trials", "a file in the way");
  History h;
  h.report(0, 5, {{"loss", 1}});
  CHECK_THROWS_WITH(run<ht::CsvLogger>(folder.path, h.records), ContainsSubstring("cannot write '"));
}

TEST_CASE("events.jsonl has every kind of record") {
  Folder folder;
  History h;
  const ht::CheckpointInfo checkpoint{2, 4, "step-4", 100, "abcd"};
  h.add(ht::record::ExperimentStarted{"a\nb", {ht::maximize("acc")}, "x: {}", "tpe", "asha", "threads", 10, 7, true});
  h.add(ht::record::TrialCreated{2, {1}, ht::Params{{"on", true}, {"n", std::int64_t{3}}, {"opt", "a\"b"}}, true});
  h.add(ht::record::TrialStarted{2, 1, 4, "here", {0, 1}, {}});
  h.report(2, 4, {{"acc", not_a_number}, {"l", -infinity}, {"x", 0.1}});
  h.add(ht::record::TrialCheckpointed{2, checkpoint});
  h.add(ht::record::CheckpointDropped{2, checkpoint, "retention"});
  h.add(ht::record::TrialPaused{2});
  h.add(ht::record::AttemptFailed{2, 1, {ht::FailureSource::infrastructure, "lost"}, true});
  h.add(ht::record::TrialEnded{2, ht::TrialState::failed, ht::Cause{ht::FailureSource::user, "why"}});
  h.end(3);
  h.add(ht::record::HostGained{"h"});
  h.add(ht::record::HostLost{"h", "gone"});
  h.add(ht::record::AttributesSet{2, {{"phase", "warm-up"}, {"keep", true}}});
  h.add(ht::record::AttributesSet{-1, {{"dataset", "v3"}}});
  h.add(ht::record::ExperimentEnded{true, "Ctrl-C"});
  run<ht::JsonlLogger>(folder.path, h.records, 100);
  const std::string text = folder.read("events.jsonl");
  CHECK(std::count(text.begin(), text.end(), '\n') == 15);
  for (
      const char* line :
      {R"({"sequence": 1, "time": 1001, "event": "experiment_started", "name": "a\nb", "objectives": [{"metric": "acc", "mode": "max"}], "space": "x: {}", "searcher": "tpe", "scheduler": "asha", "executor": "threads", "samples": 10, "seed": 7, "resumed": true})",
       R"("event": "trial_created", "trial": 2, "params": {"on": true, "n": 3, "opt": "a\"b"}, "known": true})",
       R"("event": "trial_started", "trial": 2, "attempt": 1, "next_step": 4, "host": "here", "cpus": [0, 1], "gpus": []})",
       R"("event": "trial_reported", "trial": 2, "attempt": 0, "step": 4, "metrics": {"acc": "NaN", "l": "-Infinity", "x": 0.1}})",
       R"("event": "trial_checkpointed", "trial": 2, "checkpoint": "step-4", "steps": 4, "bytes": 100, "digest": "abcd"})",
       R"("event": "checkpoint_dropped")", R"("why": "retention"})", R"("event": "trial_paused", "trial": 2})",
       R"("event": "attempt_failed", "trial": 2, "attempt": 1, "cause": {"blame": "infrastructure", "text": "lost"}, "retry": true})",
       R"("event": "trial_ended", "trial": 2, "state": "failed", "cause": {"blame": "user", "text": "why"}})",
       R"("event": "trial_ended", "trial": 3, "state": "completed", "cause": null})",
       R"("event": "host_gained", "host": "h"})", R"("event": "host_lost", "host": "h", "why": "gone"})",
       R"("event": "attributes", "trial": 2, "attributes": {"phase": "warm-up", "keep": true}})",
       R"("event": "attributes", "attributes": {"dataset": "v3"}})",
       R"("event": "experiment_ended", "interrupted": true, "why": "Ctrl-C"})"})
    CHECK_THAT(text, ContainsSubstring(line));
}

TEST_CASE("TFRecord checksums are those of the published test vectors") {
  // RFC 3720, B.4, through TensorFlow's mask
  const auto mask = [](std::uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U; };
  CHECK(ht::detail::tensorboard::masked_crc(std::string(32, '\0')) == mask(0x8A9136AA));
  CHECK(ht::detail::tensorboard::masked_crc("123456789") == mask(0xE3069283));
}

TEST_CASE("a damaged TFRecord ends the reading") {
  std::string file;
  ht::detail::tensorboard::put_record(file, "one");
  ht::detail::tensorboard::put_record(file, "two");
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::string_view rest = damaged;
    std::size_t whole = 0;
    while (ht::detail::tensorboard::take_record(rest)) ++whole;
    CHECK(whole == (i < file.size() / 2 ? 0 : 1));
    rest = std::string_view(file).substr(0, i);
    while (ht::detail::tensorboard::take_record(rest)) {}
    CHECK(rest.size() < file.size());
  }
}

TEST_CASE("loggers keep up with many reports", "[.benchmark]") {
  History h;
  for (int t = 0; t < 1000; ++t) h.create(t);
  for (int s = 0; s < 300; ++s)
    for (int t = 0; t < 1000; ++t) h.report(t, s, {{"loss", 1.0 / (1 + s + t)}});
  const auto time = [&]<class Logger>(const char* name, Logger) {
    Folder folder;
    const auto begin = std::chrono::steady_clock::now();
    run<Logger>(folder.path, h.records, 4096);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    WARN(name << ": " << static_cast<double>(h.records.size()) / took.count() << " records/s");
  };
  time("csv", ht::CsvLogger());
  time("jsonl", ht::JsonlLogger());
  time("tensorboard", ht::TensorBoardLogger());
}
