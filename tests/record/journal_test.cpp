#include "record_support.hpp"
#include "support/test.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

namespace ht = hypertune;
using support::read_all;
using support::TemporaryFolder;

namespace {

ht::record::Any report(ht::TrialId trial, int step, double value = 0.5) {
  return ht::record::TrialReported{trial, 0, step, {{"loss", value}}};
}

template <class Call>
ht::Error error_of(const Call& call) {
  try {
    call();
  } catch (const ht::Error& error) { return error; }
  return {ht::Errc::usage, "nothing was thrown"};
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("whatever goes into the journal comes out") {
  const TemporaryFolder folder;
  support::RandomRecords random(7);
  std::vector<ht::record::Any> written;
  for (int session = 0; session < 3; ++session) {
    auto journal = ht::Journal::open(folder);
    CHECK(journal.last() == std::int64_t(written.size()));
    for (int i = 0; i < 1000; ++i) {
      written.push_back(random.next());
      CHECK(journal.append(i * 0.25, written.back()) == std::int64_t(written.size()));
    }
  }
  const auto read = read_all(folder);
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    INFO("record " << i + 1);
    CHECK(read[i].sequence == std::int64_t(i) + 1);
    CHECK(read[i].time == double(i % 1000) * 0.25);
    REQUIRE(support::same(read[i].what, written[i]));
  }
}

TEST_CASE("flush makes durable, drain also announces, in order and once") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> seen;  // it announces until it ends
  auto journal = ht::Journal::open(folder);
  journal.on_committed([&](std::span<const ht::Record> batch) {
    for (const auto& record : batch) seen.push_back(record.sequence);
  });
  for (int i = 0; i < 5000; ++i) journal.append(0, report(0, i));
  journal.flush();
  CHECK(journal.committed() == 5000);
  CHECK(read_all(folder).size() == 5000);  // while the driver is at work
  journal.drain();
  REQUIRE(seen.size() == 5000);
  for (std::size_t i = 0; i < seen.size(); ++i) REQUIRE(seen[i] == std::int64_t(i) + 1);
  journal.wait_for(journal.append(1, ht::record::TrialPaused{3}));
  CHECK(journal.committed() == 5001);
  CHECK(error_of([&] { journal.wait_for(6000); }).code() == ht::Errc::usage);
}

TEST_CASE("threads append without gaps, and a full queue makes them wait") {
  const TemporaryFolder folder;
  {
    auto journal = ht::Journal::open(folder, {.sync = ht::Sync::normal, .max_waiting = 8});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&journal, t] {
        for (int i = 0; i < 500; ++i) journal.append(0, report(t, i));
      });
    for (auto& thread : threads) thread.join();
  }
  const auto records = read_all(folder);
  REQUIRE(records.size() == 2000);
  std::vector<int> next(4);
  for (const auto& record : records) {
    const auto& r = std::get<ht::record::TrialReported>(record.what);
    REQUIRE(r.step == next[std::size_t(r.trial)]++);
  }
}

TEST_CASE("a committed batch may lead to further records") {
  const TemporaryFolder folder;
  {
    auto journal = ht::Journal::open(folder, {.max_waiting = 1});
    journal.on_committed([&](std::span<const ht::Record> batch) {
      for (const auto& record : batch)
        if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what))
          for (int i = 0; i < 3; ++i) journal.append(0, ht::record::TrialPaused{r->trial});
    });
    journal.append(0, report(1, 0));
    journal.append(0, report(2, 0));
    journal.drain();
  }
  CHECK(read_all(folder).size() == 8);
}

