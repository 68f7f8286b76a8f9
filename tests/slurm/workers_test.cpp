// Workers as jobs of a real Slurm: they come and go with the queue, are lost, preempted, out of time, and said to wait.
#include "slurm/support/test_slurm.hpp"
#include "support/standard_error.hpp"

#include <hypertune/detail/read_file.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/record/detail/journal_reader.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

namespace ht = hypertune;
using namespace hypertune;
using namespace hypertune::test;

namespace {

Options small(const std::filesystem::path& output, AnyExecutor executor, int samples, int steps) {
  auto options = experiment(output, std::move(executor));
  options.ordered = false;
  options.concurrency = 0;
  options.samples = samples;
  options.stop = ht::steps(steps);
  return options;
}

std::set<std::string> hosts_used(const std::filesystem::path& directory) {
  std::set<std::string> hosts;
  read_journal(directory, [&](const Record& record) {
    if (const auto* started = std::get_if<record::TrialStarted>(&record.what)) hosts.insert(started->host);
  });
  return hosts;
}

/// All was done, each step once, and nothing was laid against a trial.
void check_whole(const Results& results, int trials, int steps) {
  INFO(story(results));
  CHECK(results.size() == static_cast<std::size_t>(trials));
  for (const auto& trial : results.trials()) {
    CHECK(trial.state == TrialState::stopped);  // by the number of steps
    CHECK(trial.steps == steps);
  }
  CHECK(results.failures(FailureSource::user) == 0);
  check_reports(results);
}

bool no_jobs() {
  // A job of a node that has died stays in CG until the controller asks the node again, which may take minutes.
  if (eventually([] { return TestSlurm::jobs("R,PD,CG").empty(); }, 240)) return true;
  for (const auto& job : TestSlurm::jobs("R,PD,CG")) WARN("left: " << job);
  return false;
}

/// Does something beside an experiment, once it has made some reports.
class Beside {
 public:
  Beside(const std::filesystem::path& directory, int after, std::function<void()> deed)
      : thread_([this, directory, after, deed = std::move(deed)] {
          try {
            if (!eventually([&] { return reports(directory) >= after; }, 60)) return;
            deed();
            done_ = true;
          } catch (const std::exception& error) { trouble_ = error.what(); }
        }) {}
  ~Beside() {
    if (thread_.joinable()) thread_.join();
  }
  void check() {
    thread_.join();
    CHECK(trouble_ == "");
    CHECK(done_);
  }

 private:
  bool done_ = false;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("workers come as trials wait, end when none does, and none is left behind") {
  const auto slurm = test_slurm(3);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  // One trial of many steps after five short ones: the other workers have nothing to do meanwhile.
  auto setup = workers_of(folder.path() / "agents", {.pool = {0, 3}, .cpus = 2, .idle_timeout = 0.5}, 2);
  auto options = small(directory, SlurmExecutor(setup), 6, 12);
  options.resources.cpus = 2;
  std::atomic<int> most{0}, at_end{99};
  std::atomic<bool> over{false};
  std::thread look([&] {
    while (!over) {
      const int now = static_cast<int>(TestSlurm::jobs().size());
      most = std::max(most.load(), now);
    }
  });
  const auto results = run(options);
  over = true;
  look.join();
  check_whole(results, 6, 12);
  CHECK(hosts_used(directory) == std::set<std::string>{"worker-1", "worker-2", "worker-3"});
  CHECK(most == 3);
  CHECK(results.experiment().executor == "slurm");
  CHECK(no_jobs());
}

TEST_CASE("a trial of several workers has as many jobs as it needs, however few trials there are") {
  const auto slurm = test_slurm(3);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto setup = workers_of(folder.path() / "agents", {.pool = {0, 4}, .cpus = 1}, 1);
  auto options = small(directory, SlurmExecutor(setup), 1, 12);
  options.resources.cpus = 1;
  options.workers = {.min = 3};
  check_whole(run(options), 1, 12);
  CHECK(no_jobs());
}

TEST_CASE("a worker without a trial ends, which is no failure, and comes back when it is needed") {
  const auto slurm = test_slurm(2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto options = small(
      directory, SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {0, 2}, .idle_timeout = 0.3}, 1)), 3, 80);
  // Two run at first, then one alone; it is the last that the second worker is ended beside.
  std::atomic<int> least{99};
  std::atomic<bool> over{false};
  std::thread look([&] {
    if (!eventually([] { return TestSlurm::jobs().size() == 2; }, 30)) return;
    while (!over) least = std::min(least.load(), static_cast<int>(TestSlurm::jobs().size()));
  });
  const auto results = run(options);
  over = true;
  look.join();
  check_whole(results, 3, 80);
  CHECK(least <= 1);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK(no_jobs());
}

