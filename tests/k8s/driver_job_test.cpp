// What is known of a driver in the cluster from outside, of a server that follows a script.
#include "k8s/support/access_files.hpp"
#include "k8s/support/fake_server.hpp"
#include "support/test.hpp"

#include <hypertune/k8s/driver_job.hpp>

#include <string>

using namespace hypertune;
using namespace hypertune::test;

namespace {

// The Job "away" is complete. Its pod and one of an earlier Job of this name have ended; each left a message.
void complete(Peer& peer, const std::string& message) {
  Peer::Request request;
  while (peer.read(request)) {
    const auto pod = [](const std::string& name, const std::string& job, const std::string& said) {
      return R"({"metadata": {"name": ")" + name + R"(", "ownerReferences": [{"uid": ")" + job +
             R"("}]}, "status": {"phase": "Succeeded", "containerStatuses": [{"name": "driver", "state": {"terminated":
             {"exitCode": 0, "message": ")" +
             said + "\"}}}]}}";
    };
    if (request.line.find("/jobs/away") != std::string::npos)
      peer.answer(200,
                  R"({"metadata": {"uid": "2"}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})");
    else if (request.line.find("/pods") != std::string::npos)
      peer.answer(200, R"({"items": [)" + pod("away-new", "2", message) + "," + pod("away-old", "1", "earlier") + "]}");
    else
      peer.answer(404, "{}");
  }
}

k8s::DriverJob job_at(const FakeServer& server, const AccessFiles& files) {
  const auto config = files.write("config",
                                  "current-context: c\ncontexts: [{name: c, context: {cluster: c, namespace: n}}]\n"
                                  "clusters: [{name: c, cluster: {server: '" +
                                      server.url() + "'}}]\n");
  return k8s::DriverJob({.workers = {.image = "a", .kubeconfig = config}, .name = "away"});
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
