// Reading a Journal, also while a driver is writing it.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/detail/journal_codec.hpp>
#include <hypertune/record/detail/sqlite.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/record/record.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Streams the records of an experiment. It never makes the driver wait: it reads in short pieces, and because records
/// are only ever added, the pieces together are one consistent state. Visitors are called outside of read transactions
/// (except in read_ends()), so that a slow one (a pipe to a pager) does not keep the driver's log from being copied
/// into the database. To be used by one thread at a time.
class JournalReader {
 public:
  /// Errors: `input` (no experiment there, or one of a newer version), `corrupt`, `io`.
  explicit JournalReader(const std::filesystem::path& directory)
      : db_(open(directory)),
        last_(db_, "SELECT max(sequence) FROM records", "read"),
        records_(db_,
                 detail::format("SELECT {} FROM records WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence", columns),
                 "read"),
        history_(db_,
                 detail::format("SELECT {} FROM records WHERE sequence BETWEEN ?1 AND ?2 AND trial = ?3 AND kind = 4 "
                                "ORDER BY sequence LIMIT ?4",
                                columns),
                 "read"),
        names_statement_(db_, "SELECT id, name FROM names", "read") {}
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;

  /// The number of the newest durable record; 0: none.
  std::int64_t last() {
    const Scope scope(last_);
    return last_.step() ? last_.integer(0) : 0;
  }