TEST_CASE("a preempted worker's trials are saved, and go on in the next one with no step lost") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto options = small(
      directory,
      SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 1}, .partition = "spot", .cpus = 2}, 2)), 2, 400);
  options.checkpoint.every = 0;  // saved where it is asked to leave, and nowhere else
  Tuner tuner(Learner::search_space(), learner_program(), options);
  std::string why;
  Beside preemption(directory, 20, [&] {
    process::Subprocess urgent({"srun", "-p", "urgent", "-c2", "-n1", "sleep", "100"});
    eventually(
        [&] {
          why = tuner.why_pending(0);
          return why.find("waits in Slurm's queue (") != std::string::npos;
        },
        60);
    urgent.signal(SIGTERM);
    if (!eventually([&] { return urgent.ready(0.1).exited; })) throw std::runtime_error("srun does not end");
  });
  const auto results = tuner.run();
  preemption.check();
  check_whole(results, 2, 400);
  CHECK(results.failures(FailureSource::preemption) >= 2);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  CHECK_THAT(why, ContainsSubstring("waits in Slurm's queue ("));  // as the trial's sentence
  CHECK(no_jobs());
}

TEST_CASE("a node dies with its worker: its trial goes on in another one") {
  const auto slurm = test_slurm(2, 1);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto options =
      small(directory, SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 2}, .heartbeat_timeout = 3}, 1)),
            3, 300);
  options.max_retries = 0;
  Beside death(directory, 10, [&] { slurm->kill_node(TestSlurm::busy_node()); });
  const auto results = run(options);
  death.check();
  check_whole(results, 3, 300);
}

TEST_CASE("while workers wait in the queue the experiment runs, and says what they wait for") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  process::Subprocess other({"srun", "-c2", "-n1", "sleep", "60"});
  REQUIRE(eventually([] { return TestSlurm::jobs().size() == 1; }));
  const SlurmExecutor executor(workers_of(folder.path() / "agents", {.pool = {1, 2}, .cpus = 2}, 2));
  std::string why;
  std::thread look([&] {
    eventually(
        [&] {
          if (!std::filesystem::exists(directory / "experiment.db")) return false;  // it is not begun
          for (const auto& worker : executor.accounts()) why = worker.reason;
          return why.find("waits in Slurm's queue (") != std::string::npos;
        },
        30);
    other.signal(SIGTERM);
  });
  const auto results = run(small(directory, executor, 2, 5));
  look.join();
  CHECK_THAT(why, ContainsSubstring("waits in Slurm's queue ("));
  check_whole(results, 2, 5);
}

TEST_CASE("a controller that is away for a while: what runs goes on, and the rest comes later") {
  const auto slurm = test_slurm(2, 1);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto options = small(directory, SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 2}}, 1)), 4, 200);
  Beside outage(directory, 10, [&] {
    slurm->stop_controller();
    const int before = reports(directory);
    if (!eventually([&] { return reports(directory) >= before + 40; }, 60)) throw std::runtime_error("nothing goes on");
    slurm->start_controller();
  });
  const auto results = run(options);
  outage.check();
  check_whole(results, 4, 200);
  CHECK(no_jobs());
}

TEST_CASE("what Slurm will never grant ends the run with its reason") {
  const auto slurm = test_slurm(1);
  if (!slurm) return;
  TemporaryDirectory folder;
  std::string said;
  try {
    run(small(folder.path() / "run",
              SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 1}, .partition = "nowhere"}, 1)), 1, 5));
  } catch (const Error& error) { said = error.what(); }
  CHECK_THAT(said, ContainsSubstring("nvalid partition"));
  CHECK_THAT(said, ContainsSubstring("worker-1"));
}

