// What the Journal promises when the process dies or the disk fails.
#include "faulty_disk.hpp"
#include "record_support.hpp"
#include "support/test.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>

namespace ht = hypertune;
using support::TemporaryFolder;

namespace {

// What record `sequence` holds is a function of its number, so that a reader can check every one.
ht::record::Any event_of(std::int64_t sequence) {
  if (sequence % 7 == 0) return ht::record::TrialPaused{sequence};
  ht::Metrics metrics{{"loss", double(sequence) / 3}};
  if (sequence % 5 == 0) metrics.emplace_back("metric " + std::to_string(sequence % 50), double(sequence));
  return ht::record::TrialReported{sequence, 1, int(sequence % 1000), std::move(metrics)};
}

/// Appends until it is killed; tells through `pipe` what was acknowledged.
[[noreturn]] void drive(const std::filesystem::path& folder, int pipe, unsigned seed) {
  const auto tell = [pipe](std::int64_t sequence) {
    if (::write(pipe, &sequence, sizeof sequence) != sizeof sequence) ::_exit(3);
  };
  try {
    auto journal = ht::Journal::open(folder, {.max_waiting = 2048, .checkpoint_pages = 32});
    journal.on_committed([&](std::span<const ht::Record> batch) { tell(batch.back().sequence); });
    std::minstd_rand random(seed);
    for (;;) {
      for (auto n = random() % 400; n > 0; --n) journal.append(0, event_of(journal.last() + 1));
      if (random() % 2 == 0) journal.flush();
    }
  } catch (const std::exception&) { ::_exit(4); }
}

}  // namespace

