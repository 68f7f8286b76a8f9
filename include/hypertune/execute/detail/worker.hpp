// The loop of a worker process: runs trials of a Program as commanded by a driver at the other end of a stream.
#pragma once

#include <hypertune/checkpoint/detail/sealer.hpp>
#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/format.hpp>
#include <hypertune/execute/detail/attempt_run.hpp>
#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/execute/detail/worker_machine.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>
#include <hypertune/execute/detail/worker_stream.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/trial/group.hpp>
#include <hypertune/trial/program.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

struct WorkerOptions {
  /// Called before an attempt begins, to bind the process to its slot.
  std::function<void(const Slot&)> bind_slot = {};
  /// Called for a member of a group after that, and when its group changes, with GroupPlace::cpus: it may use the cores
  /// of all members here. Called on any thread; the process is to be bound.
  std::function<void(const std::vector<int>& cpus)> bind_cores = {};
  /// Whether the trial's output goes to trials/<id>/log; otherwise stdout and stderr stay as they are.
  bool redirect_output = true;
};

namespace detail {

/// The loop with its two threads. The caller's thread runs the user's code; the other one reads, so that a Stop is
/// received and signs of life are sent during a step.
class WorkerLoop {
 public:
  WorkerLoop(int fd, const Program& program, WorkerOptions options)
      : stream_(fd), program_(program), options_(std::move(options)) {}

  int run() {
    stream_.send(wire::Hello{.pid = static_cast<std::int64_t>(::getpid())});
    std::thread reader([this] { read(); });
    work();
    destroy();
    sealer_.reset();
    std::fflush(nullptr);
    // The reading thread ends when this side shuts the stream down.
    stream_.shut_down();
    reader.join();
    return 0;
  }

 private:
  // ---- the reading thread ----
  void read() {
    FrameDecoder decoder(wire::message_types);
    std::chrono::steady_clock::time_point next_beat{};
    try {
      for (;;) {
        const double beat = heartbeat();
        const bool logging = tend_log();
        const double timeout = logging && (beat < 0 || beat > log_look) ? log_look : beat;
        std::optional<std::string_view> bytes = stream_.receive(timeout);
        if (!bytes) {
          const auto now = std::chrono::steady_clock::now();
          if (beat < 0 || now < next_beat) continue;
          next_beat = now + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(beat));
          send_alive();
          continue;
        }
        if (bytes->empty()) break;
        decoder.feed(*bytes);
        while (auto frame = decoder.next()) {
          const wire::Message message = wire::decode(*frame);
          std::shared_ptr<Group> stopped;
          {
            const std::lock_guard guard(mutex_);
            machine_.receive(message);
            if (const auto* launch = std::get_if<Launch>(&message)) take_seat(*launch);
            if (machine_.stop_requested()) {
              if (context_ != nullptr) context_->request_stop();
              stopped = group_;
            }
            changed_.notify_one();
          }
          if (stopped) stopped->stop();
          if (const auto* group = std::get_if<GroupMessage>(&message)) tell_group(*group);
        }
      }
    } catch (const Error& e) { stream_.send(wire::LogLine{std::string("worker: ") + e.what()}); }
    const std::lock_guard guard(mutex_);
    if (leaving_) return;
    // The driver is gone: the user's code works in vain, and cannot be forced to return.
    ::_exit(disconnected);
  }

  // To be called under the lock. Called on receipt of the Launch, because messages for the group may come before the
  // trial begins.
  void take_seat(const Launch& launch) {
    if (launch.parked) return;
    seat_ = {.trial = launch.trial, .attempt = launch.attempt, .member = launch.seat ? launch.seat->member : 0};
    group_ = nullptr;
    if (!launch.seat) return;
    group_ = std::make_shared<Group>(launch.seat->place, [this, seat = seat_](GroupMessage message) {
      message.trial = seat.trial;
      message.attempt = seat.attempt;
      message.member = seat.member;
      stream_.send(std::move(message));
    });
  }
  void tell_group(const GroupMessage& message) {
    std::shared_ptr<Group> group;
    {
      const std::lock_guard guard(mutex_);
      if (message.trial == seat_.trial && message.attempt == seat_.attempt && message.member == seat_.member)
        group = group_;
    }
    if (!group) return;
    if (message.kind == GroupMessage::Kind::form && message.place.rank >= 0) bind_cores(message.place);
    group->receive(message);
  }

  double heartbeat() {
    const std::lock_guard guard(mutex_);
    return machine_.welcome().heartbeat > 0 ? machine_.welcome().heartbeat : -1;
  }
  void send_alive() {
    std::uint64_t beats = 0;
    {
      const std::lock_guard guard(mutex_);
      if (context_ == nullptr || !machine_.stepping()) return;
      beats = context_->beats();
    }
    stream_.send(wire::Alive{beats});
  }

