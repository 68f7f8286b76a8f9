// DriverJob: submits, follows and deletes a driver in the cluster, from outside.
#include "driver_files.hpp"
#include "driver_job_state.hpp"
#include "driver_manifest.hpp"
#include "json_at.hpp"
#include "permissions.hpp"
#include "pod_manifest.hpp"
#include "pod_shell.hpp"
#include "process_variable.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/sleep_for.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/driver_job.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

using Phase = DriverJobState::Phase;
using hypertune::detail::steady_seconds;

}  // namespace

DriverJob::DriverJob(DriverJobOptions options) {
  check_workers(options.workers);
  state_ = std::make_unique<State>(std::move(options));
}
DriverJob::~DriverJob() = default;
DriverJob::DriverJob(DriverJob&&) noexcept = default;
DriverJob& DriverJob::operator=(DriverJob&&) noexcept = default;

const std::string& DriverJob::name() const { return state_->name; }
const std::string& DriverJob::name_space() const { return state_->client.name_space(); }
DriverJobState DriverJob::state(const std::stop_token& stop) const { return state_->state(stop); }
DriverRecord DriverJob::record(const std::stop_token& stop) const { return state_->record(stop); }
bool DriverJob::made_claim() const { return state_->made_claim; }

bool DriverJob::submit(const DriverFiles& files, const std::function<void(const std::string&)>& waits,
                       const std::stop_token& stop) {
  auto& self = *state_;
  if (self.options.suspend) fail(Errc::usage, "a suspended job gets no files: submit it, and suspend it then");
  self.require_all(stop);
  if (const auto now = self.state(stop); !self.is_over(now.phase)) {
    if (now.phase != Phase::running || self.files_state_in_pod(now.pod, stop) != FilesState::nothing)
      fail(Errc::busy, "the job '{}' is under way in namespace '{}': follow it with attach, or end it with down",
           self.name, name_space());
    if (waits) waits("waits for files that nobody brings: another job takes its place");
  }
  self.require_same_record(stop);
  if (self.remove(self.job_path(), stop))
    while (self.get(self.job_path(), stop)) {
      if (stop.stop_requested()) return false;
      hypertune::detail::sleep_for(stop, 0.2);
    }
  const auto submission = new_submission();
  self.made_claim = false;
  if (self.options.volume.empty())
    self.made_claim =
        self.create(self.place({"api", "v1"}, "persistentvolumeclaims"), claim_manifest(self.options, self.name), stop);
  const auto is_ours = [&](const std::stop_token& until) {
    const auto job = self.get(self.job_path(), until);
    return job && self.submission_of(*job) == submission;
  };
  try {
    self.create(self.place({"apis", "batch", "v1"}, "jobs"),
                driver_job_manifest(self.options, self.name, self.claim(), submission), stop);
    std::string told;
    DriverJobState state;
    while (!stop.stop_requested()) {
      state = self.state(stop);
      if (state.phase == Phase::running) break;
      if (self.is_over(state.phase))
        fail(Errc::io, "the job '{}' has ended before it began: {}", self.name, state.sentence);
      if (waits && state.sentence != told) waits(told = state.sentence);
      hypertune::detail::sleep_for(stop, 0.3);
    }
    if (!is_ours(stop))
      fail(Errc::busy,
           "another submission of '{}' has begun at the same time, in namespace '{}': follow it with attach", self.name,
           name_space());
    auto shell = shell_of(self.client, state.pod, "driver", stop);
    copy_files(shell, files, self.options.workers.program.empty(), self.folder(), submission);
  } catch (const std::exception&) {
    // Nothing has begun. If something cannot be deleted here, it ends by itself: see driver_script().
    try {
      if (is_ours({})) remove(self.made_claim, {});
    } catch (const std::exception& error) {
      hypertune::detail::say(fmt::format("hypertune: the job '{}' may be left: {}", self.name, error.what()));
    }
    if (stop.stop_requested()) return false;
    throw;
  }
  // Wait for the driver to begin, or to report that it cannot. One that reports nothing may still work.
  constexpr Seconds longest = 60;
  const Seconds until = steady_seconds() + longest;
  try {
    while (!stop.stop_requested()) {
      const auto job = self.get(self.job_path(), stop);
      if (!job || self.has_begun(*job) || self.is_over(self.state_of(*job, stop).phase)) break;
      if (steady_seconds() > until) {
        if (waits) waits("has its files, but has not said yet that it has begun");
        break;
      }
      hypertune::detail::sleep_for(stop, 0.3);
    }
  } catch (const ApiError& error) {  // everything is in place, and follow() will ask again
    if (error.code() != Errc::io) throw;
  }
  return true;
}

