// What Kubernetes says of a pod, in words. The objects are as real API servers have sent them, shortened.
#include "pod_state.hpp"

#include "support/test.hpp"

#include <boost/json.hpp>

#include <cstdint>
#include <random>
#include <string>

using namespace hypertune;
using k8s::PodState;

namespace {

PodState state(const std::string& metadata, const std::string& spec, const std::string& status) {
  const auto text = R"({"metadata": {"name": "p", "uid": "u", "labels": {"hypertune/worker": "worker-3"})" + metadata +
                    R"(}, "spec": {)" + spec + R"(}, "status": {)" + status + "}}";
  return k8s::pod_state(boost::json::parse(text).as_object(), "worker");
}
std::string container(const std::string& what) {
  return R"(, "containerStatuses": [{"name": "other", "state": {"running": {}}}, {"name": "worker", "state": {)" +
         what + "}}]";
}

}  // namespace

TEST_CASE("a pod that waits says what for") {
  const auto unschedulable =
      state("", "",
            R"("phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."}])");
  CHECK(unschedulable.phase == PodState::Phase::waiting);
  CHECK(unschedulable.prospect == PodState::Prospect::likely);
  CHECK(unschedulable.worker == "worker-3");
  CHECK(unschedulable.reason == "Unschedulable");
  CHECK(unschedulable.sentence == "waits for a node (0/2 nodes are available: 2 Insufficient cpu)");

  CHECK(
      state("", "",
            R"("phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."}])")
          .sentence == "waits for a node (0/1 nodes are available: 1 Insufficient cpu)");

  CHECK(state("", "", "").sentence == "waits for the scheduler");
  CHECK(state("", R"("nodeName": "n1")", R"("phase": "Pending")").sentence == "is being started on node n1");
  CHECK(state("", R"("nodeName": "n1")",
              R"("phase": "Pending")" + container(R"("waiting": {"reason": "ContainerCreating"})"))
            .sentence == "is being started on node n1");
  CHECK(state("", R"("schedulingGates": [{"name": "kueue.x-k8s.io/admission"}])", R"("phase": "Pending")").sentence ==
        "waits until Kueue admits it");
  CHECK(state("", R"("schedulingGates": [{"name": "a/b"}, {"name": "c"}])", R"("phase": "Pending")").sentence ==
        "waits for its scheduling gates: a/b, c");

  const auto pull =
      state("", R"("nodeName": "n1")", R"("phase": "Pending")" + container(R"("waiting": {"reason": "ImagePullBackOff",
                             "message": "Back-off pulling image \"nowhere/x:1\""})"));
  CHECK(pull.prospect == PodState::Prospect::unlikely);
  CHECK(pull.reason == "ImagePullBackOff");
  CHECK(pull.sentence == "waits for its image, which cannot be pulled (Back-off pulling image \"nowhere/x:1\")");
  const auto never = state("", R"("nodeName": "n1")",
                           R"("phase": "Pending")" + container(R"("waiting": {"reason": "InvalidImageName"})"));
  CHECK(never.prospect == PodState::Prospect::never);
  const auto secret = state("", R"("nodeName": "n1")",
                            R"("phase": "Pending")" + container(R"("waiting": {"reason": "CreateContainerConfigError",
                               "message": "secret \"x\" not found"})"));
  CHECK(secret.prospect == PodState::Prospect::unlikely);
  CHECK(secret.sentence == "cannot be started by its node (secret \"x\" not found)");
}

TEST_CASE("a pod that runs has nothing to say, whichever of its containers are there") {
  const auto running =
      state("", R"("nodeName": "n1")", R"("phase": "Running", "podIP": "10.0.0.7")" + container(R"("running": {})"));
  CHECK(running.phase == PodState::Phase::running);
  CHECK(running.sentence.empty());
  CHECK(running.ip == "10.0.0.7");
  CHECK_FALSE(running.leaving);
  // Another container runs, ours does not yet.
  CHECK(state("", R"("nodeName": "n1")", R"("phase": "Running")" + container(R"("waiting": {})")).phase ==
        PodState::Phase::waiting);
}

TEST_CASE("what takes a pod away is told from how it ends") {
  // Preempted, it exited 0 on SIGTERM, and counts as Succeeded.
  const auto preempted = state(R"(, "deletionTimestamp": "2030-01-01T00:00:00Z")", R"("nodeName": "n1")",
                               R"("phase": "Succeeded", "conditions": [{"type": "DisruptionTarget", "status": "True",
               "reason": "PreemptionByScheduler"}])" +
                                   container(R"("terminated": {"exitCode": 0, "reason": "Completed"})"));
  CHECK(preempted.phase == PodState::Phase::ended);
  CHECK(preempted.leaving);
  CHECK(preempted.disrupted);
  CHECK(preempted.sentence == "was preempted by a pod of a higher priority");

  const auto deleted = state(R"(, "deletionTimestamp": "2030-01-01T00:00:00Z")", R"("nodeName": "n1")",
                             R"("phase": "Running")" + container(R"("running": {})"));
  CHECK(deleted.leaving);
  CHECK_FALSE(deleted.disrupted);
  CHECK(deleted.phase == PodState::Phase::running);
  CHECK(deleted.sentence == "is being deleted");

  const auto evicted = state("", R"("nodeName": "n1")",
                             R"("phase": "Failed", "reason": "Evicted",
                                "message": "The node was low on resource: memory.")");
  CHECK(evicted.disrupted);
  CHECK(evicted.sentence == "ended: Evicted (The node was low on resource: memory)");
}