TEST_CASE("a second driver is refused by name, a reader is not") {
  const TemporaryFolder folder;
  CHECK_FALSE(ht::driver_of(folder));
  {
    auto journal = ht::Journal::open(folder);
    const ht::Error error = error_of([&] { ht::Journal::open(folder); });
    CHECK(error.code() == ht::Errc::busy);
    CHECK_THAT(error.what(), ContainsSubstring(std::to_string(::getpid())));
    CHECK_THAT(error.what(), ContainsSubstring(folder.path().string()));
    REQUIRE(ht::driver_of(folder));
    CHECK(ht::driver_of(folder)->pid == ::getpid());
    CHECK(read_all(folder).empty());
  }
  CHECK_FALSE(ht::driver_of(folder));
  CHECK_NOTHROW(ht::Journal::open(folder));
}

TEST_CASE("a follower reads on where it was") {
  const TemporaryFolder folder;
  auto journal = ht::Journal::open(folder);
  ht::JournalReader reader(folder);
  std::int64_t last = 0;
  int read = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 20'000; ++i) journal.append(0, report(round, i));
    journal.flush();
    last = reader.read([&](const ht::Record&) { ++read; }, last + 1);
    CHECK(read == (round + 1) * 20'000);
    CHECK(last == read);
  }
  int steps = 0;
  reader.history(3, [&](const ht::Record& r) { REQUIRE(std::get<ht::record::TrialReported>(r.what).step == steps++); });
  CHECK(steps == 20'000);
  CHECK(reader.read([](const ht::Record& r) { return r.sequence < 10; }) == 10);
}

TEST_CASE("readers see whole prefixes while the driver writes and folds its log in") {
  const TemporaryFolder folder;
  auto journal = ht::Journal::open(folder, {.sync = ht::Sync::normal, .max_waiting = 256, .checkpoint_pages = 16});
  std::atomic<bool> done = false;
  std::atomic<int> errors = 0;
  std::atomic<int> rounds = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&] {
      do {
        try {
          std::int64_t last = 0;
          const std::int64_t acknowledged = journal.committed();
          ht::read_journal(folder, [&](const ht::Record& record) { errors += record.sequence != ++last ? 1 : 0; });
          errors += last < acknowledged ? 1 : 0;
        } catch (const ht::Error&) { ++errors; }
        ++rounds;
      } while (!done);
    });
  while (rounds < 20 || journal.last() < 20'000) journal.append(0, report(0, int(journal.last())));
  done = true;
  for (auto& reader : readers) reader.join();
  CHECK(errors == 0);
}

TEST_CASE("the log does not grow without end") {
  const TemporaryFolder folder;
  auto journal = ht::Journal::open(folder, {.sync = ht::Sync::normal, .checkpoint_pages = 64});
  std::uintmax_t most = 0;
  for (int i = 0; i < 120; ++i) {
    for (int k = 0; k < 200; ++k) journal.append(0, report(i, k, 0.1 * k));
    journal.flush();
    if (i % 40 == 0) CHECK(read_all(folder).size() >= std::size_t(i) * 200);
    most = std::max(most, std::filesystem::file_size(folder.path() / "experiment.db-wal"));
  }
  CHECK(most < 1u << 20);
  CHECK(std::filesystem::file_size(folder.path() / "experiment.db") > 256u << 10);
}

TEST_CASE("a simulated crash keeps exactly the records before it") {
  const TemporaryFolder folder;
  {
    auto journal = ht::Journal::open(folder, {.crash_after = 42});
    std::int64_t seen = 0;
    journal.on_committed([&](auto batch) { seen = batch.back().sequence; });
    try {
      for (int i = 0; i < 1000; ++i) journal.append(0, report(0, i));
      journal.flush();
      FAIL("the journal did not crash");
    } catch (const ht::Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring("crashed on purpose after record 42"));
    }
    CHECK(journal.failed());
    CHECK(seen == 42);
  }
  CHECK(read_all(folder).size() == 42);
  auto journal = ht::Journal::open(folder, {.create = false});
  CHECK(journal.append(0, report(0, 0)) == 43);
}

