// Experiments on pods of a real Kubernetes: the same results, whatever happens to the pods.
#include "k8s/support/pod_experiments.hpp"

#include <fstream>
#include <functional>
#include <random>
#include <string>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("an experiment on pods: they come with the queue of trials, and none is left") {
  const auto kubernetes = test_kubernetes("experiment");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto results = run(small(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes)), 6, 5));
  check_whole(results, 6, 5);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a program and its files are sent into pods of any image that has a shell, and only once") {
  const auto kubernetes = test_kubernetes("sent");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "said.sh") << "cat brought/data\n";
  std::ofstream(folder.path() / "data") << "{\"loss\": 1.5}\n";
  auto setup = workers_of(*kubernetes, 1);
  setup.options.program = {};
  setup.program = HYPERTUNE_TEST_WORKER;
  setup.options.file_mounts = {{.remote = "said.sh", .local = folder.path() / "said.sh"},
                               {.remote = "brought/data", .local = folder.path() / "data"}};
  setup.remote.program = "command said.sh x";
  auto options = small(folder.path() / "run", KubernetesExecutor(setup), 2, 5);
  options.metric = "loss";
  options.mode = Mode::minimize;
  options.stop = {};
  const auto results = tune(Learner::search_space(), program_named(setup.remote.program), options);
  INFO(story(results));
  for (const auto& trial : results.trials()) {
    CHECK(trial.state == TrialState::completed);
    CHECK(trial.metrics == Metrics{{"loss", 1.5}});
  }
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a program that cannot run in the image ends the experiment with the reason") {
  const auto kubernetes = test_kubernetes("missing");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 1);
  setup.options.program = "/bin/nothing";
  setup.options.pod = "spec: {containers: [{name: worker, imagePullPolicy: Never}]}";
  std::string complaint;
  try {
    run(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5));
  } catch (const Error& error) { complaint = error.what(); }
  CHECK_THAT(complaint, ContainsSubstring("/bin/nothing"));
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("an image without a shell ends the experiment with the key that mends it") {
  const auto kubernetes = test_kubernetes("no-shell");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 1);
  setup.options.image = TestKubernetes::image_without_shell;
  SECTION("where the program is to be copied into it") {
    setup.options.program = {};
    setup.program = HYPERTUNE_TEST_WORKER;
    const auto options = small(folder.path() / "run", KubernetesExecutor(setup), 1, 5);
    CHECK_THROWS_WITH(run(options), ContainsSubstring("no shell (sh)") &&
                                        ContainsSubstring("name the program that it has (executor.program)"));
  }
  SECTION("where files are, although the program is in it") {
    std::ofstream(folder.path() / "data") << "1\n";
    setup.options.file_mounts = {{.remote = "data", .local = folder.path() / "data"}};
    const auto options = small(folder.path() / "run", KubernetesExecutor(setup), 1, 5);
    CHECK_THROWS_WITH(run(options), ContainsSubstring("no shell (sh)") && ContainsSubstring("file_mounts"));
  }
  SECTION("where nothing is, it needs none") {
    check_whole(run(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5)), 1, 5);
  }
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a worker that runs out of memory gets more, in its pod, and the trial has not failed") {
  const auto kubernetes = test_kubernetes("memory");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  // dd touches a buffer of 150 MiB.
  std::ofstream(folder.path() / "eat.sh") << "dd if=/dev/zero of=/dev/null bs=150M count=1 && echo '{\"loss\": 1}'\n";
  auto setup = workers_of(*kubernetes, 1);
  setup.options.memory = std::uint64_t{100} << 20U;
  setup.options.max_memory = std::uint64_t{400} << 20U;
  setup.options.file_mounts = {{.remote = "eat.sh", .local = folder.path() / "eat.sh"}};
  setup.remote.program = "command eat.sh x";
  auto options = small(folder.path() / "run", KubernetesExecutor(setup), 1, 1);
  options.metric = "loss";
  options.mode = Mode::minimize;
  options.stop = {};
  const auto results = tune(Learner::search_space(), program_named(setup.remote.program), options);
  INFO(story(results));
  REQUIRE(results.size() == 1);
  for (const auto& trial : results.trials()) CHECK(trial.state == TrialState::completed);
  CHECK(results.failures(FailureSource::user) == 0);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(results.failures(FailureSource::preemption) == 1);
  std::string why;
  read_journal(results.directory(), [&](const Record& record) {
    if (const auto* e = std::get_if<record::AttemptFailed>(&record.what)) why += e->cause.text;
  });
  CHECK_THAT(why, ContainsSubstring("its worker gets 200 MiB in place of 100 MiB (its memory was used up"));
  CHECK(kubernetes->execs().size() == 1);  // there was one pod
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a pod that is deleted is a notice: its trials save, and go on in another one without a step lost") {
  const auto kubernetes = test_kubernetes("deleted");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto options = saves_when_told(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes, 1)), 1, 100);
  std::string deleted;
  const auto results = run_disturbed(options, [&](const Until& until) {
    until([&] {
      const auto pods = kubernetes->running();
      if (pods.empty() || reports(folder.path() / "run") < 10) return false;
      deleted = pods.front();
      kubernetes->remove_pod(deleted);
      return true;
    });
  });
  check_whole(results, 1, 100);
  CHECK_FALSE(deleted.empty());
  check_none_again(results);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a node that dies takes its trials back to their last checkpoints, and they go on elsewhere") {
  const auto kubernetes = test_kubernetes("dead-node");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto options = small(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes, 1)), 1, 150);
  int killed = 0;
  const auto results = run_disturbed(options, [&](const Until& until) {
    until([&] {
      if (reports(folder.path() / "run") < 10) return false;
      for (const auto& pod : kubernetes->pods())
        if (const auto* node = pod.at("spec").as_object().if_contains("nodeName")) {
          killed = std::atoi(node->as_string().c_str() + node->as_string().rfind('.') + 1) - 10;
          TestKubernetes::kill_node(killed);
          return true;
        }
      return false;
    });
  });
  REQUIRE(killed > 0);
  TestKubernetes::start_node(killed);
  check_whole(results, 1, 150);
  CHECK(results.failures(FailureSource::infrastructure) == 1);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 100));
}

