// PodFleet: the pods of one experiment.
#include "pod_fleet.hpp"

#include "json_at.hpp"
#include "pod_log.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/remote/dialer.hpp>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

using hypertune::detail::steady_seconds;
using remote::DialError;
using remote::FailureClass;

constexpr std::string_view template_label = "hypertune/template";

// A random suffix for unique names: a deleted pod may still exist for a while.
std::string ending() {
  constexpr std::string_view letters = "bcdfghjklmnpqrstvwxz2456789";  // letters that form no words
  std::random_device device;
  std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
  std::string text;
  for (int i = 0; i < 5; ++i) text += letters[any(device)];
  return text;
}

bool is_quota(const ApiError& error) {
  return error.forbidden() && std::string_view(error.what()).find("exceeded quota") != std::string_view::npos;
}

}  // namespace

PodFleet::PodFleet(Client client, KubernetesOptions options, FleetPlan plan, std::shared_ptr<remote::Notices> notices)
    : client_(std::move(client)),
      options_(std::move(options)),
      plan_(std::move(plan)),
      notices_(std::move(notices)),
      container_(container_of(options_)),
      memory_(options_.memory) {
  // Pods of an earlier run are used again if their manifest is the one that would be made now.
  const auto model = pod_manifest(
      options_,
      {.name = "x", .experiment = plan_.experiment, .worker = "x", .command = plan_.command, .secret = plan_.secret});
  auto text = boost::json::serialize(model);
  if (!options_.gpu_class.empty()) text += fmt::format(" {} {}", options_.gpu_class, options_.gpus);
  if (plan_.gang.least > 1) text += fmt::format(" {} {}", plan_.gang.pods, plan_.gang.least);
  template_ = hypertune::detail::ContentHash::of(text).substr(0, 16);
  // With reuse off, never: such a pod may already have run a trial.
  if (!options_.reuse) template_ += ending();
  watch_ =
      client_.watch({.path = pods_path(),
                     .label_selector = fmt::format("{}={},{}=worker", experiment_label, plan_.experiment, role_label)},
                    [this](const WatchEvent& event) { on_pod_event(event); });
  // A node reports a container's start at once by an event, but in the pod's status up to a second later.
  if (plan_.driver.empty())
    started_events_ = client_.watch(
        {.path = api_path({"api", "v1", "namespaces", client_.name_space(), "events"}),
         .field_selector = fmt::format("reason=Started,involvedObject.fieldPath=spec.containers{{{}}}", container_)},
        [this](const WatchEvent& event) { on_started_event(event); });
}

std::string PodFleet::pods_path() const { return api_path({"api", "v1", "namespaces", client_.name_space(), "pods"}); }

void PodFleet::on_pod_event(const WatchEvent& event) {
  using Kind = WatchEvent::Kind;
  const std::lock_guard lock(mutex_);
  switch (event.kind) {
    case Kind::added:
    case Kind::modified: {
      auto state = pod_state(*event.object, container_);
      const auto name = state.name;
      if (state.reason == "OOMKilled" && raise_memory(state.memory)) changed_.notify_all();
      if (!pods_.see(std::move(state), steady_seconds())) return;
      const auto* labels = object_in(event.object->at("metadata"), "labels");
      if (labels == nullptr || text_in(*labels, template_label) != template_) pods_.discard(name);
      break;
    }
    case Kind::deleted: pods_.forget(pod_state(*event.object, container_).name); break;
    case Kind::synced:
      synced_ = true;
      trouble_.clear();
      break;
    case Kind::trouble: trouble_ = event.text; break;
  }
  ++changes_;
  changed_.notify_all();
}

void PodFleet::on_started_event(const WatchEvent& event) {
  if (event.kind == WatchEvent::Kind::trouble && event.status == 403) {
    const std::lock_guard lock(mutex_);
    cannot_watch_events_ = true;  // rely on the pod's status instead
  }
  if (event.object == nullptr || event.kind == WatchEvent::Kind::deleted) return;
  if (const auto* about = object_in(*event.object, "involvedObject")) started(std::string(text_in(*about, "name")));
}

void PodFleet::started(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  if (!pods_.start(pod)) return;
  ++changes_;
  changed_.notify_all();
}

