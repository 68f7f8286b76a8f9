// What is known of a driver in the cluster from outside, of a server that follows a script.
#include "k8s/support/access_files.hpp"
#include "k8s/support/fake_server.hpp"
#include "support/test.hpp"

#include <hypertune/k8s/driver_job.hpp>

#include <string>

using namespace hypertune;
using namespace hypertune::test;

namespace {

constexpr const char* is_complete = R"({"type": "Complete", "status": "True"})";

// The Job "away" is over, by default complete. Its pod and one of an earlier Job of this name have ended; each left a
// message. It was submitted with the claim "mine", and has begun.
void complete(Peer& peer, const std::string& message, const std::string& condition = is_complete) {
  Peer::Request request;
  while (peer.read(request)) {
    const auto pod = [](const std::string& name, const std::string& job, const std::string& said) {
      return R"({"metadata": {"name": ")" + name + R"(", "ownerReferences": [{"uid": ")" + job +
             R"("}]}, "status": {"phase": "Succeeded", "containerStatuses": [{"name": "driver", "state": {"terminated":
             {"exitCode": 0, "message": ")" +
             said + "\"}}}]}}";
    };
    if (request.line.starts_with("DELETE"))
      peer.answer(403, R"({"message": "it stays"})");
    else if (request.line.find("/jobs/away") != std::string::npos)
      peer.answer(200, R"({"metadata": {"uid": "2", "annotations": {"hypertune/begun": "true"}}, "spec": {"template":
                  {"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "mine"}}]}}},
                  "status": {"conditions": [)" +
                           condition + "]}}");
    else if (request.line.find("selfsubjectaccessreviews") != std::string::npos)
      peer.answer(201, R"({"status": {"allowed": true}})");
    else if (request.line.find("/serviceaccounts/") != std::string::npos ||
             request.line.find("GET /api/v1/namespaces/n/persistentvolumeclaims/") != std::string::npos)
      peer.answer(200, "{}");
    else if (request.line.find("/pods") != std::string::npos)
      peer.answer(200, R"({"items": [)" + pod("away-new", "2", message) + "," + pod("away-old", "1", "earlier") + "]}");
    else
      peer.answer(404, "{}");
  }
}

k8s::DriverJob job_at(const FakeServer& server, const AccessFiles& files, const std::string& volume = "") {
  const auto config = files.write("config",
                                  "current-context: c\ncontexts: [{name: c, context: {cluster: c, namespace: n}}]\n"
                                  "clusters: [{name: c, cluster: {server: '" +
                                      server.url() + "'}}]\n");
  return k8s::DriverJob({.workers = {.image = "a", .kubeconfig = config}, .name = "away", .volume = volume});
}

}  // namespace

TEST_CASE("a driver that waited for its files in vain has failed, although its Job is complete") {
  using Phase = k8s::DriverJobState::Phase;
  const AccessFiles files;
  const FakeServer done([](Peer& peer) { complete(peer, ""); });
  const auto state = job_at(done, files).state();
  CHECK(state.phase == Phase::done);
  CHECK(state.pod == "away-new");
  const FakeServer failed([](Peer& peer) { complete(peer, "nobody has brought its files\\n"); });
  const auto other = job_at(failed, files).state();
  CHECK(other.phase == Phase::failed);
  CHECK(other.sentence == "nobody has brought its files");
}

TEST_CASE("why a driver's Job has failed is what its pod left, or how that ended") {
  using Phase = k8s::DriverJobState::Phase;
  const AccessFiles files;
  const std::string failed = R"({"type": "Failed", "status": "True", "message": "Job has reached the specified limit",
                                 "reason": ")";
  const auto sentence = [&](const std::string& reason, const std::string& message) {
    const FakeServer server([=](Peer& peer) { complete(peer, message, failed + reason + "\"}"); });
    const auto state = job_at(server, files).state();
    CHECK(state.phase == Phase::failed);
    return state.sentence;
  };
  CHECK(sentence("BackoffLimitExceeded", "nobody has brought its files") == "nobody has brought its files");
  CHECK(sentence("BackoffLimitExceeded", "") == "its pod has ended");
  CHECK(sentence("DeadlineExceeded", "") == "DeadlineExceeded: Job has reached the specified limit");
}

TEST_CASE("a submission whose record would be on another claim than the earlier one's is refused") {
  const AccessFiles files;
  const auto problem = [&](const std::string& volume) {
    const FakeServer server([](Peer& peer) { complete(peer, ""); });
    auto job = job_at(server, files, volume);
    try {
      job.submit({}, {});
    } catch (const Error& error) { return std::pair(error.code(), std::string(error.what())); }
    return std::pair(Errc::io, std::string());
  };
  for (const std::string volume : {"", "other"}) {
    const auto [code, text] = problem(volume);
    CHECK(code == Errc::usage);
    CHECK_THAT(text, ContainsSubstring("has its record on the volume claim 'mine', and a new record would begin on '" +
                                       (volume.empty() ? "away" : volume) + "'") &&
                         ContainsSubstring("submit with --volume mine to go on"));
  }
  // With the same claim the finished Job is to make way.
  CHECK_THAT(problem("mine").second, ContainsSubstring("it stays"));
}

TEST_CASE("all that an account lacks to submit is named at once, and nothing is made") {
  const AccessFiles files;
  const FakeServer server([](Peer& peer) {
    Peer::Request request;
    while (peer.read(request))
      if (request.line.find("selfsubjectaccessreviews") != std::string::npos)
        peer.answer(201, R"({"status": {"allowed": false}})");
      else
        peer.answer(500, R"({"message": "made something"})");
  });
  auto job = job_at(server, files);
  try {
    job.submit({}, {});
    FAIL("nothing was refused");
  } catch (const Error& error) {
    for (const char* what : {"create jobs", "list pods", "get pods/log", "create pods/exec",
                             "create persistentvolumeclaims (to make the volume of its record)"})
      CHECK_THAT(error.what(), ContainsSubstring(what));
  }
}