  /// Calls `visitor(const Record&)` with every record from number `from` (1 or more) up to the newest one at this
  /// moment, in order. A visitor that returns bool stops the reading by returning false. Returns the number of the last
  /// record read (`from - 1` if there was none); a later call can continue with the next one. A gap is an Error of kind
  /// `corrupt`.
  template <class Visitor>
  std::int64_t read(Visitor&& visitor, std::int64_t from = 1) {
    const std::int64_t end = last();
    std::vector<Record> piece;
    for (std::int64_t next = from; next <= end; next += std::ssize(piece)) {
      fetch(records_, piece, next, std::min(end, next + piece_size - 1));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const auto expected = next + static_cast<std::int64_t>(i);
        if (piece[i].sequence != expected) lacks(expected, end);
        if (!visit(visitor, piece[i])) return expected;
      }
      if (piece.empty() || piece.back().sequence < std::min(end, next + piece_size - 1))
        lacks(next + std::ssize(piece), end);
    }
    return std::max(end, from - 1);
  }

  /// The ends of trials and the failed attempts, in order. The visitor is called within a read transaction.
  template <class Visitor>
  void read_ends(Visitor&& visitor) {
    detail::Statement ends(
        db_, detail::format("SELECT {} FROM records WHERE kind IN (8, 9, 10, 11) ORDER BY sequence", columns), "read");
    while (ends.step())
      if (!visit(visitor, decode(ends))) return;
  }

  /// The most recent start or resumption of the experiment; nullopt if it never started.
  std::optional<record::ExperimentStarted> last_start() {
    detail::Statement newest(
        db_, detail::format("SELECT {} FROM records WHERE kind = 1 ORDER BY sequence DESC LIMIT 1", columns), "read");
    if (!newest.step()) return std::nullopt;
    return std::get<record::ExperimentStarted>(decode(newest).what);
  }

  /// Whether the last driver reached the experiment's end: it was neither interrupted nor killed.
  bool ended() {
    detail::Statement newest(
        db_,
        detail::format("SELECT {} FROM records WHERE kind IN (1, {}) ORDER BY sequence DESC LIMIT 1", columns,
                       static_cast<int>(detail::Kind::experiment_ended)),
        "read");
    if (!newest.step()) return false;
    const Record record = decode(newest);
    const auto* end = std::get_if<record::ExperimentEnded>(&record.what);
    return end != nullptr && !end->interrupted;
  }

  /// The reports of one trial, in order. `first` and `last` limit the search to certain records (see
  /// TrialResult::first_record); by default the whole journal is searched.
  template <class Visitor>
  void history(TrialId trial, Visitor&& visitor, std::int64_t first = 1,
               std::int64_t last = std::numeric_limits<std::int64_t>::max()) {
    std::vector<Record> piece;
    do {
      history_.bind(3, trial);
      history_.bind(4, piece_size);
      fetch(history_, piece, first, last);
      for (const Record& record : piece)
        if (!visit(visitor, record)) return;
      if (!piece.empty()) first = piece.back().sequence + 1;
    } while (std::ssize(piece) == piece_size);
  }

  /// All reports up to record `last`, by trial and then in order. SQLite sorts them, in a temporary file if there are
  /// many.
  template <class Visitor>
  void histories(Visitor&& visitor, std::int64_t last = std::numeric_limits<std::int64_t>::max()) {
    db_.execute(
        detail::format("DROP TABLE IF EXISTS temp.sorted; CREATE TEMP TABLE sorted AS SELECT {} FROM records "
                       "WHERE kind = 4 AND sequence <= {} ORDER BY trial, sequence",
                       columns, last));
    detail::Statement sorted(db_, "SELECT * FROM temp.sorted ORDER BY rowid", "read");
    while (sorted.step())
      if (!visit(visitor, decode(sorted))) return;
  }

 private:
  static constexpr std::int64_t piece_size = 2048;
  static constexpr const char* columns = "sequence, time, kind, trial, attempt, step, metric, value, payload, text";

  // Ends the read transaction in any case: an open one would keep the log from being copied into the database.
  struct Scope {
    explicit Scope(detail::Statement& s) : statement(s) {}
    ~Scope() { statement.reset(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    detail::Statement& statement;
  };

  template <class Visitor>
  static bool visit(Visitor& visitor, const Record& record) {
    if constexpr (std::is_void_v<std::invoke_result_t<Visitor&, const Record&>>) {
      visitor(record);
      return true;
    } else {
      return visitor(record);
    }
  }

  void fetch(detail::Statement& rows, std::vector<Record>& piece, std::int64_t first, std::int64_t last) {
    const Scope scope(rows);
    rows.bind(1, first);
    rows.bind(2, last);
    piece.clear();
    while (rows.step()) piece.push_back(decode(rows));
  }

  [[noreturn]] void lacks(std::int64_t sequence, std::int64_t end) const {
    fail(Errc::corrupt, "'{}' lacks record {} of {}: it was changed by something else; restore it from a copy",
         db_.path(), sequence, end);
  }

  static detail::Database open(const std::filesystem::path& directory) {
    const std::string path = journal_path(directory).string();
    std::error_code refused;
    if (!std::filesystem::exists(path, refused) && refused)
      fail(Errc::input, "cannot look into '{}': {}", directory.string(), refused.message());
    if (!std::filesystem::exists(path, refused))
      fail(Errc::input, "there is no experiment in '{}' ('{}' does not exist)", directory.string(), path);
    detail::require_journal_file(directory);
    const auto attempt = [&](const std::string& location, int flags) {
      detail::Database db(location, path, flags | SQLITE_OPEN_READONLY);
      bool empty = true;
      try {
        empty = !detail::check_journal(db);
      } catch (const Error&) {
        // A driver was killed within the very first transaction. Rolling that back needs write access.
        if (sqlite3_extended_errcode(db.get()) != SQLITE_READONLY_ROLLBACK) throw;
      }
      if (empty)
        fail(Errc::input,
             "nothing is recorded in '{}' yet: its driver has just begun, or was killed before its first "
             "record; run it (again)",
             directory.string());
      return db;
    };
    try {
      return attempt(path, 0);
    } catch (const Error& error) {
      // A copy on a read-only medium, where SQLite cannot create its shared index. Nobody else can write it.
      std::error_code ignored;
      if (error.code() != Errc::io || std::filesystem::exists(path + "-wal", ignored)) throw;
    }
    return attempt("file:" + escaped(std::filesystem::absolute(path).string()) + "?immutable=1", SQLITE_OPEN_URI);
  }

  static std::string escaped(const std::string& path) {
    std::string uri;
    for (const char c : path) {
      if (c == '%' || c == '?' || c == '#')
        uri += detail::format("%{:02X}", static_cast<unsigned>(c));
      else
        uri += c;
    }
    return uri;
  }

  Record decode(detail::Statement& row) {
    Record record;
    record.sequence = row.integer(0);
    record.time = row.real(1);
    try {
      record.what = decode_event(row);
    } catch (const Error& error) {
      fail(Errc::corrupt, "record {} of '{}' cannot be read: {}", record.sequence, db_.path(), error.what());
    }
    return record;
  }

  static int small(std::int64_t value) {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      fail(Errc::corrupt, "a number is out of range");
    return static_cast<int>(value);
  }

  record::Any decode_event(detail::Statement& row) {
    using detail::Kind;
    const std::int64_t kind = row.integer(2);
    const TrialId trial = row.is_null(3) ? -1 : row.integer(3);
    const auto attempt = static_cast<Attempt>(row.integer(4));
    const int step = small(row.integer(5));
    if (kind == static_cast<std::int64_t>(Kind::trial_reported))
      return record::TrialReported{trial, attempt, step, metrics(row), row.bytes(9) == detail::report_of_ended};
    if (kind < 1 || kind > static_cast<std::int64_t>(Kind::workers_asked))
      fail(Errc::corrupt, "its kind, {}, is unknown", kind);
    detail::Decoder in(row.bytes(8));
    record::Any event = decode_payload(static_cast<Kind>(kind), in, trial, attempt, step);
    in.end();
    if (auto* const failed = std::get_if<record::AttemptFailed>(&event); failed != nullptr && !row.is_null(7))
      failed->counts = row.integer(7) != 0;
    return event;
  }

  static record::Any decode_payload(detail::Kind kind, detail::Decoder& in, TrialId trial, Attempt attempt, int step) {
    using detail::Kind;
    switch (kind) {
      case Kind::experiment_started: return started(in);
      case Kind::trial_created: {
        record::TrialCreated event{trial, {}, {}, in.flag()};
        std::tie(event.point, event.params) = in.configuration();
        return event;
      }
      case Kind::trial_started: {
        record::TrialStarted event{trial, attempt, step, in.text(), {}, {}};
        event.cpus = in.small_numbers();
        event.gpus = in.small_numbers();
        if (in.at_end()) return event;
        event.generation = in.generation();
        event.others = in.places();
        return event;
      }
      case Kind::trial_resized: {
        record::TrialResized event{trial, attempt, in.generation(), in.places(), {}};
        event.why = in.text();
        if (!in.at_end()) event.lost = in.texts();
        return event;
      }
      case Kind::workers_asked: {
        record::WorkersRequested event{trial, small(in.signed_number()), false};
        event.by_user = in.flag();
        return event;
      }
      case Kind::checkpointed: return record::TrialCheckpointed{trial, in.checkpoint()};
      case Kind::checkpoint_dropped: {
        record::CheckpointDropped event{trial, in.checkpoint(), {}};
        event.why = in.text();
        return event;
      }
      case Kind::trial_paused: return record::TrialPaused{trial};
      case Kind::trial_exploited: {
        record::TrialExploited event{trial, in.signed_number(), in.checkpoint(), {}, {}};
        std::tie(event.point, event.params) = in.configuration();
        return event;
      }
      case Kind::attributes_set: return record::AttributesSet{trial, in.params()};
      case Kind::attempt_failed: {
        record::AttemptFailed event{trial, attempt, in.cause(), false};
        const std::uint64_t retry = in.number();
        event.retry = retry != 0;
        event.doubted = retry == 2;
        if (!in.at_end()) event.host = in.text();
        return event;
      }
      case Kind::trial_completed: {
        record::TrialEnded event{trial, TrialState::completed, std::nullopt, in.size() == 1};
        event.at_limit ? static_cast<void>(in.flag()) : static_cast<void>(event.cause = cause(in));
        return event;
      }
      case Kind::trial_stopped: return record::TrialEnded{trial, TrialState::stopped, cause(in)};
      case Kind::trial_failed: return record::TrialEnded{trial, TrialState::failed, cause(in)};
      case Kind::host_gained: return record::HostGained{in.text()};
      case Kind::host_lost: {
        record::HostLost event{in.text(), {}};
        event.why = in.text();
        event.for_good = !in.at_end() && in.flag();  // older journals do not say
        return event;
      }
      case Kind::experiment_ended: {
        record::ExperimentEnded event{in.flag(), {}};
        event.why = in.text();
        return event;
      }
      case Kind::trial_reported: break;
    }
    fail(Errc::corrupt, "its kind is unknown");
  }

  static record::ExperimentStarted started(detail::Decoder& in) {
    record::ExperimentStarted event;
    event.name = in.text();
    event.objectives.resize(in.count(2));
    for (Objective& objective : event.objectives) {
      objective.metric = in.text();
      objective.mode = in.flag() ? Mode::maximize : Mode::minimize;
    }
    for (std::string* text : {&event.space, &event.searcher, &event.scheduler, &event.executor}) *text = in.text();
    event.samples = in.signed_number();
    event.seed = in.number();
    event.resumed = in.flag();
    if (in.at_end()) return event;
    event.constraints.resize(in.count(10));
    for (MetricBound& bound : event.constraints) {
      bound.metric = in.text();
      bound.side = in.flag() ? Mode::maximize : Mode::minimize;
      bound.value = in.real();
    }
    if (in.at_end()) return event;
    event.searcher_options = in.text();
    event.scheduler_options = in.text();
    if (in.at_end()) return event;
    event.command = in.text();
    return event;
  }
  static std::optional<Cause> cause(detail::Decoder& in) {
    if (in.at_end()) return std::nullopt;
    return in.cause();
  }

  Metrics metrics(detail::Statement& row) {
    Metrics metrics;
    if (row.is_null(6)) return metrics;
    const std::string_view more = row.bytes(8);
    metrics.emplace_back(name(row.integer(6)), row.is_null(7) ? std::numeric_limits<double>::quiet_NaN() : row.real(7));
    if (!more.empty()) parse(more, metrics);
    return metrics;
  }

  // Accepts exactly what the writer produces: {"2":0.5,"3":"NaN"}.
  void parse(std::string_view text, Metrics& metrics) {
    const auto expect = [&](std::string_view what) {
      if (!text.starts_with(what)) fail(Errc::corrupt, "its metrics are malformed");
      text.remove_prefix(what.size());
    };
    const auto number = [&](auto value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc()) fail(Errc::corrupt, "its metrics are malformed");
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      return value;
    };
    for (std::string_view opening = "{"; opening == "{" || text.starts_with(','); opening = ",") {
      expect(opening);
      expect("\"");
      const std::int64_t id = number(std::int64_t{0});
      expect("\":");
      double value = 0;
      constexpr double infinity = std::numeric_limits<double>::infinity();
      if (!text.starts_with('"')) {
        value = number(0.0);
      } else if (text.starts_with("\"NaN\"")) {
        value = std::numeric_limits<double>::quiet_NaN();
        text.remove_prefix(5);
      } else {
        value = text.starts_with("\"-") ? -infinity : infinity;
        expect(value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
      }
      metrics.emplace_back(name(id), value);
    }
    expect("}");
    if (!text.empty()) fail(Errc::corrupt, "its metrics are malformed");
  }

  const std::string& name(std::int64_t id) {
    auto found = names_.find(id);
    if (found == names_.end()) {  // a newer name than those in names_
      const Scope scope(names_statement_);
      while (names_statement_.step())
        names_.emplace(names_statement_.integer(0), std::string(names_statement_.bytes(1)));
      found = names_.find(id);
    }
    if (found == names_.end()) fail(Errc::corrupt, "its metric number {} has no name", id);
    return found->second;
  }

  detail::Database db_;
  detail::Statement last_, records_, history_, names_statement_;
  std::unordered_map<std::int64_t, std::string> names_;
};

/// Calls `visitor(const Record&)` with every record of the experiment in `directory`, in order, without keeping them in
/// memory. Returns the number of the last one. See JournalReader.
template <class Visitor>
std::int64_t read_journal(const std::filesystem::path& directory, Visitor&& visitor) {
  return JournalReader(directory).read(std::forward<Visitor>(visitor));
}

}  // namespace hypertune::inline v0
