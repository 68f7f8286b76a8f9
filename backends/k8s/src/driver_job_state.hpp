// DriverJob::State: a DriverJob's calls of Kubernetes.
#pragma once

#include "driver_files.hpp"
#include "driver_manifest.hpp"
#include "json_at.hpp"
#include "options_access.hpp"
#include "pod_manifest.hpp"
#include "pod_shell.hpp"
#include "pod_state.hpp"

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/k8s/api_error.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/driver_job.hpp>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

struct DriverJob::State {
  using Phase = DriverJobState::Phase;

  explicit State(DriverJobOptions given)
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
  std::string folder() const { return fmt::format("{}/{}", volume_folder, name); }
  static std::string submission_of(const boost::json::value& job) {
    return text_at(job, "/metadata/annotations/hypertune~1submission");
  }
  // Whether the Job's driver has begun: see begin_own_job().
  static bool has_begun(const boost::json::value& job) {
    return !text_at(job, "/metadata/annotations/hypertune~1begun").empty();
  }

  std::optional<boost::json::value> get(const std::string& path, const std::stop_token& stop, Query query = {}) {
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
  // The object, or null if the account may not read it.
  std::optional<boost::json::value> get_if_allowed(const std::string& path, const std::stop_token& stop,
                                                   Query query = {}) {
    try {
      return get(path, stop, std::move(query));
    } catch (const ApiError& error) {
      if (error.forbidden()) return boost::json::value();
      throw;
    }
  }
  // Returns false if it existed already.
  bool create(const std::string& path, const boost::json::object& object, const std::stop_token& stop) {
    return !client
                .call({.method = Method::post, .path = path, .body = boost::json::serialize(object), .named = true},
                      stop)
                .existed;
  }
  // Checks, before anything is made, that what the Job needs exists and is allowed.
  void require_all(const std::stop_token& stop);
  FilesState files_state_in_pod(const std::string& pod, const std::stop_token& stop) {
    try {
      return files_state(shell_of(client, pod, "driver", stop), folder());
    } catch (const Error&) {  // it has just ended, or cannot be asked: leave it alone
      return FilesState::all;
    }
  }
  DriverRecord record(const std::stop_token& stop);
  // Fails if a finished Job of this name has its record on another claim: a new record would begin there unnoticed.
  void require_same_record(const std::stop_token& stop);
  // Kubernetes' reason why it cannot make a pod for a Job; empty: none, or not readable by this account.
  std::string why_no_pod(const std::string& job, const std::stop_token& stop);
  // Pods of the Job's driver, the newest one first. Pods of an earlier Job of this name may still be terminating.
  std::vector<PodState> pods(const std::string& job, const std::stop_token& stop) {
    const auto list =
        get(pods_path(), stop, {{"labelSelector", fmt::format("{}={},{}=driver", job_label, name, role_label)}});
    std::vector<std::pair<std::string, PodState>> all;
    if (list)
      for (const auto& each : list->at("items").as_array())
        if (text_at(each, "/metadata/ownerReferences/0/uid") == job)
          all.emplace_back(text_at(each, "/metadata/creationTimestamp"), pod_state(each.as_object(), "driver"));
    // Of pods made in the same second, the one that is not ending comes first.
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
    return job ? state_of(*job, stop) : DriverJobState{.phase = Phase::none, .pod = {}, .sentence = "there is none"};
  }
  DriverJobState state_of(const boost::json::value& job, const std::stop_token& stop) {
    DriverJobState state{.phase = Phase::waiting, .pod = {}, .sentence = "is not made yet"};
    const auto uid = text_at(job, "/metadata/uid");
    const auto all = pods(uid, stop);
    if (all.empty()) {
      if (const auto why = why_no_pod(uid, stop); !why.empty()) state.sentence = "cannot be made: " + why;
    } else {
      state.pod = all.front().name;
      state.sentence = all.front().sentence;
      if (all.front().phase == PodState::Phase::running && !all.front().leaving) state.phase = Phase::running;
    }
    // The Job is complete, or failed, only when its last pod is gone, which takes long on a lost node. Use its
    // conditions.
    if (has_condition(job, "Complete") || has_condition(job, "SuccessCriteriaMet")) {
      const auto left = all.empty() ? std::string() : all.front().message;  // of a driver that could not begin
      return {.phase = left.empty() ? Phase::done : Phase::failed,
              .pod = state.pod,
              .sentence = left.empty() ? "has ended" : left};
    }
    if (has_condition(job, "Failed") || has_condition(job, "FailureTarget")) {
      std::string why;
      for (const auto& each : *array_at(job, "/status/conditions"))
        if (text_at(each, "/type") == "Failed" || (text_at(each, "/type") == "FailureTarget" && why.empty()))
          why = fmt::format("{}: {}", text_at(each, "/reason"), text_at(each, "/message"));
      // BackoffLimitExceeded does not say why the pod ended. Use the pod's own message.
      if (why.starts_with("BackoffLimitExceeded") && !all.empty() && all.front().phase == PodState::Phase::ended)
        why = !all.front().message.empty() ? all.front().message : fmt::format("its pod {}", all.front().sentence);
      return {.phase = Phase::failed, .pod = state.pod, .sentence = why};
    }
    if (flag_at(job, "/spec/suspend"))
      return {.phase = Phase::suspended,
              .pod = state.pod,
              .sentence = "waits until its job is resumed, which is suspended"};
    return state;
  }
  // Whether another pod is the driver's now, or there will be none any more. False also if the API server does not
  // answer.
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
  bool made_claim = false;
};

}  // namespace hypertune::inline v0::k8s