TEST_CASE("a job that pends and can never start ends the run with the reason, said once for all workers") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  auto setup = workers_of(folder.path() / "agents", {}, 1);
  SECTION("more than any node has") { setup.options = {.pool = {4, 4}, .cpus = 99}; }
  SECTION("more time than the partition allows") {
    TestSlurm::call({"scontrol", "update", "PartitionName=all", "MaxTime=10"});
    setup.options = {.pool = {4, 4}, .time = 3600, .cpus = 2};
  }
  std::string said;
  try {
    run(small(folder.path() / "run", SlurmExecutor(setup), 8, 5));
  } catch (const Error& error) {
    said = error.what();
    CHECK(error.code() == Errc::resources);
  }
  INFO(said);
  CHECK_THAT(said, ContainsSubstring("all 4 workers: "));
  CHECK(said.find("set aside") == std::string::npos);
  CHECK(no_jobs());
}

TEST_CASE("trials that need more than a worker has are an error before a job is asked for") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  auto options =
      small(folder.path() / "run", SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 2}}, 1)), 2, 5);
  options.resources.cpus = 4;
  std::string said;
  try {
    run(options);
  } catch (const Error& error) { said = error.what(); }
  CHECK_THAT(said, ContainsSubstring("a trial needs 4 cpus (resources.cpus), and a worker has 1 (executor.cpus)"));
  CHECK(TestSlurm::call({"squeue", "-h", "-t", "all"}).empty());
}

TEST_CASE("a driver that is killed leaves no job behind") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const pid_t driver = ::fork();
  if (driver == 0) {
    try {
      run(small(folder.path() / "run",
                SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 2}, .cpus = 2}, 2)), 4, 100000));
    } catch (...) {}
    ::_exit(0);
  }
  const bool working = eventually([&] { return reports(folder.path() / "run") > 5; }, 60);
  ::kill(driver, SIGKILL);
  process::wait_for(driver);
  REQUIRE(working);
  CHECK(no_jobs());
}

namespace {

/// A driver in a process of its own, of which all can be ended at once, as when its machine dies.
class Driver {
 public:
  explicit Driver(const Options& options) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      run(options);
    } catch (...) {}
    ::_exit(0);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { crash(); }

  /// Stops it and all that it has started on its machine, and `others`: nobody is told anything, as when power is lost.
  void stop(const std::vector<pid_t>& others = {}) {
    stopped_ = {pid_};
    for (std::size_t i = 0; i < stopped_.size(); ++i) {
      ::kill(stopped_[i], SIGSTOP);
      for (const pid_t child : process::children_of(stopped_[i])) stopped_.push_back(child);
    }
    for (const pid_t one : others) ::kill(one, SIGSTOP);
    stopped_.insert(stopped_.end(), others.begin(), others.end());
  }
  /// Then kills them together.
  void crash(const std::vector<pid_t>& others = {}) {
    if (pid_ <= 0) return;
    if (stopped_.empty()) stop(others);
    for (const pid_t one : stopped_) ::kill(one, SIGKILL);
    process::wait_for(std::exchange(pid_, -1));
  }

 private:
  pid_t pid_;
  std::vector<pid_t> stopped_;
};

/// The agents on the nodes, and what they run.
std::vector<pid_t> agents_on_nodes(const std::filesystem::path& agents) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = process::to_pid(entry.path().filename().string());
    const auto command = hypertune::detail::read_file(entry.path() / "cmdline").value_or("");
    const bool ours = command.starts_with(HYPERTUNE_TEST_AGENT) && command.find(agents.string()) != std::string::npos;
    if (pid > 1 && ours) found.push_back(pid);
  }
  return found;
}

std::string ids_in_queue() { return TestSlurm::call({"squeue", "-h", "-o", "%i", "--sort=i"}); }

}  // namespace