  // ---- the thread of the user's code ----
  void work() {
    for (;;) {
      WorkerMachine::Action action;
      {
        std::unique_lock lock(mutex_);
        for (;;) {
          action = machine_.next();
          if (action.what != WorkerMachine::Do::wait) break;
          changed_.wait(lock);
        }
        if (action.what == WorkerMachine::Do::leave) {
          leaving_ = true;
          return;
        }
      }
      try {
        perform(action);
      } catch (...) { fail_attempt(cause_of_current_exception()); }
    }
  }

  void perform(const WorkerMachine::Action& action) {
    const Launch& launch = machine_.launch();  // changes only while no attempt is running
    if (action.save) save(launch, action.what == WorkerMachine::Do::end);
    switch (action.what) {
      case WorkerMachine::Do::begin: begin(launch); break;
      case WorkerMachine::Do::step: step(launch); break;
      case WorkerMachine::Do::park:
        if (!action.keep && attempt_->replaceable()) {
          save(launch);
          stop_and_save(launch);
          end(Paused{launch.trial, launch.attempt, false, member(launch)}, false);
        } else {
          sealed(launch.trial);
          attempt_->park();
          parked_ = true;
          stream_.send(Paused{launch.trial, launch.attempt, true, member(launch)});
        }
        break;
      case WorkerMachine::Do::end:
        stop_and_save(launch);
        end(Stopped{launch.trial, launch.attempt, member(launch)}, true);
        break;
      default: break;
    }
  }

  void begin(const Launch& launch) {
    if (!store_) {
      directory_ = machine_.welcome().directory;
      const auto& welcome = machine_.welcome();
      LocalCheckpointStore::Options options;
      options.origins.assign(welcome.origins.begin(), welcome.origins.end());
      options.make_root = false;
      store_.emplace(welcome.checkpoints.empty() ? directory_ : std::filesystem::path(welcome.checkpoints),
                     std::move(options));
    }
    if (options_.bind_slot) options_.bind_slot(launch.allocation.lead);
    if (launch.seat) bind_cores(launch.seat->place);
    std::optional<AttemptRun> previous;
    previous.swap(attempt_);
    std::shared_ptr<Group> group;
    {
      const std::lock_guard guard(mutex_);
      group = group_;
    }
    attempt_.emplace(
        *store_, directory_, launch,
        [this](const CheckpointInfo& checkpoint, const std::string& why) { lose(checkpoint, why); },
        machine_.welcome().log_limit, std::move(group));
    if (options_.redirect_output) {
      const auto log = attempt_->context().log();
      redirect(log);
      // External commands bound their logs themselves.
      if (!program_.external()) keep_log(std::make_unique<BoundedLog>(log, machine_.welcome().log_limit));
    }
    enter(&attempt_->context());
    attempt_->begin(program_, previous ? &*previous : nullptr);
    stream_.send(Started{launch.trial, launch.attempt, attempt_->steps(), member(launch)});
  }

  void bind_cores(const GroupPlace& place) {
    if (options_.bind_cores && !place.cpus.empty()) options_.bind_cores(place.cpus);
  }

  static int member(const Launch& launch) { return launch.seat ? launch.seat->member : 0; }

  void lose(const CheckpointInfo& checkpoint, const std::string& why) {
    stream_.send(CheckpointLost{machine_.launch().trial, checkpoint, why});
  }

  // Sets the context that a Stop is for.
  void enter(Context* context) {
    const std::lock_guard guard(mutex_);
    context_ = context;
    if (context != nullptr && machine_.stop_requested()) context->request_stop();
  }

  void step(const Launch& launch) {
    if (std::exchange(parked_, false)) {
      if (options_.bind_slot) options_.bind_slot(launch.allocation.lead);  // the slot may have changed
      attempt_->proceed(launch.allocation.lead);
    }
    auto done = attempt_->step();
    if (done.refused) stream_.send(std::move(*done.refused));
    if (!done.report) {
      if (done.made) stream_.send(Checkpointed{launch.trial, launch.attempt, std::move(*done.made), member(launch)});
      if (done.stopped)
        end(Stopped{launch.trial, launch.attempt, member(launch)}, true);
      else
        end(Finished{launch.trial, launch.attempt, member(launch)}, true);
      return;
    }
    {
      const std::lock_guard guard(mutex_);
      machine_.reported();
    }
    stream_.send(Reported{launch.trial, launch.attempt, std::move(*done.report), std::move(done.made), member(launch),
                          false, attempt_->context().requested_workers()});
  }

