// SQLite with RAII and hypertune's errors, as far as the Journal and its readers need it.
#pragma once

#include <hypertune/error.hpp>

#include <sqlite3.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::detail {

inline constexpr int busy_timeout_ms = 5000;

/// One connection. To be used by one thread at a time.
class Database {
 public:
  /// `flags` as for sqlite3_open_v2; `location` is a path, or a URI with SQLITE_OPEN_URI.
  Database(const std::string& location, std::string path, int flags) : path_(std::move(path)) {
    sqlite3* raw = nullptr;
    const int rc = sqlite3_open_v2(location.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(raw);
    if (rc != SQLITE_OK) raise("open");
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw,
                         busy_timeout_ms);  // only recovery after a crash and the last close lock readers out
  }

  void execute(const char* sql) {
    if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) raise("use");
  }
  void execute(const std::string& sql) { execute(sql.c_str()); }

  sqlite3* get() const { return db_.get(); }
  const std::string& path() const { return path_; }

  /// Throws the last error of the connection, with advice on what to do. `verb`: "open", "read", "write".
  [[noreturn]] void raise(const char* verb) const {
    if (!db_) fail(Errc::io, "cannot {} '{}': out of memory", verb, path_);
    const int code = sqlite3_errcode(db_.get()) & 0xFF;
    const int system = sqlite3_system_errno(db_.get());
    const std::string text = sqlite3_errmsg(db_.get());
    if (code == SQLITE_FULL ||
        ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && (system == ENOSPC || system == EDQUOT)))
      fail(Errc::io,
           "disk full: cannot {} '{}'; free space and run again with --resume; nothing recorded before was lost", verb,
           path_);
    if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
      fail(Errc::corrupt, "'{}' is no readable hypertune journal ({}); it was left as it is: restore it from a copy",
           path_, text);
    if (text.starts_with("no such "))  // the statements are correct, so a table or a column is missing
      fail(Errc::corrupt,
           "'{}' lacks what a hypertune journal has ({}): it was changed by something else; restore it from a "
           "copy",
           path_, text);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
      fail(Errc::busy, "cannot {} '{}': another program keeps it locked ({})", verb, path_, text);
    fail(Errc::io, "cannot {} '{}': {}{}{}", verb, path_, text, system != 0 ? ": " : "",
         system != 0 ? std::strerror(system) : "");
  }

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
};

/// One prepared statement of a Database that outlives it. Bound text and blobs must live until the next reset().
class Statement {
 public:
  Statement(Database& db, std::string_view sql, const char* verb) : db_(&db), verb_(verb) {
    sqlite3_stmt* raw = nullptr;
    const int rc = sqlite3_prepare_v3(db.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &raw, nullptr);
    statement_.reset(raw);
    if (rc != SQLITE_OK) db.raise(verb);
  }

  void bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_.get(), index, value)); }
  void bind(int index, double value) { check(sqlite3_bind_double(statement_.get(), index, value)); }
  void bind_null(int index) { check(sqlite3_bind_null(statement_.get(), index)); }
  void bind_text(int index, std::string_view value) {
    check(sqlite3_bind_text64(statement_.get(), index, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  void bind_blob(int index, std::string_view value) {
    check(sqlite3_bind_blob64(statement_.get(), index, value.empty() ? "" : value.data(), value.size(), SQLITE_STATIC));
  }

  /// Advances to the next row; false if there is none.
  bool step() {
    const int rc = sqlite3_step(statement_.get());
    if (rc == SQLITE_ROW) return true;
    if (rc != SQLITE_DONE) db_->raise(verb_);
    return false;
  }
  void reset() { sqlite3_reset(statement_.get()); }
  /// Runs a statement that returns no rows, and resets it.
  void run() {
    const bool row = step();
    static_cast<void>(row);
    reset();
  }

  bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  /// Valid until the next step() or reset().
  std::string_view bytes(int column) const {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return data == nullptr ? std::string_view{} : std::string_view(data, size);
  }

 private:
  void check(int rc) const {
    if (rc != SQLITE_OK) db_->raise(verb_);
  }

  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  Database* db_;
  const char* verb_;
};

inline std::int64_t query_integer(Database& db, std::string_view sql) {
  Statement statement(db, sql, "read");
  return statement.step() ? statement.integer(0) : 0;
}

}  // namespace hypertune::inline v0::detail