TEST_CASE("a driver killed at any moment leaves a gap-free record of all it acknowledged") {
  const TemporaryFolder folder;
  std::mt19937 random(11);
  std::int64_t acknowledged = 0;
  for (int round = 0; round < 40; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(ends[0]);
      drive(folder, ends[1], unsigned(round) + 1);
    }
    ::close(ends[1]);
    // Let it live for a random number of acknowledgements, at times for none (it dies while it opens the file).
    std::int64_t sequence = 0;
    for (auto left = random() % 12; left > 0; --left) {
      pollfd wait{ends[0], POLLIN, 0};
      REQUIRE(::poll(&wait, 1, 20'000) == 1);
      REQUIRE(::read(ends[0], &sequence, sizeof sequence) == sizeof sequence);
      acknowledged = sequence;
    }
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    while (::read(ends[0], &sequence, sizeof sequence) == sizeof sequence) acknowledged = sequence;
    ::close(ends[0]);

    CHECK_FALSE(ht::driver_of(folder));
    if (!ht::has_journal(folder) && acknowledged == 0) continue;
    std::int64_t count = 0;
    int wrong = 0;
    try {
      ht::read_journal(folder, [&](const ht::Record& record) {
        wrong += record.sequence != ++count || !support::same(record.what, event_of(count)) ? 1 : 0;
      });
    } catch (const ht::Error& error) {  // killed before the tables were there
      INFO(error.what());
      REQUIRE(acknowledged == 0);
      REQUIRE(error.code() == ht::Errc::input);
    }
    CHECK(wrong == 0);
    CHECK(count >= acknowledged);
  }
  CHECK(acknowledged > 0);
}

TEST_CASE("a full disk: one clear error, nothing committed is lost, and it goes on after room is made") {
  for (const std::int64_t room : {20'000, 60'000, 150'000, 400'000, 1'000'000}) {
    const TemporaryFolder folder;
    std::int64_t announced = 0;
    {
      auto journal = ht::Journal::open(folder, {.checkpoint_pages = 32});
      journal.append(0, event_of(1));
      journal.flush();
    }
    {
      const support::FaultyDisk disk(room);
      std::atomic<int> errors = 0;
      {
        auto journal = ht::Journal::open(folder, {.checkpoint_pages = 32});
        journal.on_committed([&](auto batch) { announced = batch.back().sequence; });
        journal.on_error([&](const ht::Error& error) {
          if (error.code() == ht::Errc::io) ++errors;
        });
        std::string text;
        try {
          for (int i = 0; i < 100'000; ++i) {
            journal.append(0, event_of(journal.last() + 1));
            if (i % 100 == 0) journal.flush();
          }
        } catch (const ht::Error& error) {
          CHECK(error.code() == ht::Errc::io);
          text = error.what();
        }
        CHECK_THAT(text, ContainsSubstring("disk full") && ContainsSubstring("--resume") &&
                             ContainsSubstring(folder.path().string()));
        CHECK(journal.failed());
        CHECK(journal.committed() == announced);
        CHECK_THROWS_AS(journal.append(0, event_of(1)), ht::Error);
        CHECK_THROWS_AS(journal.flush(), ht::Error);
        CHECK_NOTHROW(journal.wait_for(announced));
      }
      CHECK(errors == 1);
      CHECK(support::FaultyDisk::faults() > 0);
    }
    std::int64_t count = 0;
    ht::read_journal(folder, [&](const ht::Record& record) {
      REQUIRE(record.sequence == ++count);
      REQUIRE(support::same(record.what, event_of(count)));
    });
    CHECK(count == std::max<std::int64_t>(announced, 1));
    auto journal = ht::Journal::open(folder);
    CHECK(journal.append(0, event_of(count + 1)) == count + 1);
    CHECK_NOTHROW(journal.flush());
  }
}

TEST_CASE("a sync that fails is a failure, not an acknowledgement") {
  const TemporaryFolder folder;
  { ht::Journal::open(folder); }
  for (const int syncs : {0, 3, 10}) {
    const support::FaultyDisk disk(support::FaultyDisk::never, syncs);
    std::int64_t before = 0;
    std::int64_t announced = 0;
    {
      auto journal = ht::Journal::open(folder);
      before = announced = journal.last();
      journal.on_committed([&](auto batch) { announced = batch.back().sequence; });
      std::string text;
      try {
        for (int i = 0; i < 100; ++i) journal.wait_for(journal.append(0, event_of(journal.last() + 1)));
      } catch (const ht::Error& error) { text = error.what(); }
      CHECK_THAT(text, ContainsSubstring("cannot write") && ContainsSubstring("I/O error"));
    }
    CHECK(announced <= before + syncs);
    CHECK(ht::JournalReader(folder).last() >= announced);
  }
}

TEST_CASE("a new journal waits for the disk with its first record, and then for all that this record needs") {
  const TemporaryFolder folder;
  const support::FaultyDisk disk(support::FaultyDisk::never);
  const auto name = ht::journal_path(folder).filename().string();
  {
    auto journal = ht::Journal::open(folder);
    CHECK(disk.synced().empty());
    journal.append(0, event_of(1));
    journal.flush();
    const auto synced = disk.synced();
    REQUIRE(synced.size() >= 2);
    CHECK(synced.front() == name);  // without its first page SQLite would remove the log
    CHECK(synced.back() == name + "-wal");
    journal.append(0, event_of(2));
    journal.flush();
    CHECK(disk.synced().size() == synced.size() + 1);
    CHECK(disk.synced().back() == name + "-wal");
  }
  auto again = ht::Journal::open(folder);
  CHECK(again.last() == 2);
}

TEST_CASE("the first sync of a new journal that fails is a failure, not an acknowledgement") {
  const TemporaryFolder folder;
  {
    const support::FaultyDisk disk(support::FaultyDisk::never, 0);
    auto journal = ht::Journal::open(folder);
    journal.append(0, event_of(1));
    CHECK_THROWS_WITH(journal.flush(), ContainsSubstring("cannot write"));
    CHECK(disk.faults() > 0);
  }
  CHECK(ht::Journal::open(folder).last() == 0);
}

TEST_CASE("a function that throws, or waits for the appender, is an error and no hang") {
  const TemporaryFolder folder;
  SECTION("throws") {
    auto journal = ht::Journal::open(folder);
    journal.on_committed([](auto) { throw std::runtime_error("a bug"); });
    journal.append(0, event_of(1));
    try {
      journal.drain();
      FAIL("no error");
    } catch (const ht::Error& error) { CHECK_THAT(error.what(), ContainsSubstring("a bug")); }
  }
  SECTION("waits for its own commit") {
    auto journal = ht::Journal::open(folder);
    journal.on_committed([&](auto) { journal.flush(); });
    journal.append(0, event_of(1));
    CHECK_NOTHROW(journal.flush());
    journal.on_committed([&](auto) { journal.wait_for(journal.append(0, event_of(2))); });
    journal.append(0, event_of(1));
    try {
      journal.drain();
      FAIL("no error");
    } catch (const ht::Error& error) { CHECK_THAT(error.what(), ContainsSubstring("own thread")); }
  }
  SECTION("never comes back") {
    std::mutex strand;
    auto journal = ht::Journal::open(folder, {.max_waiting = 4, .stall_timeout = std::chrono::milliseconds(100)});
    journal.on_committed([&](auto) { const std::lock_guard guard(strand); });
    const std::lock_guard guard(strand);
    try {
      for (int i = 0; i < 1000; ++i) journal.append(0, event_of(1));
      FAIL("no error");
    } catch (const ht::Error& error) { CHECK_THAT(error.what(), ContainsSubstring("on_committed")); }
  }
}

TEST_CASE("bytes that were changed are noticed, never believed") {
  const TemporaryFolder folder;
  support::RandomRecords random(5);
  {
    auto journal = ht::Journal::open(folder);
    for (int i = 0; i < 300; ++i) journal.append(0, random.next());
  }
  const auto path = ht::journal_path(folder);
  std::ifstream in(path, std::ios::binary);
  const std::string original{std::istreambuf_iterator<char>(in), {}};
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = original;
    for (auto n = random.integer(1, 40); n > 0; --n)
      damaged[std::size_t(random.integer(0, std::int64_t(damaged.size()) - 1))] = char(random.integer(0, 255));
    if (round % 4 == 0) damaged.resize(std::size_t(random.integer(1, std::int64_t(damaged.size()))));
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      std::int64_t count = 0;
      ht::read_journal(folder, [&](const ht::Record& record) { REQUIRE(record.sequence == ++count); });
    } catch (const ht::Error& error) {
      ++errors;
      CHECK((error.code() == ht::Errc::corrupt || error.code() == ht::Errc::input || error.code() == ht::Errc::io));
    }
  }
  CHECK(errors > 100);
}