TEST_CASE("a pod that ended says how") {
  const auto ended = [](const std::string& how, const std::string& phase = "Failed") {
    return state("", R"("nodeName": "n1")",
                 R"("phase": ")" + phase + "\"" + container(R"("terminated": {)" + how + "}"));
  };
  CHECK(ended(R"("exitCode": 137, "reason": "OOMKilled")").sentence == "ran out of memory (executor.memory)");
  const auto never = ended(R"("exitCode": 128, "reason": "StartError", "message": "exec: \"/x\": no such file")");
  CHECK(never.sentence == "cannot start (exec: \"/x\": no such file)");
  CHECK(never.prospect == PodState::Prospect::never);
  const auto lacks = [](const std::string& program, const std::string& label, const std::string& why) {
    const auto text =
        R"({"metadata": {"name": "p", "labels": {)" + label +
        R"(}}, "spec": {"containers": [{"name": "worker", "image": "lab/i", "command": [")" + program +
        R"("]}]}, "status": {"phase": "Failed")" +
        container(R"("terminated": {"exitCode": 128, "reason": "StartError", "message": "failed to create )"
                  R"(containerd task: failed to create shim task: OCI runtime create failed: runc create )"
                  R"(failed: unable to start container process: exec: \")" +
                  program + R"(\": )" + why + ": unknown\"}") +
        "}}";
    const auto state = k8s::pod_state(boost::json::parse(text).as_object(), "worker");
    CHECK(state.prospect == PodState::Prospect::never);
    return state.sentence;
  };
  const std::string worker = R"("hypertune/worker": "worker-3")", nowhere = "executable file not found in $PATH";
  CHECK(lacks("sh", worker, nowhere) ==
        "cannot start (the image 'lab/i' has no shell (sh), without which no program can be copied into it: name the "
        "program that it has (executor.program), or an image with a shell)");
  CHECK(lacks("sh", R"("hypertune/role": "driver")", nowhere) ==
        "cannot start (the image 'lab/i' has no shell (sh), which is needed here: name an image with one)");
  CHECK(lacks("/app/train", worker, "stat /app/train: no such file or directory") ==
        "cannot start (there is no program '/app/train' in the image 'lab/i': name another image, or what it has "
        "(executor.program))");
  CHECK_THAT(lacks("/app/train", worker, "permission denied"),
             ContainsSubstring("train\": permission denied: unknown"));
  CHECK(ended(R"("exitCode": 3, "reason": "Error")").sentence == "ended with exit code 3");
  CHECK(ended(R"("exitCode": 137, "signal": 9, "reason": "Error")").sentence == "ended by signal 9");
  CHECK(ended(R"("exitCode": 0, "reason": "Completed")", "Succeeded").sentence == "has ended");
  CHECK_FALSE(ended(R"("exitCode": 0)", "Succeeded").disrupted);
  // Its own container has ended, while another one keeps the pod.
  CHECK(ended(R"("exitCode": 1)", "Running").phase == PodState::Phase::ended);
}

TEST_CASE("a pod has the memory that its node gives it now, and says that it cannot have more") {
  const std::string spec = R"("containers": [{"name": "worker", "resources": {"limits": {"memory": "200Mi"}}}])";
  CHECK(state("", spec, R"("phase": "Pending")").memory == std::uint64_t{200} << 20U);
  const auto asked = state("", spec,
                           R"("phase": "Running", "containerStatuses": [{"name": "worker", "state": {"running": {}},
                              "resources": {"limits": {"memory": "100Mi"}}}])");
  CHECK(asked.memory == std::uint64_t{100} << 20U);
  CHECK_FALSE(asked.cannot_grow);
  CHECK(state("", spec, R"("conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}])")
            .cannot_grow);
  CHECK(state("", R"("containers": [{"name": "worker"}])", "").memory == 0);
}

TEST_CASE("whatever is sent for a pod, it is a state, and one line") {
  std::mt19937 random(7);
  const std::string good =
      R"({"metadata":{"name":"p","deletionTimestamp":null},"spec":{"nodeName":7,"schedulingGates":[1,{"name":[]}]},)"
      R"("status":{"phase":"Failed","reason":"a\nb","message":"c\u0000d\u001b[2J","conditions":[{"type":"DisruptionTarget"}],)"
      R"("containerStatuses":[{"name":"worker","state":{"terminated":{"exitCode":1e300,"signal":"x"}}}]}})";
  CHECK(k8s::pod_state(boost::json::parse(good).as_object(), "worker").sentence.find_first_of("\n\x1b") ==
        std::string::npos);
  for (int i = 0; i < 3000; ++i) {
    auto text = good;
    for (int change = 0; change < 3; ++change)
      text[std::uniform_int_distribution<std::size_t>(0, text.size() - 1)(random)] =
          R"({}[]":,0123456789eabn)"[std::uniform_int_distribution<int>(0, 20)(random)];
    boost::system::error_code error;
    const auto value = boost::json::parse(text, error);
    if (error || !value.is_object()) continue;
    const auto state = k8s::pod_state(value.as_object(), "worker");
    CHECK(state.sentence.find('\n') == std::string::npos);
    CHECK(state.sentence.size() < 400);
  }
}
