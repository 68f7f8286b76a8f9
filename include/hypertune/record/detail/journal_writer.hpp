// The SQLite part of the Journal: writes records as rows, one transaction per batch.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/journal_codec.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/record/detail/sqlite.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/record/record.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

/// Appends batches to the table. Used by one thread at a time.
class JournalWriter {
 public:
  /// Opens or creates the file. A file that is not a journal is left untouched.
  JournalWriter(const std::filesystem::path& directory, bool full_sync, int checkpoint_pages)
      : wal_path_(std::filesystem::absolute(journal_path(directory)).string() + "-wal"),
        db_(open(directory)),
        checkpoint_pages_(checkpoint_pages),
        unsynced_(query_integer(db_, "PRAGMA page_count") == 0) {
    // Until there is a record, nothing can be lost: a driver begins without waiting for the disk. See sync_database().
    if (unsynced_) db_.execute("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY");
    Statement mode(db_, "PRAGMA journal_mode=WAL", "write");
    if (!mode.step() || mode.bytes(0) != "wal")
      fail(Errc::io, "cannot keep a journal in '{}': its file system does not support SQLite's WAL (use a local disk)",
           directory.string());
    mode.reset();
    db_.execute("PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY");
    if (!check_journal(db_)) create();
    // FULL syncs the log at every commit, so that acknowledged records survive a power cut.
    db_.execute(full_sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    sqlite3_wal_hook(
        db_.get(),
        [](void* self, sqlite3*, const char*, int pages) {
          static_cast<JournalWriter*>(self)->wal_pages_ = pages;
          return SQLITE_OK;
        },
        this);
    version_ = query_integer(db_, "PRAGMA user_version");
    last_ = query_integer(db_, "SELECT max(sequence) FROM records");
    Statement same(db_, "SELECT count(*) = 4 FROM sqlite_schema WHERE type = 'view' AND instr(?1, sql) > 0", "read");
    same.bind_text(1, journal_views);
    views_are_ours_ = same.step() && same.integer(0) != 0;
    Statement names(db_, "SELECT id, name FROM names", "read");
    while (names.step()) names_.emplace(std::string(names.bytes(1)), names.integer(0));
  }
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  std::int64_t last() const { return last_; }  ///< sequence of the last committed record; 0: none

  /// Writes `records` in one transaction: all of them, or none and an Error.
  void commit(std::span<const Record> records) {
    if (records.empty()) return;
    if (unsynced_) sync_database();
    Statements& s = statements();
    try {
      s.begin.run();
      upgrade(records);
      for (const Record& record : records) insert(s, record);
      s.commit.run();
      version_ = std::max(version_, std::exchange(upgraded_, 0));
      views_are_ours_ = true;
    } catch (...) {
      upgraded_ = 0;
      s.report.reset();
      s.event.reset();
      s.name.reset();
      s.commit.reset();
      if (sqlite3_get_autocommit(db_.get()) == 0) sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
    last_ = records.back().sequence;
  }

  /// Copies the log into the database when it has grown, so that it is reused from its start. A failure does no harm:
  /// the rows are safe in the log, and it is tried again when the log has grown further.
  void tidy() {
    if (wal_pages_ < tidied_pages_) tidied_pages_ = 0;  // the log has started again
    if (wal_pages_ < tidied_pages_ + checkpoint_pages_) return;
    tidied_pages_ = wal_pages_;
    // A reader in the middle of a piece keeps the log from starting again, but not for long. If the log still grows,
    // wait a moment for a gap between readers.
    const bool much = wal_pages_ >= 8 * checkpoint_pages_;
    sqlite3_busy_timeout(db_.get(), 200);
    sqlite3_wal_checkpoint_v2(db_.get(), nullptr, much ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE, nullptr,
                              nullptr);
    sqlite3_busy_timeout(db_.get(), busy_timeout_ms);
  }

  /// Whether the files are where they were opened. SQLite itself would go on writing to moved or removed files.
  bool in_place() const {
    std::error_code none;
    return in_database() && (!statements_ || std::filesystem::exists(wal_path_, none) || none);
  }
  /// The same for the database alone, without its log.
  bool in_database() const {
    int moved = 0;
    sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved == 0;
  }
  /// From now on nothing is done by the files' names, because other files may be there.
  void disown() { sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }
  /// Writes everything that was committed to a new file at `path`, which appears only when it is complete.
  void copy_to(const std::filesystem::path& path) {
    const auto aside = path.string() + ".new";
    std::error_code none;
    for (const auto& file : {aside, path.string() + "-wal", path.string() + "-shm"})
      std::filesystem::remove(file, none);
    {
      Database copy(aside, aside, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
      sqlite3_backup* backup = sqlite3_backup_init(copy.get(), "main", db_.get(), "main");
      if (backup == nullptr) copy.raise("write");
      sqlite3_backup_step(backup, -1);
      if (sqlite3_backup_finish(backup) != SQLITE_OK) copy.raise("write");
    }
    std::filesystem::rename(aside, path);
  }

 private:
  struct Statements {
    explicit Statements(Database& db)
        : begin(db, "BEGIN IMMEDIATE", "write"),
          commit(db, "COMMIT", "write"),
          report(db,
                 "INSERT INTO records(sequence, time, kind, trial, attempt, step, metric, value, payload, text) "
                 "VALUES(?1, ?2, 4, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                 "write"),
          event(db,
                "INSERT INTO records(sequence, time, kind, trial, attempt, step, text, payload, value) "
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                "write"),
          name(db, "INSERT INTO names(id, name) VALUES(?1, ?2)", "write") {}
    Statement begin, commit, report, event, name;
  };

  static Database open(const std::filesystem::path& directory) {
    const std::string path = journal_path(directory).string();
    if (std::filesystem::exists(path)) {
      // Open it read-only first: a file that is not a journal must not be changed.
      Database look(path, path, SQLITE_OPEN_READONLY);
      try {
        check_journal(look);
      } catch (const Error&) {
        if ((sqlite3_errcode(look.get()) & 0xFF) != SQLITE_READONLY) throw;
        // A driver was killed within the very first transaction. Rolling that back needs write access.
        Database mend(path, path, SQLITE_OPEN_READWRITE);
        check_journal(mend);
      }
    }
    return {path, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE};
  }

  // The first page, which says that there is a log, has to be on the disk before the first record in that log counts:
  // SQLite removes the log of an empty file. The log's file is synced with the first record.
  void sync_database() {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
    if (file == nullptr || file->pMethods == nullptr || file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK)
      fail(Errc::io, "cannot write '{}' to the disk: is it full?", db_.path());
    unsynced_ = false;
  }

  void create() {
    db_.execute("BEGIN IMMEDIATE");
    db_.execute(journal_schema);
    db_.execute(journal_views);
    db_.execute(detail::format("PRAGMA application_id={}; PRAGMA user_version={}", journal_application, first_version));
    db_.execute("COMMIT");
  }

  // Runs within the transaction that needs it, so that a file's version always fits its contents. Views of another
  // version may show less of the same records.
  void upgrade(std::span<const Record> records) {
    std::int64_t needed = version_;
    for (const Record& record : records) needed = std::max(needed, version_of(record.what));
    if (needed == version_ && views_are_ours_) return;
    db_.execute(
        "DROP VIEW IF EXISTS events; DROP VIEW IF EXISTS reports; DROP VIEW IF EXISTS attributes; "
        "DROP VIEW IF EXISTS trials");
    db_.execute(journal_views);
    db_.execute(detail::format("PRAGMA user_version={}", needed));
    upgraded_ = needed;
  }
  /// The oldest version that can represent the record.
  static std::int64_t version_of(const record::Any& what) {
    if (const auto* lost = std::get_if<record::HostLost>(&what); lost != nullptr && lost->for_good) return 3;
    if (std::holds_alternative<record::AttributesSet>(what)) return 3;
    if (std::holds_alternative<record::TrialResized>(what)) return 4;
    if (std::holds_alternative<record::WorkersRequested>(what)) return 5;
    if (const auto* started = std::get_if<record::TrialStarted>(&what)) return several_workers(*started) ? 4 : 1;
    return std::holds_alternative<record::TrialExploited>(what) ? 2 : first_version;
  }

  static bool several_workers(const record::TrialStarted& e) { return !e.others.empty() || e.generation > 0; }

  Statements& statements() {
    if (!statements_) statements_ = std::make_unique<Statements>(db_);
    return *statements_;
  }

  std::int64_t name_id(Statements& s, const std::string& name) {
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
    const auto id = static_cast<std::int64_t>(names_.size()) + 1;
    s.name.bind(1, id);
    if (is_text(name))
      s.name.bind_text(2, name);
    else
      s.name.bind_blob(2, name);
    s.name.run();
    names_.emplace(name, id);
    return id;
  }

  static bool is_text(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto character = decode_utf8(bytes);
      if (!character.valid || character.code == 0) return false;
      bytes.remove_prefix(character.bytes);
    }
    return true;
  }

  void insert(Statements& s, const Record& record) {
    if (const auto* report = std::get_if<record::TrialReported>(&record.what)) return insert(s, record, *report);
    row_ = {};
    payload_.clear();
    text_.clear();
    Encoder out(payload_);
    detail::visit([&](const auto& event) { encode(out, event); }, record.what);
    s.event.bind(1, record.sequence);
    s.event.bind(2, record.time);
    s.event.bind(3, static_cast<std::int64_t>(row_.kind));
    const auto bind_if = [&](int index, bool present, std::int64_t value) {
      present ? s.event.bind(index, value) : s.event.bind_null(index);
    };
    bind_if(4, row_.trial >= 0, row_.trial);
    bind_if(5, row_.attempt >= 0, row_.attempt);
    bind_if(6, row_.has_step, row_.step);
    if (text_.empty())
      s.event.bind_null(7);
    else
      s.event.bind_text(7, text_);
    if (payload_.empty())
      s.event.bind_null(8);
    else
      s.event.bind_blob(8, payload_);
    const auto* const failed = std::get_if<record::AttemptFailed>(&record.what);
    bind_if(9, failed != nullptr && failed->counts.has_value(), failed != nullptr && failed->counts.value_or(false));
    s.event.run();
  }

  void insert(Statements& s, const Record& record, const record::TrialReported& report) {
    const auto& metrics = report.metrics;
    s.report.bind(1, record.sequence);
    s.report.bind(2, record.time);
    s.report.bind(3, report.trial);
    s.report.bind(4, static_cast<std::int64_t>(report.attempt));
    s.report.bind(5, static_cast<std::int64_t>(report.step));
    s.report.bind_null(8);
    if (report.over)
      s.report.bind_text(9, report_of_ended);
    else
      s.report.bind_null(9);
    if (metrics.empty()) {
      s.report.bind_null(6);
      s.report.bind_null(7);
    } else {
      s.report.bind(6, name_id(s, metrics.front().first));
      s.report.bind(7, metrics.front().second);
    }
    if (metrics.size() > 1) {
      payload_.clear();
      char separator = '{';
      for (std::size_t i = 1; i < metrics.size(); ++i) {
        payload_ += separator;
        payload_ += '"';
        append_number(payload_, name_id(s, metrics[i].first));
        payload_ += "\":";
        append_json(payload_, metrics[i].second);
        separator = ',';
      }
      payload_ += '}';
      s.report.bind_text(8, payload_);
    }
    s.report.run();
  }

  void encode(Encoder& out, const record::ExperimentStarted& e) {
    row_.kind = Kind::experiment_started;
    show(e.name);
    out.put(std::string_view(e.name));
    out.put(std::uint64_t{e.objectives.size()});
    for (const Objective& objective : e.objectives) {
      out.put(std::string_view(objective.metric));
      out.put(objective.mode == Mode::maximize);
    }
    for (const std::string* text : {&e.space, &e.searcher, &e.scheduler, &e.executor}) out.put(std::string_view(*text));
    out.put_signed(e.samples);
    out.put(e.seed);
    out.put(e.resumed);
    const bool options = !e.searcher_options.empty() || !e.scheduler_options.empty();
    const bool command = !e.command.empty();
    if (e.constraints.empty() && !options && !command) return;  // the format from before these fields existed
    out.put(std::uint64_t{e.constraints.size()});
    for (const MetricBound& bound : e.constraints) {
      out.put(std::string_view(bound.metric));
      out.put(bound.side == Mode::maximize);
      out.put(bound.value);
    }
    if (!options && !command) return;
    out.put(std::string_view(e.searcher_options));
    out.put(std::string_view(e.scheduler_options));
    if (command) out.put(std::string_view(e.command));
  }
  void encode(Encoder& out, const record::TrialCreated& e) {
    row_ = {Kind::trial_created, e.trial};
    append_json_object(text_, e.params);
    out.put(e.known);
    out.put(e.point, e.params);
  }
  void encode(Encoder& out, const record::TrialStarted& e) {
    row_ = {Kind::trial_started, e.trial, e.attempt, true, e.next_step};
    show(e.host);
    out.put(std::string_view(e.host));
    out.put(e.cpus);
    out.put(e.gpus);
    if (!several_workers(e)) return;  // the format from before these fields existed
    out.put(std::uint64_t{e.generation});
    out.put(e.others);
  }
  void encode(Encoder& out, const record::TrialResized& e) {
    row_ = {Kind::trial_resized, e.trial, e.attempt};
    show(detail::format("{} worker{}: {}", e.workers.size(), e.workers.size() == 1 ? "" : "s", e.why));
    out.put(std::uint64_t{e.generation});
    out.put(e.workers);
    out.put(std::string_view(e.why));
    if (e.lost.empty()) return;
    out.put(std::uint64_t{e.lost.size()});
    for (const auto& host : e.lost) out.put(std::string_view(host));
  }
  void encode(Encoder& out, const record::WorkersRequested& e) {
    row_ = {Kind::workers_asked, e.trial};
    show(detail::format("{}, by {}", e.workers == 0 ? "any number" : std::to_string(e.workers),
                        e.by_user ? "the user" : "the trial"));
    out.put_signed(e.workers);
    out.put(e.by_user);
  }
  void encode(Encoder&, const record::TrialReported&) {}
  void encode(Encoder& out, const record::AttributesSet& e) {
    row_ = {Kind::attributes_set, e.trial};
    append_json_object(text_, e.attributes);
    out.put(e.attributes);
  }
  void encode(Encoder& out, const record::TrialCheckpointed& e) {
    row_ = {Kind::checkpointed, e.trial, -1, true, e.checkpoint.steps};
    show(e.checkpoint.name);
    out.put(e.checkpoint);
  }
  void encode(Encoder& out, const record::CheckpointDropped& e) {
    row_ = {Kind::checkpoint_dropped, e.trial, -1, true, e.checkpoint.steps};
    show(detail::format("{}: {}", e.checkpoint.name, e.why));
    out.put(e.checkpoint);
    out.put(std::string_view(e.why));
  }
  void encode(Encoder&, const record::TrialPaused& e) { row_ = {Kind::trial_paused, e.trial}; }
  void encode(Encoder& out, const record::TrialExploited& e) {
    row_ = {Kind::trial_exploited, e.trial, -1, true, e.checkpoint.steps};
    append_json_object(text_, e.params);
    out.put_signed(e.donor);
    out.put(e.checkpoint);
    out.put(e.point, e.params);
  }
  void encode(Encoder& out, const record::AttemptFailed& e) {
    row_ = {Kind::attempt_failed, e.trial, e.attempt};
    show(e.cause.text);
    out.put(e.cause);
    // Programs that do not know about doubted failures see a retry.
    out.put(std::uint64_t{e.doubted ? 2U : e.retry ? 1U : 0U});
    if (!e.host.empty()) out.put(std::string_view(e.host));
  }
  void encode(Encoder& out, const record::TrialEnded& e) {
    const bool failed = e.state == TrialState::failed;
    row_ = {failed                           ? Kind::trial_failed
            : e.state == TrialState::stopped ? Kind::trial_stopped
                                             : Kind::trial_completed,
            e.trial};
    if (e.at_limit) out.put(true);  // nothing else: such an end has no cause
    if (!e.cause || e.at_limit) return;
    show(e.cause->text);
    out.put(*e.cause);
  }
  void encode(Encoder& out, const record::HostGained& e) {
    row_.kind = Kind::host_gained;
    show(e.host);
    out.put(std::string_view(e.host));
  }
  void encode(Encoder& out, const record::HostLost& e) {
    row_.kind = Kind::host_lost;
    show(detail::format("{}: {}", e.host, e.why));
    out.put(std::string_view(e.host));
    out.put(std::string_view(e.why));
    if (e.for_good) out.put(true);
  }
  void encode(Encoder& out, const record::ExperimentEnded& e) {
    row_.kind = Kind::experiment_ended;
    show(e.why);
    out.put(e.interrupted);
    out.put(std::string_view(e.why));
  }

  /// Fills the readable column. Programs that read it expect UTF-8 (Python's sqlite3 refuses anything else).
  void show(std::string_view text) {
    while (!text.empty()) {
      const auto [bytes, code, valid] = decode_utf8(text);
      text_ += valid && code != 0 ? text.substr(0, bytes) : std::string_view("\xEF\xBF\xBD");
      text.remove_prefix(bytes);
    }
  }

  struct Row {
    Kind kind = Kind::experiment_started;
    TrialId trial = -1;
    std::int64_t attempt = -1;
    bool has_step = false;
    int step = 0;
  };

  std::filesystem::path wal_path_;
  Database db_;
  std::unique_ptr<Statements> statements_;  // created after the schema; destroyed before db_
  std::unordered_map<std::string, std::int64_t> names_;
  std::int64_t last_ = 0, version_ = first_version;
  std::int64_t upgraded_ = 0;  // the version that the current transaction sets; 0: no change
  bool views_are_ours_ = false;
  int wal_pages_ = 0;
  int tidied_pages_ = 0;  // size of the log when it was last copied
  int checkpoint_pages_;
  bool unsynced_;  // new, and not on the disk yet
  Row row_;
  std::string payload_, text_;
};

}  // namespace hypertune::inline v0::detail
