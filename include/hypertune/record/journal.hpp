// Journal: the experiment's history on disk. Any thread appends records; they become durable in groups.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/record/detail/journal_writer.hpp>
#include <hypertune/record/record.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// When commits are synced to the disk.
enum class Sync : std::uint8_t {
  full,    ///< every commit is synced: an acknowledged record survives a power cut
  normal,  ///< an acknowledged record survives the death of the process; a power cut may lose the last ones
};

/// Options of a Journal.
struct JournalOptions {
  bool create = true;               ///< false: Error of kind `input` if there is no journal yet
  Sync sync = Sync::full;           ///< which failures an acknowledged record survives
  std::size_t max_waiting = 16384;  ///< records that may wait to be committed; append() waits if there are more
  /// If nothing is committed for this long while somebody waits for it, that is an error instead of a hang.
  std::chrono::milliseconds stall_timeout = std::chrono::minutes(2);
  /// How long after a commit further records are gathered for the next one, unless somebody waits for them. A killed
  /// process loses the records of that time, too.
  std::chrono::microseconds gather_time = std::chrono::milliseconds(1);
  int checkpoint_pages = 4096;  ///< size of the write-ahead log at which it is copied into the database (16 MiB)
  /// How often an idle Journal checks that its files are still in place.
  std::chrono::milliseconds presence_check_interval = std::chrono::seconds(1);
  /// For tests: simulates a disk that dies. The record of this number is committed and announced, and none after it.
  std::optional<std::int64_t> crash_after = std::nullopt;
};

/// The append-only history of an experiment: DIR/experiment.db, an SQLite database in WAL mode.
///
/// append() moves a record into a buffer. The Journal's own thread commits the buffered records, in one transaction: at
/// once if somebody waits for them or no commit was made in the last `gather_time`, together at its end otherwise. So
/// few records are committed one at a time, and thousands together if many come. Records become durable, are announced
/// and are numbered in the order of append().
///
/// A folder has one driver: a second Journal on it is refused (Error of kind `busy`). Readers (journal_reader.hpp) and
/// the driver never wait for each other.
///
/// If the disk fails, the Journal fails permanently: the on_error() functions are called once, and append(), flush()
/// and wait_for() throw the same Error of kind `io`. No committed record is lost, and no other record is ever
/// announced. There is no retry, because after a failed fsync an operating system may drop the data that it could not
/// write and report success for the next fsync.
///
/// If the folder or the database in it is moved or removed while the Journal is open, that is a failure as well,
/// because everything else that is done by the folder's name would go elsewhere. It is noticed at the next commit or
/// within a second. All committed records are kept, in a new file if the old one is gone, and the Error says where.
///
/// Thread-safe, except for moving and destroying it. The destructor commits the remaining records.
class Journal {
 public:
  using Options = JournalOptions;
  using Committed = std::function<void(std::span<const Record>)>;
  using Failed = std::function<void(const Error&)>;

  /// Opens the experiment in `directory`, or starts one there. Errors: `busy` (another driver), `corrupt` (the file is
  /// not a journal, or is damaged; it is left untouched), `input` (written by a newer version; nothing to resume),
  /// `io`.
  static Journal open(const std::filesystem::path& directory, Options options = {}) {
    return Journal(std::make_unique<State>(directory, options));
  }
  Journal(Journal&&) noexcept = default;
  Journal& operator=(Journal&&) noexcept = default;

  /// Adds a record and returns its number: 1, 2, 3, … Takes well under a microsecond unless `max_waiting` records are
  /// waiting. Throws if the Journal has failed; the record is then not added.
  std::int64_t append(Seconds time, record::Any what) { return state_->append(time, std::move(what)); }

  /// Waits until everything appended so far is durable.
  void flush() { state_->wait(&State::committed, state_->last()); }
  /// Waits until record `sequence` is durable.
  void wait_for(std::int64_t sequence) { state_->wait(&State::committed, sequence); }
  /// Waits until everything appended so far is durable and every on_committed() function has seen it. Must not be
  /// called from such a function, nor while holding a lock that one of them takes.
  void drain() { state_->wait(&State::announced, state_->last()); }

  /// Calls `function` with each batch once it is durable, on the Journal's thread, in order. Register it before the
  /// first append(). The function must not wait for a thread that is in append(), flush() or wait_for(), for example
  /// through a lock held around these calls: put the records into a queue instead. It may call append(). If it throws,
  /// the Journal fails.
  void on_committed(Committed function) { state_->subscribe(std::move(function)); }
  /// Calls `function` once if the Journal fails, on the Journal's thread.
  void on_error(Failed function) { state_->subscribe(std::move(function)); }