TEST_CASE("a forked process does not hold its driver's lock") {
  const TemporaryFolder folder;
  std::optional<ht::detail::DriverLock> lock(std::in_place, folder.path());
  REQUIRE(ht::driver_of(folder.path()));
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  const pid_t child = ::fork();  // a worker, say, that outlives its driver for a moment
  if (child == 0) {
    static_cast<void>(!::write(pipe[1], "x", 1));
    for (;;) ::pause();
  }
  char ready = 0;
  CHECK(::read(pipe[0], &ready, 1) == 1);
  lock.reset();
  CHECK_FALSE(ht::driver_of(folder.path()));
  CHECK_NOTHROW(ht::detail::DriverLock(folder.path()));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a driver killed within its very first transaction has recorded nothing, and the next one begins") {
  const TemporaryFolder begun, folder;
  {
    // What SQLite leaves of a transaction that is too large for its memory: half of it in the file, and how to undo it.
    ht::detail::Database db(ht::journal_path(begun).string(), "test", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    db.execute("PRAGMA cache_size=2; BEGIN");
    db.execute(ht::detail::journal_schema);
    for (int i = 0; i < 100; ++i) db.execute("INSERT INTO names VALUES(NULL, hex(zeroblob(500)))");
    std::filesystem::copy(begun, folder, std::filesystem::copy_options::recursive);
  }
  REQUIRE(std::filesystem::exists(ht::journal_path(folder).string() + "-journal"));
  try {
    ht::JournalReader reader(folder);
    FAIL("no error");
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::input);
    CHECK_THAT(error.what(), ContainsSubstring("nothing is recorded in '") && ContainsSubstring("run it (again)"));
  }
  {
    auto journal = ht::Journal::open(folder);
    CHECK(journal.last() == 0);
    journal.append(0, event_of(1));
    journal.drain();
  }
  CHECK(ht::JournalReader(folder).last() == 1);
}

