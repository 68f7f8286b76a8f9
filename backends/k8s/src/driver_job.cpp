// A driver in the cluster, from outside.
#include "driver_manifest.hpp"
#include "json_at.hpp"
#include "options_access.hpp"
#include "pod_manifest.hpp"
#include "pod_shell.hpp"
#include "pod_state.hpp"
#include "preflight.hpp"
#include "wait_a_while.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/driver_job.hpp>
#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/shipping.hpp>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <mutex>
#include <random>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;
using Phase = DriverJobState::Phase;
using hypertune::detail::steady_seconds;

}  // namespace

struct DriverJob::Impl {
  explicit Impl(DriverJobOptions given)
      : options(std::move(given)),
        client(load_access(access_of(options.workers))),
        name(kubernetes_name(options.name.empty() ? "experiment" : options.name, 40)) {}

  std::string place(std::initializer_list<std::string_view> group, std::string_view kind,
                    std::string_view object = {}) const {
    std::string path;
    for (const auto part : group) path += fmt::format("/{}", part);
    path += api_path({"namespaces", client.name_space(), kind});
    return object.empty() ? path : path + api_path({object});
  }
  std::string job_path() const { return place({"apis", "batch", "v1"}, "jobs", name); }
  std::string pods_path(std::string_view pod = {}) const { return place({"api", "v1"}, "pods", pod); }
  std::string claim() const { return options.volume.empty() ? name : options.volume; }

  std::optional<json::value> get(const std::string& path, const std::stop_token& stop, Query query = {}) {
    try {
      return client.call({.path = path, .query = std::move(query)}, stop).json();
    } catch (const ApiError& error) {
      if (error.not_found()) return std::nullopt;
      throw;
    }
  }
  bool remove(const std::string& path, const std::stop_token& stop) {
    try {
      client.call({.method = Method::remove,
                   .path = path,
                   .body = R"({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})"},
                  stop);
      return true;
    } catch (const ApiError& error) {
      if (error.not_found()) return false;
      throw;
    }
  }
  void create(const std::string& path, const json::object& object, const std::stop_token& stop) {
    client.call({.method = Method::post, .path = path, .body = json::serialize(object), .named = true}, stop);
  }
  // Pods of the driver, the newest one first.
  std::vector<PodState> pods(const std::stop_token& stop, std::string_view role = "driver") {
    const auto list =
        get(pods_path(), stop, {{"labelSelector", fmt::format("{}={},{}={}", job_label, name, role_label, role)}});
    std::vector<std::pair<std::string, PodState>> all;
    if (list)
      for (const auto& each : list->at("items").as_array())
        all.emplace_back(text_at(each, "/metadata/creationTimestamp"), pod_state(each.as_object(), "driver"));
    // Of those made in the same second the one that is to stay comes first.
    const auto goes = [](const PodState& pod) { return pod.leaving || pod.phase == PodState::Phase::ended; };
    hypertune::detail::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return std::pair(goes(a.second), b.first) < std::pair(goes(b.second), a.first);
    });
    std::vector<PodState> states;
    for (auto& each : all) states.push_back(std::move(each.second));
    return states;
  }
  DriverJobState state(const std::stop_token& stop) {
    const auto job = get(job_path(), stop);
    if (!job) return {.phase = Phase::none, .pod = {}, .sentence = "there is none"};
    DriverJobState state{.phase = Phase::waiting, .pod = {}, .sentence = "has no pod yet"};
    const auto all = pods(stop);
    if (!all.empty()) {
      state.pod = all.front().name;
      state.sentence = all.front().sentence;
      if (all.front().phase == PodState::Phase::running && !all.front().leaving) state.phase = Phase::running;
    }
    // It is complete, or has failed, only when its last pod is gone: one on a node that is gone may stay for long.
    if (has_condition(*job, "Complete") || has_condition(*job, "SuccessCriteriaMet"))
      return {.phase = Phase::done, .pod = state.pod, .sentence = "has ended"};
    if (has_condition(*job, "Failed") || has_condition(*job, "FailureTarget")) {
      boost::system::error_code error;
      std::string why;
      for (const auto& each : job->find_pointer("/status/conditions", error)->as_array())
        if (text_at(each, "/type") == "Failed" || (text_at(each, "/type") == "FailureTarget" && why.empty()))
          why = fmt::format("{}: {}", text_at(each, "/reason"), text_at(each, "/message"));
      return {.phase = Phase::failed, .pod = state.pod, .sentence = why};
    }
    if (is_suspended(*job))
      return {.phase = Phase::suspended,
              .pod = state.pod,
              .sentence = "waits until its job is resumed, which is suspended"};
    return state;
  }
  // Whether another pod is the driver's, or none will be any more. False also where nobody says.
  bool is_past(const std::string& pod, const std::stop_token& stop) {
    try {
      const auto now = state(stop);
      return is_over(now.phase) || (now.phase == Phase::running && now.pod != pod);
    } catch (const ApiError& error) {
      if (error.code() != Errc::io) throw;
      return false;
    }
  }
  bool is_over(Phase phase) const { return phase == Phase::done || phase == Phase::failed || phase == Phase::none; }

  DriverJobOptions options;
  Client client;
  std::string name;
};

