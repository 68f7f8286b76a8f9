// A file that Prometheus' node_exporter reads, kept as the experiment stands.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/log_files.hpp>
#include <hypertune/record/prometheus.hpp>
#include <hypertune/record/results.hpp>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

/// A Callback that keeps `file` (say /var/lib/node_exporter/NAME.prom) as prometheus_text() of the experiment, for the
/// textfile collector: written aside and renamed, so that it is never read half. At most once a second, from a thread
/// of its own, so that the record never waits for it; and once more at the end. What cannot be written makes the
/// callback fail, which is said once and does not touch the experiment. It stays when the experiment has ended.
class PrometheusLogger {
 public:
  explicit PrometheusLogger(std::filesystem::path file) : state_(std::make_unique<State>()) {
    state_->file = std::move(file);
  }

  void on_open(const std::filesystem::path& directory) {
    const auto folder = state_->file.parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      fail(Errc::usage, "'{}' cannot be written: there is no folder '{}'", state_->file.string(), folder.string());
    state_->results = Results(directory);
    state_->writer = std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
  }
  void on_batch_end() {
    const std::lock_guard guard(state_->mutex);
    if (auto error = std::exchange(state_->error, nullptr)) std::rethrow_exception(error);
    state_->changed = true;
    state_->wakeup.notify_one();
  }
  std::string name() const { return "prometheus"; }

 private:
  struct State {
    static constexpr std::chrono::seconds least_interval{1};

    std::filesystem::path file;
    Results results;   // the writer's, read from the Journal
    std::mutex mutex;  // of `changed` and `error`
    std::condition_variable_any wakeup;
    bool changed = false;
    std::exception_ptr error;
    std::jthread writer;  // last: it uses the others

    void run(const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      while (!stop.stop_requested() && !error) {
        wakeup.wait(lock, stop, [&] { return changed; });
        write_changes(lock);
        wakeup.wait_for(lock, stop, least_interval, [] { return false; });
      }
      write_changes(lock);
    }
    void write_changes(std::unique_lock<std::mutex>& lock) {
      if (!std::exchange(changed, false) || error) return;
      lock.unlock();
      std::exception_ptr failed;
      try {
        results.update();
        detail::replace_file(file, prometheus_text(results));
      } catch (...) { failed = std::current_exception(); }
      lock.lock();
      error = failed;
    }
  };
  std::unique_ptr<State> state_;
};

static_assert(Callback<PrometheusLogger>);

}  // namespace hypertune::inline v0