TEST_CASE("an API server that is started again costs no trial") {
  const auto kubernetes = test_kubernetes("restart");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto options = small(folder.path() / "run", KubernetesExecutor(workers_of(*kubernetes, 2)), 2, 150);
  const auto results = run_disturbed(options, [&](const Until& until) {
    until([&] { return reports(folder.path() / "run") > 20; });
    TestKubernetes::tell({"kill-apiserver"});
    TestKubernetes::tell({"start-apiserver"});
  });
  check_whole(results, 2, 150);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a pod for each trial: each is used for one attempt, also where one is killed, and none is left") {
  const auto kubernetes = test_kubernetes("one-each");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 2);
  setup.options.reuse = false;
  setup.options.cpus = 0.4;  // room for four trials
  std::string killed;
  const auto results =
      run_disturbed(small(folder.path() / "run", KubernetesExecutor(setup), 5, 200), [&](const Until& until) {
        until([&] {
          const auto pods = kubernetes->running();
          if (pods.empty() || reports(folder.path() / "run") < 30) return false;  // early in the first trials
          killed = pods.front();
          kubernetes->remove_pod(killed, 0);
          return true;
        });
      });
  REQUIRE_FALSE(killed.empty());
  check_whole(results, 5, 200);
  int all = 0;
  read_journal(results.directory(), [&](const Record& record) {
    if (std::holds_alternative<record::TrialStarted>(record.what)) ++all;
  });
  CHECK(all == 6);
  const auto pods = kubernetes->execs();
  CHECK(pods.size() == 6);
  CHECK(pods.contains(killed));
  for (const auto& [pod, agents] : pods) {
    INFO(pod);
    CHECK(agents == 1);
  }
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
  // None was asked for in vain; only the one that was killed is a loss. A deletion may be asked for by two at once.
  const auto deletions = kubernetes->deletions();
  CHECK(deletions.size() == 6);
  for (const auto& [pod, times] : deletions) {
    INFO(pod);
    CHECK(times <= 2);
  }
  std::int64_t lost = 0;
  for (const auto& host : results.hosts()) lost += host.lost;
  CHECK(lost == 1);
}

TEST_CASE("forty trials with pods deleted, nodes killed and the API server started again end like undisturbed ones",
          "[long]") {
  const auto kubernetes = test_kubernetes("chaos");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto with = [&](const std::string& name, AnyExecutor executor) {
    auto options = asha(folder.path() / name, std::move(executor));
    options.resources.cpus = 0.1;
    return options;
  };
  const auto undisturbed = run(with("undisturbed", threads(4)));
  int deleted = 0, killed = 0, restarts = 0;
  const auto disturb = [&](const Until& until) {
    std::mt19937 random(11);
    int last = 0;
    while (killed + deleted + restarts < 12) {
      // After a number of further steps, so that what is disturbed is work.
      last += 40 + static_cast<int>(random() % 60);
      if (!until([&] { return reports(folder.path() / "disturbed") >= last; })) return;
      const auto pods = kubernetes->running();
      const auto kind = random() % 6;
      if (kind == 0 && restarts < 2) {
        ++restarts;
        TestKubernetes::tell({"kill-apiserver"});
        TestKubernetes::tell({"start-apiserver"});
      } else if (kind == 1) {
        ++killed;
        const int node = 1 + static_cast<int>(random() % 3);
        TestKubernetes::kill_node(node);
        TestKubernetes::start_node(node);
      } else if (!pods.empty()) {
        ++deleted;
        kubernetes->remove_pod(pods[random() % pods.size()], random() % 2 == 0 ? 0 : 20);
      }
    }
  };
  auto setup = workers_of(*kubernetes, 2);
  setup.options.cpus = 0.2;
  const auto results = run_disturbed(with("disturbed", KubernetesExecutor(setup)), disturb, 120);
  INFO(deleted << " pods deleted, " << killed << " nodes killed, " << restarts << " restarts of the API server\n"
               << story(results));
  CHECK(deleted + killed + restarts >= 5);
  CHECK(fingerprint(results) == fingerprint(undisturbed));
  CHECK(results.failures(FailureSource::user) == 0);
  check_reports(results);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 120));
}
