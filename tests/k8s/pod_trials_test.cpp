// Experiments whose trials run in pods that call home.
#include "pods.hpp"
#include "remote/agent/test_programs.hpp"
#include "remote/experiments.hpp"
#include "support/executor_trials.hpp"
#include "support/scripted_tuner.hpp"

#include <hypertune/remote/executor.hpp>

#include <atomic>
#include <list>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::RemoteOptions quick(double silence = 5) {
  remote::RemoteOptions options;
  options.timeouts = {.heartbeat = silence, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  return options;
}

// Pods "a", "b", … of a listener, whose agents run the learner.
class Pods {
 public:
  explicit Pods(int count) : token_(Secret::generate()), listener_(on_loopback(token_)) {
    for (int i = 0; i < count; ++i) add();
  }
  Pod& add() {
    const std::string name(1, static_cast<char>('a' + pods_.size()));
    auto& pod =
        pods_.emplace_back(std::vector<std::string>{HYPERTUNE_TEST_POD, "learn", "--hypertune-pod", "host slots=2"},
                           Pod::Variables{{"HYPERTUNE_POD_NAME", name}, {"HYPERTUNE_POD_TOKEN", token_.reveal()}});
    pool_.add({.name = name, .dialer = k8s::ReverseDialer(listener_, name, 10)});
    pod.point_to(listener_.address("127.0.0.1")).start();
    return pod;
  }
  Pod& operator[](int i) { return *std::next(pods_.begin(), i); }
  const remote::HostPool& pool() const { return pool_; }

 private:
  Secret token_;
  k8s::AgentListener listener_;
  remote::HostPool pool_;
  std::list<Pod> pods_;
};

}  // namespace

TEST_CASE("trials run to their end in pods that call home, whose main() has run for the agents alone") {
  const TemporaryDirectory output;
  Pods pods(2);
  auto options = experiment(output.path() / "run", RemoteExecutor(pods.pool(), quick()));
  options.samples = 6;
  options.schedule = Asha{.grace_period = 3, .max_steps = 9, .reduction_factor = 3};
  const auto results = run(std::move(options));
  CHECK(results.trials().size() == 6);
  for (const auto& trial : results.trials()) CHECK(trial.failures == decltype(trial.failures){});
  check_reports(results);
  for (int i = 0; i < 2; ++i) {
    CHECK(text_of(pods[i].folder() / "notes") == "main\n");  // once, and not "with the token"
    CHECK(eventually([&] { return pods[i].agents().empty(); }));
    pods[i].signal(SIGTERM);
    CHECK(pods[i].ended());
    CHECK(pods[i].exit_code() == 0);
  }
}

TEST_CASE("a pod that is to end hands its trials back as preemptions, with no step lost, and exits 0") {
  const TemporaryDirectory output;
  Pods pods(1);
  auto options = experiment(output.path() / "run", RemoteExecutor(pods.pool(), quick(10)));
  options.ordered = false;
  options.samples = 2;
  options.concurrency = 2;
  options.max_retries = 0;
  options.schedule = Asha{.grace_period = 40, .max_steps = 40};
  std::atomic<bool> asked{false};
  std::jthread disturber([&](const std::stop_token& stop) {
    // Both trials are under way: their agent's two workers have their folders.
    eventually([&] {
      std::error_code error;
      int logs = 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(pods[0].folder() / "cache", error))
        logs += entry.path().filename().string().starts_with("step-") || entry.path().filename() == "log" ? 1 : 0;
      return logs >= 2 || stop.stop_requested();
    });
    pods.add();
    asked = true;
    pods[0].signal(SIGTERM);
  });
  const auto results = run(std::move(options));
  disturber.join();
  REQUIRE(asked);
  check_reports(results);
  int preempted = 0;
  std::map<TrialId, int> next;
  read_journal(results.directory(), [&](const Record& record) {
    if (const auto* e = std::get_if<record::TrialReported>(&record.what)) next[e->trial] = e->step + 1;
    if (const auto* e = std::get_if<record::TrialStarted>(&record.what)) CHECK(e->next_step == next[e->trial]);
    if (const auto* e = std::get_if<record::AttemptFailed>(&record.what)) {
      CHECK(e->cause.source == FailureSource::preemption);
      CHECK_THAT(e->cause.text, ContainsSubstring("SIGTERM"));
      ++preempted;
    }
  });
  CHECK(preempted == 2);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 40);
  REQUIRE(pods[0].ended());
  CHECK(pods[0].exit_code() == 0);
}

TEST_CASE("trials of a pod whose agent is killed go on in it from their last checkpoints") {
  const TemporaryDirectory output;
  Pods pods(1);
  auto options = experiment(output.path() / "run", RemoteExecutor(pods.pool(), quick()));
  options.samples = 2;
  options.concurrency = 2;
  options.max_retries = 0;
  options.schedule = Asha{.grace_period = 40, .max_steps = 40};
  std::jthread disturber([&](const std::stop_token& stop) {
    const auto saved = output.path() / "run" / "trials";
    eventually([&] {
      std::error_code error;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(saved, error))
        if (entry.path().filename() == "state") return true;
      return stop.stop_requested();
    });
    const auto agents = pods[0].agents();
    if (!agents.empty()) ::kill(agents.front(), SIGKILL);
  });
  const auto results = run(std::move(options));
  disturber.join();
  check_reports(results);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 40);
  bool lost = false;
  read_journal(results.directory(), [&](const Record& record) {
    if (const auto* e = std::get_if<record::AttemptFailed>(&record.what))
      lost = lost || e->cause.source == FailureSource::infrastructure;
  });
  CHECK(lost);
}
