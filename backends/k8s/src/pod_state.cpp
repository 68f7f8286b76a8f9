// Translates a pod's status into a PodState.
#include "pod_state.hpp"

#include "pod_manifest.hpp"
#include "status.hpp"

#include <hypertune/config/pod_capacity.hpp>
#include <hypertune/detail/utf8.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

// Control characters are replaced, as the text goes into messages.
std::string printable_in(const json::object& object, std::string_view key) {
  std::string text(text_in(object, key));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}
std::int64_t number_at(const json::object& object, std::string_view key, std::int64_t otherwise = 0) {
  const auto* value = value_in(object, key);
  if (value == nullptr) return otherwise;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error ? otherwise : number;
}

// Shortened, without a full stop at the end.
std::string one_line(std::string text, std::size_t most = 300) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return hypertune::detail::utf8_shortened(text, most);
}
std::string with_reason(std::string_view what, const std::string& why) {
  return why.empty() ? std::string(what) : fmt::format("{} ({})", what, why);
}

struct Container {
  std::string waiting, message;  // why it waits or ended
  bool running = false;
  std::optional<std::int64_t> exit_code;
  std::int64_t signal = 0;
  std::string ended;  // why it ended
};

Container container_state(const json::object& status, const std::string& name) {
  Container container;
  bool found = false;
  each_object(status, "containerStatuses", [&](const json::object& each) {
    if (found || printable_in(each, "name") != name) return;
    found = true;
    const auto* state = object_in(each, "state");
    if (state == nullptr) return;
    if (const auto* waiting = object_in(*state, "waiting")) {
      container.waiting = printable_in(*waiting, "reason");
      container.message = printable_in(*waiting, "message");
    }
    container.running = object_in(*state, "running") != nullptr;
    if (const auto* ended = object_in(*state, "terminated")) {
      container.exit_code = number_at(*ended, "exitCode");
      container.signal = number_at(*ended, "signal");
      container.ended = printable_in(*ended, "reason");
      container.message = printable_in(*ended, "message");
    }
  });
  return container;
}

// From the documentation of pod disruption conditions.
std::string_view disruption_text(std::string_view reason) {
  if (reason == "PreemptionByScheduler") return "was preempted by a pod of a higher priority";
  if (reason == "EvictionByEvictionAPI") return "was evicted (a node is drained, or somebody asked for it)";
  if (reason == "DeletionByTaintManager") return "was taken away with its node, which does not answer or is tainted";
  if (reason == "DeletionByPodGC") return "was removed, as its node is gone";
  if (reason == "TerminationByKubelet") return "was ended by its node, which is short of something or shuts down";
  return "was taken away";
}

// Why a container's command cannot be executed, in the words of runc, and how to mend it; empty: for another reason.
std::string lacks_program(const json::object& pod, const std::string& container_name, const std::string& message) {
  if (message.find("executable file not found") == std::string::npos &&
      message.find("no such file or directory") == std::string::npos)
    return {};
  const auto* spec = object_in(pod, "spec");
  const auto* metadata = object_in(pod, "metadata");
  const auto* labels = metadata != nullptr ? object_in(*metadata, "labels") : nullptr;
  std::string program, image;
  if (spec != nullptr)
    each_object(*spec, "containers", [&](const json::object& each) {
      if (printable_in(each, "name") != container_name) return;
      image = one_line(printable_in(each, "image"), 100);
      const auto* command = each.if_contains("command");
      if (command != nullptr && command->is_array() && !command->get_array().empty() &&
          command->get_array().front().is_string())
        program = one_line(std::string(command->get_array().front().get_string()), 100);
    });
  if (program.empty() || message.find(fmt::format("exec: \"{}\"", program)) == std::string::npos) return {};
  const bool worker = labels != nullptr && !printable_in(*labels, worker_label).empty();
  if (program != "sh")
    return fmt::format("there is no program '{}' in the image '{}': name another image, or what it has{}", program,
                       image, worker ? " (executor.program)" : "");
  return fmt::format("the image '{}' has no shell (sh), {}", image,
                     worker ? "without which no program can be copied into it: name the program that it has "
                              "(executor.program), or an image with a shell"
                            : "which is needed here: name an image with one");
}

void say_waiting(PodState& state, const json::object& spec, const json::object& status, const Container& container) {
  using Prospect = PodState::Prospect;
  const auto& why = container.waiting;
  if (!why.empty() && why != "ContainerCreating" && why != "PodInitializing") {
    state.reason = why;
    const auto message = one_line(container.message);
    if (why == "InvalidImageName" || why == "ErrImageNeverPull") {
      state.prospect = Prospect::never;
      state.sentence = with_reason("cannot start: its image cannot be used", message.empty() ? why : message);
    } else if (why.find("Image") != std::string::npos) {
      state.prospect = Prospect::unlikely;
      state.sentence = with_reason("waits for its image, which cannot be pulled", message.empty() ? why : message);
    } else if (why.starts_with("CreateContainer") || why == "RunContainerError") {
      state.prospect = Prospect::unlikely;
      state.sentence = with_reason("cannot be started by its node", message.empty() ? why : message);
    } else {
      state.sentence = with_reason("waits for its container", message.empty() ? why : why + ": " + message);
    }
    return;
  }
  std::string gates;
  each_object(spec, "schedulingGates",
              [&](const json::object& gate) { gates += (gates.empty() ? "" : ", ") + printable_in(gate, "name"); });
  if (!gates.empty()) {
    state.reason = "SchedulingGated";
    state.sentence = gates.find("kueue.x-k8s.io") != std::string::npos
                         ? "waits until Kueue admits it"
                         : "waits for its scheduling gates: " + one_line(gates);
    return;
  }
  if (!state.node.empty()) {
    state.reason = "ContainerCreating";
    state.sentence = fmt::format("is being started on node {}", state.node);
    return;
  }
  state.reason = "Pending";
  state.sentence = "waits for the scheduler";
  each_object(status, "conditions", [&](const json::object& condition) {
    if (printable_in(condition, "type") != "PodScheduled" || printable_in(condition, "status") != "False") return;
    state.reason = printable_in(condition, "reason");
    auto message = printable_in(condition, "message");
    // The scheduler's further attempts are of no interest.
    for (const char* attempt : {". preemption: ", ". no new claims to deallocate"})
      if (const auto at = message.find(attempt); at != std::string::npos) message.resize(at);
    state.sentence = with_reason("waits for a node", one_line(message.empty() ? state.reason : message));
  });
}