namespace {

/// What the Journal fails with though nobody writes to it.
std::string failure_of(ht::Journal& journal, const std::function<void()>& deed) {
  std::promise<std::string> failed;
  auto said = failed.get_future();
  journal.on_error([&](const ht::Error& error) {
    CHECK(error.code() == ht::Errc::io);
    failed.set_value(error.what());
  });
  deed();
  REQUIRE(said.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
  std::string text = said.get();
  CHECK(journal.failed());
  CHECK_THROWS_WITH(journal.append(0, event_of(1)), ContainsSubstring(text));
  CHECK_THROWS_WITH(journal.require_sound(), ContainsSubstring(text));
  return text;
}
ht::Journal begun(const std::filesystem::path& folder, int records) {
  auto journal = ht::Journal::open(folder, {.presence_check_interval = std::chrono::milliseconds(20)});
  for (int i = 1; i <= records; ++i) journal.append(0, event_of(i));
  journal.flush();
  return journal;
}
std::int64_t records_in(const std::filesystem::path& folder) {
  std::int64_t count = 0;
  int wrong = 0;
  ht::read_journal(folder, [&](const ht::Record& record) {
    wrong += record.sequence != ++count || !support::same(record.what, event_of(count)) ? 1 : 0;
  });
  CHECK(wrong == 0);
  return count;
}

}  // namespace

TEST_CASE("a folder that is moved while its driver lives: said at once, still locked, and nothing is lost") {
  const TemporaryFolder root;
  const std::filesystem::path folder = root.path() / "run", moved = root.path() / "moved";
  {
    auto journal = begun(folder, 100);
    const auto text = failure_of(journal, [&] { std::filesystem::rename(folder, moved); });
    CHECK_THAT(text, ContainsSubstring("was moved to '" + moved.string() + "'") &&
                         ContainsSubstring("--resume --output " + moved.string()));
    CHECK_THROWS_WITH(ht::Journal::open(moved),
                      ContainsSubstring("another driver (process " + std::to_string(::getpid())));
    CHECK_FALSE(std::filesystem::exists(folder));
    auto other = ht::Journal::open(folder);  // another experiment, in the old place
    other.append(0, event_of(1));
    other.flush();
    CHECK(records_in(folder) == 1);
  }
  CHECK(records_in(moved) == 100);
  auto again = ht::Journal::open(moved);
  CHECK(again.last() == 100);
}

TEST_CASE("a commit after the folder has gone is not taken for durable") {
  const TemporaryFolder root;
  const std::filesystem::path folder = root.path() / "run";
  int announced = 0;
  auto journal = ht::Journal::open(folder, {.presence_check_interval = std::chrono::hours(1)});
  journal.on_committed([&](auto batch) { announced += static_cast<int>(batch.size()); });
  journal.append(0, event_of(1));
  journal.drain();
  std::filesystem::rename(folder, root.path() / "moved");
  journal.append(0, event_of(2));
  CHECK_THROWS_WITH(journal.flush(), ContainsSubstring("was moved"));
  CHECK(announced == 1);
}

TEST_CASE("whoever asks learns at once that the folder has gone") {
  const TemporaryFolder root;
  const std::filesystem::path folder = root.path() / "run";
  auto journal = ht::Journal::open(folder, {.presence_check_interval = std::chrono::hours(1)});
  for (int i = 0; i < 3; ++i) journal.require_in_place();
  journal.append(0, event_of(1));
  journal.require_in_place();
  std::filesystem::rename(folder, root.path() / "moved");
  CHECK_THROWS_WITH(journal.require_in_place(), ContainsSubstring("was moved"));
  CHECK_THROWS_WITH(journal.require_in_place(), ContainsSubstring("was moved"));
}

TEST_CASE("a journal that is removed while its driver lives is written anew where it can be") {
  const TemporaryFolder root;
  const std::filesystem::path folder = root.path() / "run";
  const auto path = ht::journal_path(folder);
  const auto remove_database = [&] {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + end);
  };
  SECTION("the database alone, or with its log") {
    for (const bool log : {false, true}) {
      std::filesystem::remove_all(folder);
      {
        auto journal = begun(folder, 100);
        const auto text = failure_of(journal, [&] { log ? remove_database() : void(std::filesystem::remove(path)); });
        CHECK_THAT(text, ContainsSubstring("journal '" + path.string() + "' was removed") &&
                             ContainsSubstring("written to '" + path.string() + "' anew; go on with --resume"));
        CHECK_THROWS_WITH(ht::Journal::open(folder), ContainsSubstring("another driver"));
      }
      CHECK(records_in(folder) == 100);
      CHECK(ht::Journal::open(folder).last() == 100);
    }
  }
  SECTION("its log alone") {
    {
      auto journal = begun(folder, 100);
      failure_of(journal, [&] { std::filesystem::remove(path.string() + "-wal"); });
    }
    CHECK(records_in(folder) == 100);
  }
  SECTION("the whole folder") {
    {
      auto journal = begun(folder, 100);
      const auto text = failure_of(journal, [&] { std::filesystem::remove_all(folder); });
      CHECK_THAT(text, ContainsSubstring("folder '" + folder.string() + "' was removed"));
    }
    CHECK(records_in(folder) == 100);
  }
  SECTION("the whole folder, by one who is not done with it when that is noticed") {
    {
      auto journal = begun(folder, 100);
      failure_of(journal, [&] { std::filesystem::remove(path.string() + "-wal"); });
      std::filesystem::remove_all(folder);
    }
    CHECK(records_in(folder) == 100);
  }
  SECTION("the folder, and another experiment is in its place by now") {
    {
      auto journal = ht::Journal::open(folder, {.presence_check_interval = std::chrono::hours(1)});
      for (int i = 1; i <= 100; ++i) journal.append(0, event_of(i));
      journal.flush();
      std::optional<ht::Journal> other;
      const auto text = failure_of(journal, [&] {
        std::filesystem::rename(folder, root.path() / "away");
        other.emplace(begun(folder, 7));
        std::filesystem::remove_all(root.path() / "away");
        journal.append(0, event_of(101));
      });
      CHECK_THAT(text, ContainsSubstring("--resume --output " + folder.string() + "-recovered"));
      other->append(0, event_of(8));
      other->flush();
    }
    CHECK(records_in(folder) == 8);
    CHECK(records_in(folder.string() + "-recovered") == 101);
  }
}