TEST_CASE("the driver's machine dies with all that ran there: its jobs end by themselves, also those that waited") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto agents = folder.path() / "agents";
  auto setup = workers_of(agents, {.pool = {1, 2}, .cpus = 2}, 2);
  setup.orphan = 3;
  Driver driver(small(folder.path() / "run", SlurmExecutor(setup), 4, 100000));
  REQUIRE(eventually([&] { return reports(folder.path() / "run") > 5; }, 60));
  REQUIRE(eventually([] { return TestSlurm::jobs("PD").size() == 1; }, 30));  // the other worker has no room
  SECTION("the agents live on for a moment") { driver.crash(); }
  SECTION("the agents die with it") { driver.crash(agents_on_nodes(agents)); }
  SECTION("the nodes are not told of it") { driver.stop(); }
  CHECK(no_jobs());
}

TEST_CASE("a driver that resumes an experiment ends the jobs that an earlier one left, and no others") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  const auto setup = workers_of(folder.path() / "agents", {.pool = {1, 2}, .cpus = 2}, 2);
  auto options = small(directory, SlurmExecutor(setup), 4, 40);
  options.stop = ht::steps(100000);
  options.name = "left";
  Driver driver(options);
  REQUIRE(eventually([&] { return reports(directory) > 5; }, 60));
  REQUIRE(eventually([] { return TestSlurm::jobs("PD").size() == 1; }, 30));
  // Another experiment of the same name, and a driver that is refused because the first one lives.
  TestSlurm::call({"sbatch", "--hold", "--job-name=left-00000000.1", "--output=/dev/null", "--wrap", "true"});
  const auto before = ids_in_queue();
  options.resume = true;
  CHECK_THROWS_AS(run(options), Error);
  CHECK(ids_in_queue() == before);

  driver.crash();
  const auto waits = TestSlurm::call({"squeue", "-h", "-t", "PD", "-o", "%i", "-n", "left-00000000.1"});
  // The job that waited begins, and would wait for its driver.
  REQUIRE(eventually([] { return TestSlurm::jobs("PD").size() == 1 && TestSlurm::jobs("R").size() == 1; }, 60));
  Heard heard;
  auto again = setup;
  again.say = [&](const std::string& line) { heard(line); };
  options.executor = SlurmExecutor(again);
  options.stop = ht::steps(40);
  const auto printed = said([&] { run(options); });
  INFO(printed << heard.all());
  CHECK_THAT(printed + heard.all(), ContainsSubstring("an earlier driver of this experiment had left 1 job in Slurm"));
  CHECK(eventually([&] { return ids_in_queue() == waits; }, 30));
  TestSlurm::call({"scancel", waits.substr(0, waits.find('\n'))});
}

TEST_CASE("Ctrl-C while the controller is away: what may be left is named, and ends by itself") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto setup = workers_of(folder.path() / "agents", {.pool = {1, 2}, .cpus = 2}, 2);
  setup.orphan = 3;
  Tuner tuner(Learner::search_space(), learner_program(), small(directory, SlurmExecutor(setup), 4, 100000));
  std::string ids;
  Beside end(directory, 5, [&] {
    if (!eventually([] { return TestSlurm::jobs("PD").size() == 1; }, 30)) throw std::runtime_error("none waits");
    ids = ids_in_queue();
    slurm->stop_controller();
    tuner.stop();
  });
  const auto printed = said([&] { tuner.run(); });
  end.check();
  slurm->start_controller();
  INFO(printed);
  std::replace(ids.begin(), ids.end(), '\n', ' ');
  CHECK_THAT(printed,
             ContainsSubstring("may be left") && ContainsSubstring("scancel " + ids.substr(0, ids.size() - 1)));
  CHECK(no_jobs());
}

TEST_CASE("what a colleague sees of a worker's job: whose it is") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  auto options = small(directory, SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 1}}, 1)), 1, 60);
  options.name = "my sweep";
  std::string seen;
  Beside look(directory, 3, [&] { seen = TestSlurm::call({"squeue", "-h", "-t", "R", "-o", "%j|%k"}); });
  run(options);
  look.check();
  CHECK(seen.starts_with("my_sweep-"));
  CHECK_THAT(seen, ContainsSubstring("|hypertune: worker-1 of the experiment 'my sweep', driven on "));
  CHECK_THAT(seen, ContainsSubstring(" in " + directory.string()));
}