void PodFleet::pause(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Seconds seconds) const {
  changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds),
                    [this, seen = changes_] { return changes_ != seen; });
}

PodState PodFleet::acquire(const std::string& worker, const std::stop_token& stop,
                           const std::function<void(const std::string&)>& chosen) {
  struct Entry {  // keeps an entry in waiting_ during this call
    PodFleet& fleet;
    const std::string& worker;
    ~Entry() {
      const std::lock_guard lock(fleet.mutex_);
      fleet.waiting_.erase(worker);
    }
  } const entry{*this, worker};
  std::unique_lock lock(mutex_);
  pods_.want(worker);
  const auto say = [&](std::string word, std::string sentence, bool cannot_start = false) {
    waiting_[worker] = {worker, std::move(word), std::move(sentence), cannot_start};
  };
  std::string made;  // a pod made here that the watch has not reported yet
  Seconds since_made = steady_seconds();
  for (;;) {
    if (stop.stop_requested() || !pods_.wants(worker))
      throw DialError(FailureClass::transient, "it is not needed any more");
    if (!synced_) {
      if (trouble_.empty())
        say("Pending", "has been asked for");
      else
        say("NoAnswer", "waits for the API server (" + trouble_ + ")");
      pause(lock, stop, 1);
      continue;
    }
    if (!suspended_.empty()) {
      say("Suspended", fmt::format("waits until the job '{}' is resumed, which is suspended", suspended_));
      made.clear();
      pause(lock, stop, 5);
      continue;
    }
    const auto* state = pods_.usable_of(worker);
    const auto* end_of_it = state == nullptr && !made.empty() ? pods_.find_or_last(made) : nullptr;
    if (state == nullptr && !made.empty() && end_of_it == nullptr) {
      pause(lock, stop, 1);
      continue;
    }
    if (end_of_it != nullptr) {
      // The pod that was made here has ended, or is being deleted, before anything ran in it.
      const auto end = *end_of_it;
      lock.unlock();
      throw end_error(end, stop);
    }
    if (state == nullptr) {
      say("Pending", "has been asked for");
      lock.unlock();
      made = make_pod(worker, stop);
      since_made = steady_seconds();
      if (chosen) chosen(made);
      lock.lock();
      continue;
    }
    if (state->phase == PodState::Phase::running) return *state;
    if (std::exchange(made, state->name) != state->name && chosen) chosen(made);
    // A node that may be dead is better than none, and if it is dead, that will soon be known. Whether nodes are
    // avoided now does not matter: the pod keeps the exclusions that it was made with.
    constexpr Seconds picky_for = 5;
    if (state->reason == "Unschedulable" && state->avoids && steady_seconds() - since_made > picky_for) {
      pods_.clear_avoided();
      pods_.discard(std::exchange(made, {}));
      continue;
    }
    constexpr Seconds doubted_for = 60;
    const auto since = pods_.unlikely_since(made);
    say(state->reason, state->sentence, since && steady_seconds() - *since > doubted_for);
    pause(lock, stop, 5);
  }
}

DialError PodFleet::end_error(const PodState& end, const std::stop_token& stop) {
  const bool taken = !end.ended_by_itself && (end.disrupted || end.leaving);
  const auto failure = end.prospect == PodState::Prospect::never ? FailureClass::permanent
                       : taken                                   ? FailureClass::transient
                                                                 : FailureClass::unknown;
  const auto tail = taken ? std::string() : log_tail(end.name, stop);
  return DialError(failure, fmt::format("its pod {} {}{}", end.name, end.sentence, tail));
}

std::optional<DialError> PodFleet::find_end_error(const std::string& pod, const std::stop_token& stop, Seconds moment) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, std::chrono::duration<Seconds>(moment),
                    [&] { return pods_.find_ended_by_itself(pod) != nullptr; });
  const auto* end = pods_.find_ended_by_itself(pod);
  if (end == nullptr) return std::nullopt;
  const auto state = *end;
  lock.unlock();
  return end_error(state, stop);
}