  std::int64_t last() const { return state_->last(); }  ///< number of the last record appended (or found); 0: none
  std::int64_t committed() const { return state_->last_committed(); }  ///< number of the last durable record
  bool failed() const { return state_->has_failed(); }
  /// Throws the Journal's Error if it has failed.
  void require_sound() const { state_->require_sound(); }
  /// Checks now, on the Journal's thread, whether the folder and the database are in place; throws the Journal's Error
  /// if they are not. To be called after a failure with another file of the folder, because this may be the cause.
  void require_in_place() { state_->look_now(); }
  /// The same for the folder only; cheap if it is in place. To be called before recording a possible consequence.
  void require_folder() {
    if (!state_->folder_in_place()) require_in_place();
  }
  /// Turns these checks off: the caller is about to remove the files itself.
  void stop_checking_files() { state_->stop_checking_files(); }
  const std::filesystem::path& directory() const { return state_->directory; }
  /// Notes why the driver ends if that cannot be recorded; see exit_reason_of(). If the Journal has failed, it has
  /// already noted that.
  void note_exit_reason(std::string_view why) { state_->note_exit_reason(why); }

 private:
  class State {
   public:
    State(const std::filesystem::path& dir, const Options& options)
        : directory(dir),
          place_(std::filesystem::absolute(dir).lexically_normal()),
          options_(options),
          lock_(prepare(dir, options)),
          writer_(dir, options.sync == Sync::full, options.checkpoint_pages) {
      appended_ = committed = announced = writer_.last();
      queue_.reserve(std::min<std::size_t>(options_.max_waiting, 1024));
      start();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      {
        const std::lock_guard guard(mutex_);
        closing_ = true;
      }
      work_.notify_all();
      thread_.join();
      keep_rescued();
    }

    std::int64_t append(Seconds time, record::Any&& what) {
      std::unique_lock guard(mutex_);
      if (queue_.size() >= options_.max_waiting && std::this_thread::get_id() != thread_.get_id())
        await(guard, [this] { return queue_.size() < options_.max_waiting; });
      throw_if_failed();
      const std::int64_t sequence = ++appended_;
      queue_.push_back({sequence, time, std::move(what)});
      const bool wake = std::exchange(idle_, false);
      guard.unlock();
      if (wake) work_.notify_one();
      return sequence;
    }

    void wait(std::int64_t State::* reached, std::int64_t sequence) {
      std::unique_lock guard(mutex_);
      if (this->*reached >= sequence) return;
      if (sequence > appended_)
        fail(Errc::usage, "cannot wait for record {}: only {} were appended", sequence, appended_);
      if (std::this_thread::get_id() == thread_.get_id())
        fail(Errc::usage, "the journal's own thread cannot wait for a commit (called from on_committed?)");
      await(guard, [&] { return this->*reached >= sequence; });
      if (this->*reached < sequence) throw_if_failed();
    }

    void subscribe(Committed function) {
      const std::lock_guard guard(mutex_);
      on_committed_.push_back(std::make_shared<Committed>(std::move(function)));
    }
    void subscribe(Failed function) {
      const std::lock_guard guard(mutex_);
      on_error_.push_back(std::move(function));
    }
    std::int64_t last() const {
      const std::lock_guard guard(mutex_);
      return appended_;
    }
    std::int64_t last_committed() const {
      const std::lock_guard guard(mutex_);
      return committed;
    }
    void require_sound() const {
      const std::lock_guard guard(mutex_);
      throw_if_failed();
    }
    void look_now() {
      std::unique_lock guard(mutex_);
      const std::int64_t asked = ++looks_asked_;
      work_.notify_one();
      await(guard, [&] { return looked_ >= asked; });
      throw_if_failed();
    }
    bool folder_in_place() const { return lock_.is(place_); }
    void stop_checking_files() {
      const std::lock_guard guard(presence_);
      checks_stopped_ = true;
    }
    bool has_failed() const {
      const std::lock_guard guard(mutex_);
      return failure_.has_value();
    }

    void note_exit_reason(std::string_view why) {
      const std::lock_guard guard(mutex_);
      if (!failure_) lock_.note_exit_reason(why);
    }

