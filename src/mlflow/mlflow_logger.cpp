#include "net/base64.hpp"
#include "server.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/detail/log_files.hpp>
#include <hypertune/record/mlflow_logger.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;
using detail::mlflow::Refused;
using detail::mlflow::RunUpdates;
using detail::mlflow::Server;
using detail::mlflow::Unreachable;

constexpr std::int64_t records_at_once = 2000;
constexpr Millis first_pause{1000}, longest_pause{60000}, request_limit{30000}, least_limit{100};

std::string authorization() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return std::string(value == nullptr ? "" : value);
  };
  if (const auto token = variable("MLFLOW_TRACKING_TOKEN"); !token.empty()) return "Bearer " + token;
  const auto user = variable("MLFLOW_TRACKING_USERNAME");
  if (user.empty()) return "";
  return "Basic " + net::base64_encoded(user + ":" + variable("MLFLOW_TRACKING_PASSWORD"));
}

}  // namespace

/// Reads the Journal concurrently with the experiment, and sends its records.
class MlflowLogger::Sender {
 public:
  Sender(MlflowOptions options, Say say)
      : options_((options.patience.give_to(options.flush_grace), std::move(options))),
        say_(std::move(say)),
        server_(options_, authorization()) {
    server_.bound_by([this] {
      const std::lock_guard guard(mutex_);
      const auto left = deadline_ ? std::chrono::duration_cast<Millis>(*deadline_ - Clock::now()) : request_limit;
      return std::clamp(left, least_limit, request_limit);
    });
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard guard(mutex_);
      closing_ = true;
      deadline_ = Clock::now() + flush_grace();
    }
    changed_.notify_all();
    thread_.join();
    if (refusal_.empty() && (look_ || sent_ < newest_ || !trouble_.empty()))
      say_(fmt::format("not all that is recorded in '{}' is in MLflow at {}{}: --resume sends what is missing",
                       directory_.string(), options_.uri, trouble_.empty() ? "" : " (" + trouble_ + ")"));
  }

  void open(const std::filesystem::path& directory) {
    if (directory.empty()) fail(Errc::usage, "MLflow is sent what the record has: name an output folder");
    directory_ = directory;
    position_file_ = directory / "trials" / ".mlflow";
    thread_ = std::jthread([this] { run(); });
  }
  void wake() {
    {
      const std::lock_guard guard(mutex_);
      look_ = true;
    }
    changed_.notify_all();
  }
  bool flush() {
    std::unique_lock lock(mutex_);
    look_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, flush_grace(), [&] { return !refusal_.empty() || (!look_ && sent_ == newest_); }) &&
           refusal_.empty();
  }

 private:
  Millis flush_grace() const {
    return Millis(static_cast<std::int64_t>(1000 * std::clamp(options_.flush_grace, 0.0, 1e6)));
  }

  void run() {
    Millis pause = first_pause;
    while (wait_for_records()) {
      try {
        if (!server_.is_open()) begin();
        send_all();
        pause = first_pause;
        const std::lock_guard guard(mutex_);
        if (!std::exchange(trouble_, "").empty()) say_(fmt::format("MLflow at {} answers again", options_.uri));
      } catch (const Unreachable& error) {
        server_.close();
        if (!pause_after(error.what(), pause)) return;
        pause = std::min(2 * pause, longest_pause);
      } catch (const std::exception& error) {  // refused, or the Journal cannot be read
        const std::lock_guard guard(mutex_);
        refusal_ = error.what();
        say_(fmt::format("MLflow at {}: {}; nothing more is sent there (the experiment goes on)", options_.uri,
                         refusal_));
        changed_.notify_all();
        return;
      }
    }
  }

  // Waits for something to send. Returns false when it is closing and everything was sent, or no time is left.
  bool wait_for_records() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return look_ || closing_ || !trouble_.empty(); });
    if (closing_ && trouble_.empty() && !look_ && sent_ == newest_) return false;
    if (closing_ && Clock::now() >= *deadline_) return false;
    return true;
  }

  // Waits for the next attempt, with shorter pauses while closing. False: there is no time left for one.
  bool pause_after(const std::string& why, Millis pause) {
    std::unique_lock lock(mutex_);
    if (trouble_.empty())
      say_(fmt::format("MLflow at {} cannot be reached ({}); the experiment goes on, and it is tried again",
                       options_.uri, why));
    trouble_ = why;
    if (!closing_) {
      changed_.wait_for(lock, pause, [&] { return closing_; });
      return true;
    }
    changed_.wait_until(lock, std::min(*deadline_, Clock::now() + first_pause), [] { return false; });
    return Clock::now() < *deadline_;
  }

  // Identifies this experiment on the server: by the time of its first start, and its seed.
  void begin() {
    std::string identity, name;
    JournalReader(directory_).read([&](const Record& record) {
      if (const auto* started = std::get_if<record::ExperimentStarted>(&record.what)) {
        identity = fmt::format("{}-{}", static_cast<std::int64_t>(record.time * 1e6), started->seed);
        name = started->name;
      }
      return false;
    });
    if (!options_.experiment.empty()) name = options_.experiment;
    const bool known = server_.open(name.empty() ? "hypertune" : name, identity);
    place_ = fmt::format("{} {}", options_.uri, server_.experiment());
    const std::int64_t position = known ? load_position() : 0;
    const std::lock_guard guard(mutex_);
    sent_ = position;
  }

  std::int64_t load_position() const {
    const std::string text = detail::read_whole(position_file_);
    std::int64_t position = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), position).ptr;
    return std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)) == " " + place_ + "\n"
               ? position
               : 0;
  }

  void send_all() {
    JournalReader journal(directory_);
    while (true) {
      std::int64_t first = 0, last = 0;
      {
        const std::lock_guard guard(mutex_);
        look_ = false;
        first = sent_ + 1;
        newest_ = last = journal.last();
        if (first > last || (deadline_ && Clock::now() >= *deadline_)) return changed_.notify_all();
      }
      last = std::min(last, first + records_at_once - 1);
      RunUpdates updates;
      journal.read(
          [&](const Record& record) {
            if (record.sequence <= last) updates.add(record);
            return record.sequence < last;
          },
          first);
      for (const auto& [trial, update] : updates.runs()) send(trial, update);
      detail::append_to(position_file_, fmt::format("{} {}\n", last, place_), 0);
      const std::lock_guard guard(mutex_);
      sent_ = last;
    }
  }

  void send(TrialId trial, const detail::mlflow::RunUpdate& update) {
    try {
      server_.send(trial, update);
    } catch (const Refused& refused) {
      if (refused.status == 401 || refused.status == 403) throw;
      if (!std::exchange(said_refused_, true))
        say_(fmt::format("MLflow at {} refuses something of {}: {} (what else it refuses is not said)", options_.uri,
                         trial < 0 ? "the experiment" : fmt::format("trial {}", trial), refused.what()));
    }
  }

  const MlflowOptions options_;
  const Say say_;
  Server server_;  // used only by the thread
  bool said_refused_ = false;
  std::filesystem::path directory_, position_file_;
  std::string place_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  bool look_ = false, closing_ = false;
  std::int64_t sent_ = 0, newest_ = 0;
  std::string trouble_, refusal_;  // why it cannot be reached; why sending has stopped for good
  std::optional<Clock::time_point> deadline_;
  std::jthread thread_;
};

MlflowLogger::MlflowLogger(MlflowOptions options, Say say)
    : sender_(std::make_shared<Sender>(
          std::move(options),
          say ? std::move(say) : [](const std::string& text) { detail::say("hypertune: " + text); })) {}

void MlflowLogger::on_open(const std::filesystem::path& directory) { sender_->open(directory); }
void MlflowLogger::on_batch_end() { sender_->wake(); }
bool MlflowLogger::flush() { return sender_->flush(); }

static_assert(Callback<MlflowLogger>);

}  // namespace hypertune::inline v0