// Cached, because a pod that has ended is deleted soon, and its log with it.
std::string PodFleet::log_tail(const std::string& pod, const std::stop_token& stop) {
  const std::lock_guard lock(log_tails_mutex_);
  if (const auto known = log_tails_.find(pod); known != log_tails_.end()) return known->second;
  const auto said = end_of_log(client_, pod, container_, stop);
  constexpr std::size_t most = 1000;
  if (log_tails_.size() >= most) log_tails_.clear();
  return log_tails_[pod] = said.empty() ? "" : log_ends_with + said;
}

std::string PodFleet::make_pod(const std::string& worker, const std::stop_token& stop) {
  PodPlan pod{.name = fmt::format("{}-{}-{}", plan_.name, worker, ending()),
              .experiment = plan_.experiment,
              .worker = worker,
              .command = plan_.command,
              .driver = plan_.driver,
              .secret = plan_.secret};
  Seconds wait = 2;
  for (;;) {
    try {
      pod.owner = owner(stop);
      make_objects(pod, stop);
      {
        const std::lock_guard lock(mutex_);
        if (!pods_.wants(worker)) throw DialError(FailureClass::transient, "it is not needed any more");
        if (!suspended_.empty()) throw DialError(FailureClass::transient, "its owner is suspended");
        pod.avoid_nodes = pods_.avoided(steady_seconds());
      }
      auto options = options_;
      {
        const std::lock_guard lock(mutex_);
        options.memory = memory_;
      }
      auto manifest = pod_manifest(options, pod);
      manifest["metadata"].get_object()["labels"].get_object()[template_label] = boost::json::string(template_);
      client_.call(
          {.method = Method::post, .path = pods_path(), .body = boost::json::serialize(manifest), .named = true}, stop);
      return pod.name;
    } catch (const ApiError& error) {
      if (stop.stop_requested()) throw DialError(FailureClass::transient, "it is not needed any more");
      if (!is_quota(error)) {
        const bool lasts = error.code() == Errc::usage && !error.conflict();
        throw DialError(lasts ? FailureClass::permanent : FailureClass::transient,
                        fmt::format("no pod can be made: {}", error.what()), error.code());
      }
      // Quota becomes free when other pods end.
      std::unique_lock lock(mutex_);
      waiting_[worker] = {worker, "Quota", fmt::format("waits for quota ({})", error.what()), false};
      pause(lock, stop, wait);
      wait = std::min(wait * 1.5, 20.0);
    }
  }
}

void PodFleet::discard(const std::string& pod, bool node_in_doubt) {
  const std::lock_guard lock(mutex_);
  if (node_in_doubt)
    pods_.discard_and_avoid_node(pod, steady_seconds());
  else
    pods_.discard(pod);
  ++changes_;
  changed_.notify_all();
}

void PodFleet::release(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  pods_.release(worker);
  if (!options_.reuse) pods_.discard_all_of(worker);
  ++changes_;
  changed_.notify_all();  // ends an acquire() that waits for a pod of this worker
}

std::vector<PodFleet::Waiting> PodFleet::waiting() const {
  const std::lock_guard lock(mutex_);
  std::vector<Waiting> all;
  for (const auto& each : waiting_) all.push_back(each.second);
  return all;
}

std::string PodFleet::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void PodFleet::remove_pod(const std::string& pod, const std::stop_token& stop) {
  try {
    client_.call({.method = Method::remove,
                  .path = api_path({"api", "v1", "namespaces", client_.name_space(), "pods", pod}),
                  .deadline = 10},
                 stop);
    const std::lock_guard lock(mutex_);
    pods_.deleted(pod);
  } catch (const ApiError& error) {
    if (!error.not_found()) throw;
    const std::lock_guard lock(mutex_);
    pods_.forget(pod);
  }
}

// The pod's keeper has the annotation as a file, and reads it again and again.
void PodFleet::show_driver(const std::string& pod, const std::stop_token& stop) {
  const boost::json::object annotations{{driver_annotation, boost::json::string(plan_.driver)}};
  const boost::json::object change{{"metadata", {{"annotations", annotations}}}};
  try {
    client_.call({.method = Method::patch,
                  .path = api_path({"api", "v1", "namespaces", client_.name_space(), "pods", pod}),
                  .body = boost::json::serialize(change),
                  .type = Body::merge_patch,
                  .deadline = 10},
                 stop);
  } catch (const ApiError& error) {
    if (!error.not_found()) throw;
  }
}