DriverJob::DriverJob(DriverJobOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
DriverJob::~DriverJob() = default;
DriverJob::DriverJob(DriverJob&&) noexcept = default;
DriverJob& DriverJob::operator=(DriverJob&&) noexcept = default;

const std::string& DriverJob::name() const { return impl_->name; }
const std::string& DriverJob::name_space() const { return impl_->client.name_space(); }
DriverJobState DriverJob::state(const std::stop_token& stop) const { return impl_->state(stop); }

void DriverJob::submit(const DriverFiles& files, const std::function<void(const std::string&)>& waits,
                       const std::stop_token& stop) {
  auto& self = *impl_;
  if (self.options.suspend) fail(Errc::usage, "a suspended job gets no files: submit it, and suspend it then");
  require_permissions(self.client,
                      {{"batch", "jobs", "create", "to submit it"},
                       {"batch", "jobs", "get", "to follow it"},
                       {"batch", "jobs", "delete", "to end it"},
                       {"", "pods", "list", "to find its pod"},
                       {"", "pods/exec", "create", "to bring its files"},
                       {"", "pods/exec", "get", "to bring its files"}},
                      stop);
  if (const auto now = self.state(stop); !self.is_over(now.phase))
    fail(Errc::busy, "the job '{}' is under way in namespace '{}': follow it with attach, or end it with down",
         self.name, name_space());
  if (self.remove(self.job_path(), stop))
    while (self.get(self.job_path(), stop)) {
      if (stop.stop_requested()) return;
      wait_a_while(stop, 0.2);
    }
  for (const auto& claim : {self.options.volume, self.options.workers.volume})
    if (!claim.empty() && !self.get(self.place({"api", "v1"}, "persistentvolumeclaims", claim), stop))
      fail(Errc::usage, "there is no volume claim '{}' in namespace '{}'", claim, name_space());
  if (self.options.volume.empty())
    self.create(self.place({"api", "v1"}, "persistentvolumeclaims"), claim_manifest(self.options, self.name), stop);
  self.create(self.place({"apis", "batch", "v1"}, "jobs"), driver_job_manifest(self.options, self.name, self.claim()),
              stop);

  std::string told;
  DriverJobState state;
  for (;;) {
    if (stop.stop_requested()) return;
    state = self.state(stop);
    if (state.phase == Phase::running) break;
    if (self.is_over(state.phase))
      fail(Errc::io, "the job '{}' has ended before it began: {}", self.name, state.sentence);
    if (waits && state.sentence != told) waits(told = state.sentence);
    wait_a_while(stop, 0.3);
  }
  auto shell = shell_of(self.client, state.pod, "driver", stop);
  shell.facts = remote::ask_facts(shell);
  const auto folder = fmt::format("{}/{}", volume_folder, self.name);
  // A driver that was submitted before has its files there; these are the newer ones.
  shell.must("make way for the files", R"sh(cd -- "$1" && rm -f ready)sh", {folder});
  if (self.options.workers.program.empty()) {
    const auto program = files.program.empty() ? std::filesystem::read_symlink("/proc/self/exe") : files.program;
    remote::upload(shell, program, folder + "/hypertune");
    remote::check_program(shell, program, folder + "/hypertune");
  }
  for (const auto& file : files.files) {
    auto mount = file;
    mount.remote = folder + "/" + mount.remote;
    if (std::filesystem::is_directory(mount.local))
      remote::mount_files(shell, mount, {.directory = folder + "/cache"});
    else
      remote::upload(shell, mount.local, mount.remote);
  }
  std::string arguments;
  for (const auto& word : files.arguments) arguments += word + "\n";
  remote::upload_text(shell, arguments, folder + "/arguments");
  shell.must("begin", R"sh(cd -- "$1" && : >ready)sh", {folder});
}

DriverJobState DriverJob::follow(const std::function<void(std::string_view)>& print,
                                 const std::function<void(const std::string&)>& says, const std::stop_token& stop) {
  auto& self = *impl_;
  constexpr std::chrono::seconds looks_every{10};
  constexpr Seconds shortest = 0.5, longest = 4;
  Seconds pause = shortest;  // while nothing changes
  std::string shown, told;
  for (;;) {
    if (stop.stop_requested()) return self.state({});
    DriverJobState state;
    try {
      state = self.state(stop);
    } catch (const ApiError& error) {  // it comes back
      if (error.code() != Errc::io) throw;
      if (says && told != error.what()) says(told = error.what());
      wait_a_while(stop, 1);
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
        // The log of a pod on a node that is gone never ends.
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
    wait_a_while(stop, pause);
    pause = std::min(longest, pause * 1.5);
  }
}

int DriverJob::run_beside(const std::vector<std::string>& arguments, const std::function<bool(std::string_view)>& print,
                          const std::stop_token& stop) {
  auto& self = *impl_;
  if (self.options.volume.empty())
    if (const auto job = self.get(self.job_path(), stop))
      self.options.volume = text_at(*job, "/spec/template/spec/volumes/0/persistentVolumeClaim/claimName");
  auto state = self.state(stop);
  std::string pod = state.phase == Phase::running ? state.pod : "";
  struct Reader {  // goes with this call
    Impl* self;
    std::string pod = {};
    ~Reader() {
      try {
        if (!pod.empty()) self->remove(self->pods_path(pod), {});
      } catch (const std::exception&) {  // it ends by itself, and goes with the namespace's finished pods
      }
    }
  } reader{&self};
  if (pod.empty()) {
    std::random_device device;
    pod = fmt::format("{}-reader-{:06x}", self.name, device() & 0xffffffU);
    constexpr int seconds = 300;
    self.create(self.pods_path(), reader_pod_manifest(self.options, self.name, pod, self.claim(), seconds), stop);
    reader.pod = pod;
    const Seconds until = steady_seconds() + 60;
    for (;;) {
      const auto found = self.get(self.pods_path(pod), stop);
      const auto seen = found ? pod_state(found->as_object(), "driver") : PodState();
      if (seen.phase == PodState::Phase::running) break;
      if (seen.phase == PodState::Phase::ended || seen.hope == PodState::Hope::none || steady_seconds() > until ||
          stop.stop_requested())
        fail(Errc::io, "the pod that reads the experiment's folder does not run: it {}",
             seen.sentence.empty() ? "is gone" : seen.sentence);
      wait_a_while(stop, 0.2);
    }
  }
  PodCommand command{.pod = pod,
                     .command = {"sh", "-c",
                                 R"sh(cd -- "$1" || exit 1; shift
if [ -x ./hypertune ]; then exec ./hypertune "$@"; else exec "$HYPERTUNE_PROGRAM" "$@"; fi)sh",
                                 "hypertune", fmt::format("{}/{}", volume_folder, self.name)},
                     .container = "driver"};
  command.command.insert(command.command.end(), arguments.begin(), arguments.end());
  const auto done = self.client.run(command, {.take_out = print, .take_err = print, .deadline = 600}, stop);
  return done.exit;
}

bool DriverJob::remove(bool volume, const std::stop_token& stop) {
  auto& self = *impl_;
  bool was = self.remove(self.job_path(), stop);
  // Also what a driver outside of the cluster has made for the same experiment.
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
    wait_a_while(stop, 0.3);
  }
  bool had_volume = false;
  if (volume && self.options.volume.empty())
    had_volume = self.remove(self.place({"api", "v1"}, "persistentvolumeclaims", self.name), stop);
  return was || had_volume;
}

void end_own_job() noexcept {
  const char* name = std::getenv(std::string(job_variable).c_str());
  if (name == nullptr || *name == '\0') return;
  try {
    Client client(load_access());
    client.call({.method = Method::patch,
                 .path = api_path({"apis", "batch", "v1", "namespaces", client.name_space(), "jobs", name}),
                 .body = R"({"spec": {"backoffLimit": 0}})",
                 .type = Body::merge_patch,
                 .deadline = 30});
  } catch (const std::exception& error) {
    hypertune::detail::say(fmt::format("hypertune: the job '{}' will be tried again: {}", name, error.what()));
  }
}

}  // namespace hypertune::inline v0::k8s