void say_ended(PodState& state, const json::object& status, const Container& container, const std::string& phase) {
  state.reason = printable_in(status, "reason");
  if (state.reason.empty()) state.reason = container.ended.empty() ? phase : container.ended;
  state.message = one_line(container.message);
  const auto message = one_line(printable_in(status, "message"));
  if (container.ended == "StartError" || container.ended == "ContainerCannotRun") {
    state.prospect = PodState::Prospect::never;
    state.sentence = with_reason("cannot start", one_line(container.message));
  } else if (container.ended == "OOMKilled")
    state.sentence = "ran out of memory (executor.memory)";
  else if (!printable_in(status, "reason").empty())
    state.sentence = with_reason("ended: " + one_line(printable_in(status, "reason"), 60), message);
  else if (container.signal != 0)
    state.sentence = fmt::format("ended by signal {}", container.signal);
  else if (container.exit_code && *container.exit_code != 0)
    state.sentence = fmt::format("ended with exit code {}", *container.exit_code);
  else
    state.sentence = "has ended";
}

}  // namespace

PodState pod_state(const json::object& pod, const std::string& container_name) {
  static const json::object nothing;
  const auto part = [&](std::string_view key) -> const json::object& {
    const auto* found = object_in(pod, key);
    return found != nullptr ? *found : nothing;
  };
  const auto &metadata = part("metadata"), &spec = part("spec"), &status = part("status");
  PodState state{.name = printable_in(metadata, "name"),
                 .uid = printable_in(metadata, "uid"),
                 .worker = {},
                 .node = printable_in(spec, "nodeName"),
                 .ip = printable_in(status, "podIP")};
  if (const auto* labels = object_in(metadata, "labels")) state.worker = printable_in(*labels, worker_label);
  if (const auto* annotations = object_in(metadata, "annotations")) {
    state.driver = printable_in(*annotations, driver_annotation);
    state.avoids = annotations->contains(avoids_annotation);
  }
  // The status has what its node gives it now, after it has been resized.
  for (const auto& [part, list] : {std::pair(&spec, "containers"), std::pair(&status, "containerStatuses")})
    each_object(*part, list, [&](const json::object& each) {
      if (printable_in(each, "name") != container_name) return;
      const auto* resources = object_in(each, "resources");
      const auto* limits = resources != nullptr ? object_in(*resources, "limits") : nullptr;
      const auto memory = limits != nullptr ? hypertune::detail::quantity_of(text_in(*limits, "memory")) : std::nullopt;
      constexpr double most = 0x1p62;
      if (memory && *memory < most) state.memory = static_cast<std::uint64_t>(*memory);
    });
  const auto phase = printable_in(status, "phase");
  auto container = container_state(status, container_name);
  if (auto lacks = lacks_program(pod, container_name, container.message); !lacks.empty())
    container.message = std::move(lacks);
  if (phase == "Succeeded" || phase == "Failed" || container.exit_code) {
    state.phase = PodState::Phase::ended;
    say_ended(state, status, container, phase);
  } else if (container.running) {
    state.phase = PodState::Phase::running;
  } else {
    say_waiting(state, spec, status, container);
  }
  if (metadata.contains("deletionTimestamp")) {
    state.leaving = state.deleted = true;
    state.grace = std::clamp<std::int64_t>(number_at(metadata, "deletionGracePeriodSeconds"), 0, 1 << 30);
    if (state.phase != PodState::Phase::ended || state.sentence == "has ended") state.sentence = "is being deleted";
  }
  each_object(status, "conditions", [&](const json::object& condition) {
    if (printable_in(condition, "type") == "PodResizePending" && printable_in(condition, "status") == "True")
      state.cannot_grow = true;
  });
  // Such a pod may end as Succeeded; only this condition shows the disruption.
  each_object(status, "conditions", [&](const json::object& condition) {
    if (printable_in(condition, "type") != "DisruptionTarget" || printable_in(condition, "status") != "True") return;
    state.leaving = state.disrupted = true;
    state.reason = printable_in(condition, "reason");
    state.sentence = disruption_text(state.reason);
  });
  if (state.reason == "Evicted" || state.reason == "Preempting" || state.reason == "NodeShutdown" ||
      state.reason == "Terminated" || state.reason == "NodeLost")
    state.disrupted = true;
  return state;
}

}  // namespace hypertune::inline v0::k8s