std::vector<PodState> PodFleet::reconcile(const std::stop_token& stop) {
  std::vector<std::string> extra, misdirected, ended;
  std::vector<PodState> leaving, small;
  bool cannot_watch_events = false, some = false;
  {
    const std::lock_guard lock(mutex_);
    some = !pods_.all().empty();
    cannot_watch_events = std::exchange(cannot_watch_events_, false);
    if (synced_) extra = suspended_.empty() ? pods_.superfluous() : pods_.remaining();
    if (!plan_.driver.empty()) misdirected = pods_.with_other_driver(plan_.driver);
    leaving = pods_.newly_leaving();
    if (options_.max_memory > 0) small = pods_.with_less_memory(memory_);
    std::copy_if(extra.begin(), extra.end(), std::back_inserter(ended),
                 [&](const auto& pod) { return pods_.find_ended_by_itself(pod) != nullptr; });
  }
  if (cannot_watch_events) started_events_.end();
  std::string refused;
  bool answers = true;
  // What is refused is tried again later, and keeps nothing else from being done: if the owner's deadline were not
  // moved, all pods would end. The watch reports a server that does not answer.
  const auto attempt = [&](const auto& work) {
    if (!answers) return;
    try {
      work();
    } catch (const ApiError& error) {
      answers = error.status() != 0;
      if (error.code() == Errc::usage && !error.conflict()) refused = error.what();
    }
  };
  attempt([&] { keep_owner(stop); });
  if (some) attempt([&] { owner(stop); });  // also owns pods taken over from a killed driver
  for (const auto& pod : misdirected) attempt([&] { show_driver(pod, stop); });
  for (const auto& pod : small) attempt([&] { resize(pod, stop); });
  for (const auto& pod : ended) log_tail(pod, stop);
  for (const auto& pod : extra) attempt([&] { remove_pod(pod, stop); });
  if (!refused.empty() && std::exchange(refused_, refused) != refused)
    notices_->say(fmt::format("Kubernetes refuses what the workers need, tries again: {}", refused));
  return leaving;
}

void PodFleet::finish() {
  std::vector<std::string> left;
  std::set<std::string> objects;
  {
    // A driver that finds nothing left to do is here before it knows the pods of the earlier one.
    constexpr std::chrono::seconds list_takes{15};
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, list_takes, [this] { return synced_ || !trouble_.empty(); });
    left = pods_.all();
    objects = objects_;
  }
  std::string trouble;
  // Delete the pods before their owner: then garbage collection makes no calls for them. It deletes pods that are left,
  // but not those of an earlier owner.
  constexpr Seconds longest = 30;
  const Seconds until = steady_seconds() + longest;
  for (const auto& pod : left) {
    if (steady_seconds() > until) trouble = "there was no time for more";
    if (!trouble.empty()) break;
    try {
      remove_pod(pod, {});
    } catch (const ApiError& error) { trouble = error.what(); }
  }
  for (const auto& path : objects) {
    if (!trouble.empty()) break;
    try {
      client_.call({.method = Method::remove, .path = path, .deadline = 10});
    } catch (const ApiError& error) {
      if (!error.not_found()) trouble = error.what();
    }
  }
  try {
    const std::lock_guard lock(owner_mutex_);
    // A driver that was killed may have left an owner Job, even if this one has not needed any.
    if (!owner_job_ && !plan_.owner && !without_owner_)
      owner_job_.emplace(client_, plan_.name + "-owner", plan_.experiment, "none");
    if (owner_job_) {
      owner_job_->remove();
      owner_job_.reset();
    }
  } catch (const ApiError& error) {
    if (!error.forbidden()) trouble = error.what();
  }
  if (!trouble.empty())
    hypertune::detail::say(
        fmt::format("hypertune: pods may be left ({}): delete them with kubectl delete pods,jobs -n {} -l {}={}",
                    trouble, client_.name_space(), experiment_label, plan_.experiment));
}

}  // namespace hypertune::inline v0::k8s
