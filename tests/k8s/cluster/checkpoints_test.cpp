// How checkpoints get from one pod to another: on a volume that all have, or from pod to pod.
#include "k8s/support/pod_experiments.hpp"

#include <filesystem>
#include <string>
#include <utility>

using namespace hypertune;
using namespace hypertune::test;

namespace {

/// A volume of all nodes, as they are on this machine, and a namespace's claim to it.
class HostVolume {
 public:
  HostVolume(const TestKubernetes& kubernetes, const std::filesystem::path& folder)
      : kubernetes_(kubernetes), name_("test-" + kubernetes.name_space()) {
    if (is_there()) remove();  // of an earlier run
    if (!eventually([&] { return !is_there(); }, 60)) throw std::runtime_error("the volume of an earlier run stays");
    const boost::json::object size{{"storage", "1Gi"}};
    const boost::json::array many{"ReadWriteMany"};
    kubernetes_.create({"api", "v1", "persistentvolumes"}, {{"metadata", {{"name", name_}}},
                                                            {"spec",
                                                             {{"accessModes", many},
                                                              {"storageClassName", ""},
                                                              {"capacity", size},
                                                              {"hostPath", {{"path", folder.string()}}}}}});
    kubernetes_.create({"api", "v1", "namespaces", kubernetes_.name_space(), "persistentvolumeclaims"},
                       {{"metadata", {{"name", claim}}},
                        {"spec",
                         {{"accessModes", many},
                          {"storageClassName", ""},
                          {"volumeName", name_},
                          {"resources", {{"requests", size}}}}}});
  }
  HostVolume(const HostVolume&) = delete;
  HostVolume& operator=(const HostVolume&) = delete;
  ~HostVolume() {
    try {
      remove();
    } catch (const std::exception& error) { WARN(error.what()); }
  }
  static constexpr const char* claim = "checkpoints";

 private:
  bool is_there() const { return kubernetes_.exists({"api", "v1", "persistentvolumes", name_}); }
  void remove() const { kubernetes_.remove({"api", "v1", "persistentvolumes", name_}); }
  const TestKubernetes& kubernetes_;
  std::string name_;
};

/// Bytes of checkpoints, by how they went.
struct Moved {
  std::uint64_t to_driver = 0, from_driver = 0, between_pods = 0, shared = 0;
};

/// A population on four pods, one of which is killed on the way: trials take over others' checkpoints, and their own.
Results run_population(const TestKubernetes& kubernetes, const std::filesystem::path& output,
                       const KubernetesSetup& setup, Moved& moved) {
  const KubernetesExecutor executor(setup);
  auto options = pbt(output, executor);
  options.resources.cpus = 0.1;
  bool killed = false;
  auto results = run_disturbed(std::move(options), [&](const Until& until) {
    until([&] {
      if (const auto pods = kubernetes.running(); !killed && reports(output) >= 20 && !pods.empty()) {
        kubernetes.remove_pod(pods.front(), 0);
        killed = true;
      }
      Moved now;
      for (const auto& worker : executor.accounts()) {
        now.to_driver += worker.sent;
        now.from_driver += worker.received;
        now.between_pods += worker.direct;
        now.shared += worker.shared;
      }
      if (now.to_driver + now.shared >= moved.to_driver + moved.shared) moved = now;
      return false;  // to the end
    });
  });
  CHECK(killed);
  INFO(story(results));
  auto alone = pbt(output.string() + "-alone", threads(4));
  alone.resources.cpus = 0.1;
  CHECK(fingerprint(results) == fingerprint(run(std::move(alone))));
  check_reports(results);
  CHECK(eventually([&] { return kubernetes.is_empty(); }, 60));
  return results;
}

}  // namespace

TEST_CASE("checkpoints on a volume that pods and driver share are not copied, whichever pod goes on from them") {
  const auto kubernetes = test_kubernetes("shared-volume");
  if (!kubernetes) return;
  const TemporaryDirectory folder, disk;
  const bool claimed = GENERATE(true, false);
  INFO("a claim: " << claimed);
  const HostVolume volume(*kubernetes, disk.path());
  auto setup = workers_of(*kubernetes, 4);
  if (claimed) {
    setup.options.volume = HostVolume::claim;
    setup.options.transfer.shared = {.folder = disk.path()};
  } else {
    setup.options.pod = fmt::format(
        "spec: {{dnsPolicy: Default, volumes: [{{name: disk, hostPath: {{path: {}}}}}], containers: "
        "[{{name: worker, imagePullPolicy: Never, volumeMounts: [{{name: disk, mountPath: /disk}}]}}]}}",
        disk.path().string());
    setup.options.transfer.shared = {.folder = disk.path(), .on_hosts = "/disk"};
  }
  Moved moved;
  const auto results = run_population(*kubernetes, folder.path() / "run", setup, moved);
  CHECK(moved.shared > 0);
  CHECK(moved.to_driver + moved.from_driver + moved.between_pods == 0);
  for (const auto& trial : results.trials()) {
    const auto place = folder.path() / "run" / "trials" / std::to_string(trial.trial) / "checkpoints";
    REQUIRE(std::filesystem::is_symlink(place));
    CHECK(std::filesystem::read_symlink(place).string().starts_with(disk.path().string() + "/run-"));
    CHECK_FALSE(std::filesystem::is_empty(place));
  }
}

TEST_CASE("a volume for checkpoints that the driver does not have is an error before anything is made") {
  const auto kubernetes = test_kubernetes("volume-missing");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 1);
  setup.options.volume = "checkpoints";
  std::string complaint;
  try {
    run(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5));
  } catch (const Error& error) { complaint = error.what(); }
  CHECK_THAT(complaint, ContainsSubstring("no folder '/hypertune-checkpoints' here"));
  // A claim that nobody has made is told by the scheduler.
  setup.options.transfer.shared = {.folder = folder.path()};
  const KubernetesExecutor executor(setup);
  std::string reason;
  const auto waits = run_disturbed(small(folder.path() / "waits", executor, 1, 5), [&](const Until& until) {
    until([&] {
      for (const auto& worker : executor.accounts()) reason = worker.reason;
      return reason.find("checkpoints") != std::string::npos;
    });
    const HostVolume volume(*kubernetes, folder.path());
    until([] { return false; });  // what waits for it goes on
  });
  CHECK_THAT(reason, ContainsSubstring("persistentvolumeclaim \"checkpoints\" not found"));
  check_whole(waits, 1, 5);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("checkpoints go from pod to pod where they are told to") {
  const auto kubernetes = test_kubernetes("pod-to-pod");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 4);
  setup.options.transfer = {.inline_limit = 0, .direct = true};  // by content, though they are small
  Moved moved;
  run_population(*kubernetes, folder.path() / "run", setup, moved);
  CHECK(moved.between_pods > 0);
  CHECK(moved.to_driver > 0);
  CHECK(moved.shared == 0);
}