TEST_CASE("files that are no journal are refused and left as they are") {
  const TemporaryFolder folder;
  const auto path = ht::journal_path(folder);
  const auto both = [&](ht::Errc code, const std::string& text) {
    const std::string before = content(path);
    for (const ht::Error& error : {error_of([&] { read_all(folder); }), error_of([&] { ht::Journal::open(folder); })}) {
      CHECK(error.code() == code);
      CHECK_THAT(error.what(), ContainsSubstring(text));
      CHECK_THAT(error.what(), ContainsSubstring(path.string()));
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    }
    CHECK(content(path) == before);
  };

  SECTION("text") {
    std::ofstream(path) << std::string(5000, 'x');
    both(ht::Errc::corrupt, "no readable hypertune journal");
  }
  SECTION("another program's database") {
    ht::detail::Database(path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).execute("CREATE TABLE cats(name)");
    both(ht::Errc::corrupt, "no hypertune journal");
  }
  SECTION("a newer version") {
    { ht::Journal::open(folder); }
    ht::detail::Database(path, path, SQLITE_OPEN_READWRITE).execute("PRAGMA user_version=99");
    both(ht::Errc::input, "update hypertune");
  }
  SECTION("cut off") {
    {
      auto journal = ht::Journal::open(folder);
      for (int i = 0; i < 10'000; ++i) journal.append(0, report(0, i));
    }
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    both(ht::Errc::corrupt, "no readable hypertune journal");
  }
}

TEST_CASE("what is missing is said") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { read_all(folder); }).code() == ht::Errc::input);
  CHECK(error_of([&] { ht::Journal::open(folder, {.create = false}); }).code() == ht::Errc::input);
  std::ofstream(folder.path() / "file") << "x";
  CHECK(error_of([&] { ht::Journal::open(folder.path() / "file"); }).code() == ht::Errc::io);
  {
    auto journal = ht::Journal::open(folder);
    for (int i = 0; i < 9; ++i) journal.append(0, report(0, i));
  }
  const std::string path = ht::journal_path(folder);
  ht::detail::Database(path, path, SQLITE_OPEN_READWRITE).execute("DELETE FROM records WHERE sequence = 5");
  CHECK_THAT(error_of([&] { read_all(folder); }).what(), ContainsSubstring("lacks record 5 of 9"));
}

TEST_CASE("a journal is of the oldest version that can tell what is in it, also one that an older program began") {
  const TemporaryFolder folder;
  const auto path = (std::filesystem::path(folder) / "experiment.db").string();
  const auto version = [&] {
    ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
    return ht::detail::query_integer(db, "PRAGMA user_version");
  };
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, ht::record::TrialCreated{0, {0.5}, {{"lr", 0.5}}, false});
    journal.append(2, ht::record::TrialPaused{0});
  }
  CHECK(version() == 1);
  {  // the views of then
    ht::detail::Database db(path, path, SQLITE_OPEN_READWRITE);
    db.execute("DROP VIEW trials; CREATE VIEW trials AS SELECT 1 AS old");
  }
  const ht::record::TrialExploited mutated{0, 3, {3, 4, "step-4", 10, "d"}, {0.7}, {{"lr", 0.7}}};
  {
    auto journal = ht::Journal::open(folder);
    journal.append(3, ht::record::HostGained{"a"});
    journal.flush();
    CHECK(version() == 1);
    journal.append(4, mutated);
  }
  CHECK(version() == 2);
  const auto records = read_all(folder);
  REQUIRE(records.size() == 4);
  CHECK(support::same(records.back().what, mutated));
  ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
  CHECK(ht::detail::query_integer(db, "SELECT count(*) FROM trials WHERE params LIKE '%0.7%' AND state = 'paused'") ==
        1);
  CHECK(ht::detail::query_integer(db, "SELECT count(*) FROM events WHERE event = 'trial mutated'") == 1);
}