    const std::filesystem::path directory;
    std::int64_t committed = 0, announced = 0;  // under mutex_

   private:
    static std::filesystem::path prepare(const std::filesystem::path& dir, const Options& options) {
      detail::require_journal_file(dir);
      if (!options.create && !std::filesystem::exists(journal_path(dir)))
        fail(Errc::input, "there is no experiment in '{}' to go on with ('{}' does not exist)", dir.string(),
             journal_path(dir).string());
      std::error_code error;
      std::filesystem::create_directories(dir, error);
      if (error) fail(Errc::io, "cannot make the folder '{}': {}", dir.string(), error.message());
      return dir;
    }

    void start() {
      const detail::SignalBlock block;
      thread_ = std::thread([this] { run(); });
    }

    void throw_if_failed() const {
      if (failure_) throw *failure_;
    }

    // Counts a thread that waits for the Journal's, under mutex_.
    struct Waiter {
      explicit Waiter(int& waiters) : count(waiters) { ++count; }
      Waiter(const Waiter&) = delete;
      Waiter& operator=(const Waiter&) = delete;
      ~Waiter() { --count; }
      int& count;
    };

    // Waits for `done` or a failure; throws if no commit succeeds for options_.stall_timeout.
    template <class Done>
    void await(std::unique_lock<std::mutex>& guard, const Done& done) {
      const Waiter counted(waiters_);
      work_.notify_one();
      while (!done() && !failure_) {
        const std::int64_t before = announced + committed;
        if (progress_.wait_for(guard, options_.stall_timeout, [&] { return done() || failure_; })) return;
        if (announced + committed == before)
          fail(
              Errc::io,
              "the journal in '{}' has written nothing for {} s: the disk hangs, or an on_committed function waits for "
              "the thread that waits here",
              directory.string(), std::chrono::duration<double>(options_.stall_timeout).count());
      }
    }

    void run() {
      std::vector<Record> batch;
      std::int64_t look = 0;
      while (take(batch, look)) {
        try {
          const std::size_t size = batch.empty() ? 0 : commit(batch);
          if (batch.empty()) require_in_place();
          announce(std::span(batch).first(size));
          if (size < batch.size())
            hypertune::fail(Errc::io, "crashed on purpose after record {}", *options_.crash_after);
        } catch (const Error& error) { return fail_with(error); } catch (const std::exception& error) {
          return fail_with(Error(Errc::io, detail::format("the journal stopped: {}", error.what())));
        } catch (...) { return fail_with(Error(Errc::io, "the journal stopped: an on_committed function threw")); }
        batch.clear();
        if (look != looked_) {
          {
            const std::lock_guard guard(mutex_);
            looked_ = look;
          }
          progress_.notify_all();
        }
        writer_.tidy();
      }
    }

    // Waits for records and takes them all; the batch is empty if none came for a while. False: closing, and none are
    // left.
    bool take(std::vector<Record>& batch, std::int64_t& look) {
      std::unique_lock guard(mutex_);
      if (queue_.empty() && !closing_) {
        idle_ = true;
        work_.wait_for(guard, options_.presence_check_interval,
                       [this] { return !queue_.empty() || closing_ || looks_asked_ != looked_; });
      }
      idle_ = false;
      if (!queue_.empty())
        work_.wait_until(guard, committed_at_ + options_.gather_time,
                         [this] { return closing_ || waiters_ > 0 || looks_asked_ != looked_; });
      look = looks_asked_;
      if (queue_.empty()) return !closing_;  // time to check that the files are in place
      batch.swap(queue_);
      guard.unlock();
      progress_.notify_all();  // there is room again
      return true;
    }