  // The trial writes the files; the sealer hashes and syncs them in the background.
  void save(const Launch& launch, bool at_end = false) {
    if (!attempt_) return;
    if (auto writer = at_end ? attempt_->save_at_end() : attempt_->save()) seal(launch, std::move(*writer));
  }
  // Saves the checkpoint that an attempt has left which was told to end within a step.
  void save_left(const Launch& launch) {
    if (!attempt_) return;
    try {
      if (auto writer = attempt_->save_left()) seal(launch, std::move(*writer));
    } catch (const std::exception& error) { stream_.send(SaveFailed{launch.trial, attempt_->steps(), error.what()}); }
  }
  void seal(const Launch& launch, CheckpointWriter writer) {
    if (!sealer_) sealer_.emplace(*store_);
    sealer_->submit(std::move(writer), [this, attempt = launch.attempt, member = member(launch)](SealResult result) {
      tell_saved(std::move(result), attempt, [this](const wire::Message& message) { stream_.send(message); }, member);
    });
  }
  void stop_and_save(const Launch& launch) {
    if (!attempt_) return;
    if (auto made = attempt_->stop_and_save())
      stream_.send(Checkpointed{launch.trial, launch.attempt, std::move(*made), member(launch)});
  }
  void sealed(TrialId trial) {
    if (sealer_) sealer_->wait(trial);
  }

  // Frees what the attempt holds before its end is sent, except what the next attempt can reuse.
  void end(const wire::Message& last, bool reuse) {
    const Launch& launch = machine_.launch();
    parked_ = false;
    sealed(launch.trial);
    if (!reuse || !program_.reusable()) destroy();
    finish(last);
  }
  void fail_attempt(Cause cause) {
    const Launch& launch = machine_.launch();
    parked_ = false;
    bool save = false;
    {
      const std::lock_guard guard(mutex_);
      save = machine_.save_requested();
    }
    if (save) save_left(launch);
    if (attempt_)
      cause =
          attempt_->blame(std::move(cause), [this](const auto& checkpoint, const auto& why) { lose(checkpoint, why); });
    destroy();
    sealed(launch.trial);
    finish(Failed{launch.trial, launch.attempt, std::move(cause), member(launch)});
  }
  void finish(const wire::Message& last) {
    std::fflush(nullptr);
    keep_log(nullptr);
    {
      const std::lock_guard guard(mutex_);
      context_ = nullptr;
      machine_.ended();
    }
    stream_.send(last);
  }
  void destroy() {
    enter(nullptr);
    attempt_.reset();
  }

  // The trial's output goes directly to the file, so its size has to be checked from time to time.
  void keep_log(std::unique_ptr<BoundedLog> log) {
    const std::lock_guard guard(log_mutex_);
    if (log_) log_->trim();
    log_ = std::move(log);
  }
  // Checks the log. Returns whether there is a log to check, or soon will be.
  bool tend_log() {
    {
      const std::lock_guard guard(mutex_);
      if (!options_.redirect_output || program_.external() || !machine_.busy()) return false;
    }
    const std::lock_guard guard(log_mutex_);
    if (log_) log_->trim();
    return true;
  }

  static void redirect(const std::filesystem::path& log) {
    std::fflush(nullptr);
    const Descriptor file = open_at(AT_FDCWD, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (!file) fail_io(errno, "open", log);
    ::dup2(file.get(), STDOUT_FILENO);
    ::dup2(file.get(), STDERR_FILENO);
  }

  static constexpr int disconnected = 3;  // exit code
  static constexpr double log_look = 0.2;

  WorkerStream stream_;
  const Program& program_;
  WorkerOptions options_;
  std::filesystem::path directory_;
  std::optional<LocalCheckpointStore> store_;
  std::optional<CheckpointSealer<LocalCheckpointStore>> sealer_;

  std::mutex log_mutex_;
  std::unique_ptr<BoundedLog> log_;

  std::mutex mutex_;  // guards machine_, context_, seat_ and group_
  std::condition_variable changed_;
  WorkerMachine machine_;
  Context* context_ = nullptr;
  GroupMessage seat_;  // identifies this worker in its group
  std::shared_ptr<Group> group_;
  bool leaving_ = false;

  std::optional<AttemptRun> attempt_;  // running, or ended and kept for the next attempt
  bool parked_ = false;
};

}  // namespace detail

/// Serves a driver at the other end of `fd` (a socket) until it sends Shutdown; then returns the exit code for the
/// process. If the stream closes before that, the process exits at once with code 3. Call it on the process's main
/// thread; the Program's code runs there.
inline int run_worker(int fd, const Program& program, WorkerOptions options = {}) {
  return detail::WorkerLoop(fd, program, std::move(options)).run();
}

}  // namespace hypertune::inline v0