TEST_CASE("attributes make a journal of version 3, with a view of their last values") {
  const TemporaryFolder folder;
  const auto path = (std::filesystem::path(folder) / "experiment.db").string();
  const auto number = [&](const char* sql) {
    ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
    return ht::detail::query_integer(db, sql);
  };
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, ht::record::TrialCreated{0, {0.5}, {{"lr", 0.5}}, false});
    journal.append(2, ht::record::TrialExploited{0, 3, {3, 4, "step-4", 10, "d"}, {0.7}, {{"lr", 0.7}}});
    journal.flush();
    CHECK(number("PRAGMA user_version") == 2);
    journal.append(3, ht::record::AttributesSet{0, {{"phase", "warm-up"}, {"keep", true}}});
    journal.append(4, ht::record::AttributesSet{-1, {{"dataset", "v3"}}});
    journal.append(5, ht::record::AttributesSet{0, {{"phase", "decay"}}});
  }
  CHECK(number("PRAGMA user_version") == 3);
  CHECK(number("SELECT count(*) FROM attributes") == 3);
  CHECK(number("SELECT count(*) FROM attributes WHERE trial = 0 AND name = 'phase' AND value = 'decay'") == 1);
  CHECK(number("SELECT count(*) FROM attributes WHERE trial IS NULL AND value = 'v3'") == 1);
  CHECK(number("SELECT count(*) FROM events WHERE event = 'attributes'") == 3);
  const auto records = read_all(folder);
  REQUIRE(records.size() == 5);
  CHECK(std::get<ht::record::AttributesSet>(records[3].what).trial == -1);
}

TEST_CASE("other numbers of workers that are asked for make a journal of version 5") {
  const TemporaryFolder folder;
  const auto path = (std::filesystem::path(folder) / "experiment.db").string();
  const auto number = [&](const char* sql) {
    ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
    return ht::detail::query_integer(db, sql);
  };
  const ht::record::WorkersRequested by_user{3, 4, true}, by_trial{3, 0, false};
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, by_user);
    journal.append(2, by_trial);
  }
  CHECK(number("PRAGMA user_version") == 5);
  CHECK(number("SELECT count(*) FROM events WHERE event = 'workers asked' AND trial = 3 AND text = '4, by the user'") ==
        1);
  CHECK(number("SELECT count(*) FROM events WHERE text = 'any number, by the trial'") == 1);
  const auto records = read_all(folder);
  REQUIRE(records.size() == 2);
  CHECK(support::same(records[0].what, by_user));
  CHECK(support::same(records[1].what, by_trial));
}

TEST_CASE("trials of several workers make a journal of version 4; those of one are written as before there were any") {
  const TemporaryFolder folder;
  const auto path = (std::filesystem::path(folder) / "experiment.db").string();
  const auto number = [&](const char* sql) {
    ht::detail::Database db(path, path, SQLITE_OPEN_READONLY);
    return ht::detail::query_integer(db, sql);
  };
  ht::record::TrialStarted one{0, 0, 0, "a", {0}, {}};
  ht::record::TrialStarted gang = one;
  gang.trial = 1;
  gang.others = {{"b", {1}, {}}, {"c", {}, {0}}};
  const ht::record::TrialResized resized{1, 0, 1, {{"a", {0}, {}}, {"d", {}, {}}}, "a worker was lost"};
  {
    auto journal = ht::Journal::open(folder);
    journal.append(1, one);
    journal.flush();
    CHECK(number("PRAGMA user_version") == 1);
    // What programs of version 1 read, to the byte: the host by its length, and two lists by theirs.
    CHECK(number("SELECT payload = x'0161010000' FROM records") == 1);
    journal.append(2, gang);
    journal.append(3, resized);
  }
  CHECK(number("PRAGMA user_version") == 4);
  CHECK(number("SELECT count(*) FROM events WHERE event = 'trial resized' AND text = '2 workers: a worker was lost'") ==
        1);
  const auto records = read_all(folder);
  REQUIRE(records.size() == 3);
  CHECK(support::same(records[0].what, one));
  CHECK(support::same(records[1].what, gang));
  CHECK(support::same(records[2].what, resized));
}