DriverJobState DriverJob::follow(const std::function<void(std::string_view)>& print,
                                 const std::function<void(const std::string&)>& says, const std::stop_token& stop) {
  auto& self = *state_;
  constexpr std::chrono::seconds looks_every{10};
  constexpr Seconds shortest = 0.5, longest = 4;
  Seconds pause = shortest;  // while nothing changes
  std::string shown, told;
  for (;;) {
    if (stop.stop_requested()) return self.state({});
    DriverJobState state;
    try {
      state = self.state(stop);
    } catch (const ApiError& error) {  // wait until it answers again
      if (error.code() != Errc::io) throw;
      if (says && told != error.what()) says(told = error.what());
      hypertune::detail::sleep_for(stop, 1);
      continue;
    }
    if (!state.pod.empty() && state.pod != shown && state.phase != Phase::waiting) {
      struct Said {
        std::mutex mutex;
        std::condition_variable_any more;
        std::deque<std::string> lines;
        bool over = false;
      } said;
      const auto follower =
          self.client.follow_log({.pod = state.pod, .container = "driver"}, [&](const LogEvent& event) {
            const std::lock_guard lock(said.mutex);
            if (event.kind == LogEvent::Kind::line) said.lines.emplace_back(event.text);
            if (event.kind == LogEvent::Kind::ended) said.over = true;
            said.more.notify_all();
          });
      std::unique_lock lock(said.mutex);
      for (;;) {
        const bool silent =
            !said.more.wait_for(lock, stop, looks_every, [&] { return said.over || !said.lines.empty(); });
        const auto lines = std::exchange(said.lines, {});
        bool over = said.over || stop.stop_requested();
        lock.unlock();
        for (const auto& line : lines) print(line);
        // The log of a pod on a lost node never ends.
        if (silent && !over) over = self.is_past(state.pod, stop);
        lock.lock();
        if (over && said.lines.empty()) break;
      }
      shown = state.pod;
      continue;
    }
    if (self.is_over(state.phase) || stop.stop_requested()) return state;
    if (std::exchange(told, state.sentence) != state.sentence) {
      pause = shortest;
      if (says && !told.empty()) says(told);
    }
    hypertune::detail::sleep_for(stop, pause);
    pause = std::min(longest, pause * 1.5);
  }
}

bool DriverJob::remove(bool volume, const std::stop_token& stop) {
  auto& self = *state_;
  require_permissions(
      self.client, permissions_for(volume ? std::vector{Use::submit, Use::new_claim} : std::vector{Use::submit}), stop);
  const bool made = volume && self.record(stop).made;
  bool was = self.remove(self.job_path(), stop);
  // Also delete the jobs that a driver outside of the cluster has made for the same experiment.
  const Query ours{{"labelSelector", fmt::format("{}={}", experiment_label, self.name)}};
  if (const auto jobs = self.get(self.place({"apis", "batch", "v1"}, "jobs"), stop, ours))
    for (const auto& job : jobs->at("items").as_array())
      was = self.remove(self.place({"apis", "batch", "v1"}, "jobs", text_at(job, "/metadata/name")), stop) || was;
  const auto left = [&] {
    const auto pods =
        self.get(self.pods_path(), stop, {{"labelSelector", fmt::format("{}={}", experiment_label, self.name)}});
    return self.get(self.job_path(), stop) || (pods && !pods->at("items").as_array().empty());
  };
  constexpr Seconds longest = 120;
  const Seconds until = steady_seconds() + longest;
  while (left()) {
    if (stop.stop_requested()) return was;
    if (steady_seconds() > until)
      fail(Errc::io, "pods of '{}' are still ending; see kubectl get pods -n {} -l {}={}", self.name, name_space(),
           experiment_label, self.name);
    hypertune::detail::sleep_for(stop, 0.3);
  }
  bool had_volume = false;
  if (made) had_volume = self.remove(self.place({"api", "v1"}, "persistentvolumeclaims", self.name), stop);
  return was || had_volume;
}

namespace {

void patch_own_job(const boost::json::object& patch, const char* otherwise) noexcept {
  const auto name = variable_of_process(job_variable);
  if (!name) return;
  try {
    Client client(load_access());
    client.call({.method = Method::patch,
                 .path = api_path({"apis", "batch", "v1", "namespaces", client.name_space(), "jobs", *name}),
                 .body = boost::json::serialize(patch),
                 .type = Body::merge_patch,
                 .deadline = 30});
  } catch (const std::exception& error) {
    hypertune::detail::say(fmt::format("hypertune: the job '{}' {}: {}", *name, otherwise, error.what()));
  }
}

}  // namespace

void begin_own_job() noexcept {
  constexpr int most = 1'000'000;
  patch_own_job({{"metadata", {{"annotations", {{begun_annotation, "true"}}}}}, {"spec", {{"backoffLimit", most}}}},
                "fails when its pod is lost");
}

void end_own_job() noexcept { patch_own_job({{"spec", {{"backoffLimit", 0}}}}, "will be tried again"); }

}  // namespace hypertune::inline v0::k8s