TEST_CASE("a driver whose lock file was removed still runs, and says so again") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "driver.lock";
  {
    auto journal = ht::Journal::open(folder);
    journal.append(0, ht::record::ExperimentStarted{});
    journal.flush();
    std::filesystem::remove(file);
    const auto driver = ht::driver_of(folder);
    REQUIRE(driver.has_value());
    CHECK(driver->pid == ::getpid());
    CHECK(std::filesystem::exists(file));
    CHECK_THROWS_WITH(ht::Journal::open(folder),
                      ContainsSubstring(fmt::format("is being run by another driver (process {}", ::getpid())));
    std::filesystem::remove(file);
    journal.append(1, ht::record::HostGained{"a"});  // with a commit at once
    journal.flush();
    CHECK(std::filesystem::exists(file));
    journal.note_exit_reason("the disk is full");
  }
  CHECK_FALSE(ht::driver_of(folder).has_value());
  CHECK(ht::exit_reason_of(folder) == "the disk is full");
}

TEST_CASE("a driver whose lock file cannot be made anew is seen all the same") {
  const TemporaryFolder folder;
  auto lock = std::make_optional<ht::detail::DriverLock>(folder);  // nobody looks after the file
  std::filesystem::remove(folder.path() / "driver.lock");
  const auto driver = ht::driver_of(folder);
  REQUIRE(driver.has_value());
  CHECK(driver->pid == 0);
  lock.reset();
  CHECK_FALSE(ht::driver_of(folder).has_value());
}

TEST_CASE("the lock is the folder's, whatever is removed in it") {
  const TemporaryFolder folder;
  auto journal = ht::Journal::open(folder);
  std::filesystem::remove(folder.path() / "driver.lock");
  CHECK_THROWS_WITH(ht::Journal::open(folder), ContainsSubstring("is being run by another driver: wait"));
}