    std::size_t commit(std::span<const Record> batch) {
      std::size_t size = batch.size();
      if (options_.crash_after) {
        const std::int64_t left = *options_.crash_after - batch.front().sequence + 1;
        size = static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, static_cast<std::int64_t>(size)));
      }
      writer_.commit(batch.first(size));
      require_in_place();
      if (size > 0) {
        {
          const std::lock_guard guard(mutex_);
          committed = batch[size - 1].sequence;
          committed_at_ = std::chrono::steady_clock::now();
        }
        progress_.notify_all();
      }
      return size;
    }

    void require_in_place() {
      const std::lock_guard guard(presence_);
      if (checks_stopped_) return;
      if (writer_.in_place() && lock_.is(place_)) {
        const std::lock_guard of_exit_reason(mutex_);
        return lock_.keep_file(place_);
      }
      writer_.disown();
      const auto now = lock_.place();
      const auto name = journal_path(directory).filename();
      std::error_code none;
      if (!now.empty() && !lock_.is(place_) && std::filesystem::exists(now / name, none))
        hypertune::fail(
            Errc::io,
            "the experiment's folder '{}' was moved to '{}' while it ran: all that was recorded is there; go "
            "on with --resume --output {}",
            directory.string(), now.string(), now.string());
      const bool folder = lock_.is(place_);
      std::string kept;
      try {
        const auto target = rescue_folder(folder);
        rescued_ = target / name;
        writer_.copy_to(*rescued_);
        kept = detail::format("all that was recorded was written to '{}' anew; go on with --resume{}",
                              (target / name).string(), target == place_ ? "" : " --output " + target.string());
      } catch (const std::exception& error) {
        kept = detail::format("what was recorded could not be written anew: {}", error.what());
      }
      hypertune::fail(Errc::io, "the experiment's {} '{}' was removed while it ran: {}", folder ? "journal" : "folder",
                      (folder ? journal_path(directory) : directory).string(), kept);
    }

    // Whoever removed the folder may have removed the rescued copy as well: writes it again.
    void keep_rescued() noexcept {
      std::error_code none;
      if (!rescued_ || std::filesystem::exists(*rescued_, none) || none) return;
      try {
        std::filesystem::create_directories(rescued_->parent_path());
        writer_.copy_to(*rescued_);
      } catch (const std::exception&) {  // NOLINT: nobody is left to tell
      }
    }

    // Where the rescued copy goes: the old folder, unless another experiment is there by now. (Trials that write files
    // may have created the folder again.)
    std::filesystem::path rescue_folder(bool in_place) {
      std::error_code none;
      if (in_place && writer_.in_database()) return place_;
      if (!std::filesystem::exists(journal_path(place_), none)) {
        if (in_place) return place_;
        try {
          std::filesystem::create_directories(place_);
          rescue_lock_.emplace(place_);
          return place_;
        } catch (const std::exception&) {}  // in use by another driver, or not writable: a folder beside it
      }
      for (int i = 1;; ++i) {
        auto aside = place_;
        aside += i == 1 ? std::string("-recovered") : detail::format("-recovered-{}", i);
        if (std::filesystem::create_directories(aside)) return aside;
      }
    }

    void announce(std::span<const Record> batch) {
      if (batch.empty()) return;
      std::vector<std::shared_ptr<Committed>> functions;
      {
        const std::lock_guard guard(mutex_);
        functions = on_committed_;
      }
      for (const auto& function : functions) (*function)(batch);
      {
        const std::lock_guard guard(mutex_);
        announced = batch.back().sequence;
      }
      progress_.notify_all();
    }

    void fail_with(const Error& error) {
      std::vector<Failed> functions;
      {
        const std::lock_guard guard(mutex_);
        (rescue_lock_ ? *rescue_lock_ : lock_).note_exit_reason(error.what());
        failure_ = error;
        functions = on_error_;
      }
      progress_.notify_all();
      for (const auto& function : functions) {
        try {
          function(error);
        } catch (...) {  // NOLINT: there is nobody left to tell, and append() will throw the cause
        }
      }
    }

    const std::filesystem::path place_;  // absolute, so that the working directory may change
    Options options_;
    detail::DriverLock lock_;  // taken before the file is opened, until it is closed
    std::optional<detail::DriverLock> rescue_lock_;
    std::optional<std::filesystem::path> rescued_;
    detail::JournalWriter writer_;

    mutable std::mutex mutex_;
    std::condition_variable work_;      // for the Journal's thread
    std::condition_variable progress_;  // for waiting callers
    std::vector<Record> queue_;
    std::mutex presence_;  // held while the presence of the files is checked
    bool checks_stopped_ = false;
    std::int64_t appended_ = 0;
    std::int64_t looks_asked_ = 0, looked_ = 0;  // requests of look_now(), made and served
    int waiters_ = 0;                            // threads in await()
    std::chrono::steady_clock::time_point committed_at_;
    bool idle_ = false;
    bool closing_ = false;
    std::optional<Error> failure_;
    std::vector<std::shared_ptr<Committed>> on_committed_;
    std::vector<Failed> on_error_;
    std::thread thread_;
  };

  explicit Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}

  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0