TEST_CASE("within an allocation its nodes are the workers") {
  const auto slurm = test_slurm(3, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  const auto job = TestSlurm::call(
      {"sbatch", "--parsable", "-N2", "--ntasks-per-node=1", "-c2", "--output=/dev/null", "--wrap", "sleep 300"});
  const auto id = job.substr(0, job.find_first_not_of("0123456789"));
  REQUIRE(eventually([] { return TestSlurm::jobs().size() == 1; }));
  const auto nodes = TestSlurm::call({"squeue", "-h", "-j", id, "-o", "%N"});
  const EnvironmentVariable number("SLURM_JOB_ID", id), list("SLURM_JOB_NODELIST", nodes.substr(0, nodes.find('\n'))),
      cpus("SLURM_JOB_CPUS_PER_NODE", "2(x2)"), tasks("SLURM_NTASKS", "2");
  const auto results =
      run(small(directory, SlurmExecutor(workers_of(folder.path() / "agents", {.pool = {1, 8}}, 2)), 6, 20));
  check_whole(results, 6, 20);
  CHECK(hosts_used(directory) == std::set<std::string>{"n1", "n2"});
  CHECK(TestSlurm::jobs().size() == 1);  // no other job was made, and this one goes on
  TestSlurm::call({"scancel", id});
}

TEST_CASE("the end of a worker's time is a save_grace: its trials go on in the next one with no step lost", "[long]") {
  const auto slurm = test_slurm(1, 2);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto directory = folder.path() / "run";
  // Slurm counts in minutes, and gives the notice up to a minute early.
  auto options = small(directory,
                       SlurmExecutor(workers_of(folder.path() / "agents",
                                                {.pool = {1, 1}, .time = 120, .cpus = 2, .save_grace = 30}, 2)),
                       2, 3000);
  options.checkpoint.every = 0;
  const auto results = run(options);
  check_whole(results, 2, 3000);
  CHECK(results.failures(FailureSource::preemption) >= 2);
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  std::string causes;
  read_journal(directory, [&](const Record& record) {
    if (const auto* failed = std::get_if<record::AttemptFailed>(&record.what)) causes += failed->cause.text + "\n";
  });
  CHECK_THAT(causes, ContainsSubstring("its time is nearly over"));
}

TEST_CASE("an ordered sweep under preemptions, deaths and a controller's restart decides as an undisturbed one",
          "[long]") {
  const auto slurm = test_slurm(3);
  if (!slurm) return;
  TemporaryDirectory folder;
  const auto executor = [&](const char* agents) {
    return SlurmExecutor(workers_of(folder.path() / agents,
                                    {.pool = {1, 3}, .partition = "spot", .cpus = 4, .heartbeat_timeout = 3}, 2));
  };
  const auto quiet = run(asha(folder.path() / "quiet", executor("quiet-agents")));
  const auto directory = folder.path() / "war";
  std::atomic<bool> over{false};
  std::atomic<int> deaths{0}, preemptions{0}, outages{0};
  std::string trouble;
  std::thread chaos([&] {
    try {
      while (!over) {
        const int before = reports(directory);
        if (!eventually([&] { return over || reports(directory) >= before + 40; }, 60)) break;
        if (over) break;
        const int turn = deaths + preemptions + outages;
        if (turn % 3 == 0) {
          const int node = TestSlurm::busy_node();
          if (node == 0) continue;
          slurm->kill_node(node);
          ++deaths;
          slurm->start_node(node);
        } else if (turn % 3 == 1) {
          TestSlurm::call({"srun", "-p", "urgent", "-N1", "-n1", "-c4", "sleep", "1"});
          ++preemptions;
        } else {
          slurm->stop_controller();
          slurm->start_controller();
          ++outages;
        }
      }
    } catch (const std::exception& error) { trouble = error.what(); }
  });
  const auto war = run(asha(directory, executor("war-agents")));
  over = true;
  chaos.join();
  INFO(story(war));
  CHECK(trouble == "");
  CHECK(deaths > 0);
  CHECK(preemptions > 0);
  CHECK(outages > 0);
  CHECK(fingerprint(war) == fingerprint(quiet));
  CHECK(war.failures(FailureSource::user) == 0);
  check_reports(war);
  CHECK(no_jobs());
}
