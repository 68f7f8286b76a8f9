// Keeps a file for Prometheus' node_exporter up to date with the state of the experiment.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/detail/log_files.hpp>
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

/// A Callback that keeps `file` (such as /var/lib/node_exporter/NAME.prom) equal to prometheus_text() of the
/// experiment, for node_exporter's textfile collector. It is written to another file and renamed, so that no reader
/// sees half of it. A separate thread writes it at most once a second, so that recording never waits for it, and once
/// more at the end. If writing fails, the callback fails; that is reported once and does not affect the experiment. The
/// file remains after the experiment's end.
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
    static constexpr std::chrono::seconds min_interval{1};

    std::filesystem::path file;
    Results results;   // used only by the writer; read from the Journal
    std::mutex mutex;  // protects `changed` and `error`
    std::condition_variable_any wakeup;
    bool changed = false;
    std::exception_ptr error;
    std::jthread writer;  // the last member: it uses the others

    void run(const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      while (!stop.stop_requested() && !error) {
        wakeup.wait(lock, stop, [&] { return changed; });
        write_changes(lock);
        wakeup.wait_for(lock, stop, min_interval, [] { return false; });
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
