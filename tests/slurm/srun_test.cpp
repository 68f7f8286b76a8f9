// What srun is called with, how many workers there are, and what Slurm's programs say: all that needs no Slurm.
#include "srun.hpp"

#include "queue.hpp"
#include "slurm/support/test_slurm.hpp"
#include "worker_jobs.hpp"

#include <hypertune/remote/worker_scaler.hpp>
#include <hypertune/slurm/detail/messages.hpp>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::remote;
using namespace hypertune::slurm;
using namespace hypertune::test;

namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
std::string problem(const SlurmOptions& options) {
  try {
    check_options(options);
  } catch (const OptionError& error) { return error.what(); }
  return "none";
}

}  // namespace

TEST_CASE("a worker as a job: all that the options say, and one task whose streams are ours") {
  const SlurmOptions options{.partition = "gpu",
                             .account = "lab",
                             .qos = "low",
                             .time = 4 * 3600,
                             .cpus = 4,
                             .gres = "gpu:1",
                             .memory = std::uint64_t{8} << 30U,
                             .save_grace = 90,
                             .workdir = "/work",
                             .args = {"--constraint=a100"}};
  check_options(options);
  const WorkerPlan plan{
      .job = "a-1.1", .comment = "whose it is", .limits = worker_limits(options), .program = {"/bin/train", "--fast"}};
  const auto job = sbatch_arguments(options, plan);
  CHECK(job.front() == "sbatch");
  for (const char* word :
       {"--parsable", "--no-requeue", "--nodes=1", "--ntasks=1", "--job-name=a-1.1", "--comment=whose it is",
        "--cpus-per-task=4", "--partition=gpu", "--account=lab", "--qos=low", "--time=4:00:00", "--gres=gpu:1",
        "--mem=8388608K", "--signal=URG@90", "--chdir=/work", "--constraint=a100"}) {
    INFO(word);
    CHECK(has(job, word));
  }
  const auto words = srun_arguments(options, plan, 12);
  CHECK(words.front() == "srun");
  for (const char* word : {"--jobid=12", "--overlap", "--nodes=1", "--ntasks=1", "--unbuffered", "--mpi=none",
                           "--job-name=a-1.1", "--cpus-per-task=4", "--chdir=/work"}) {
    INFO(word);
    CHECK(has(words, word));
  }
  CHECK_FALSE(has(words, "--constraint=a100"));
  const auto program = std::find(words.begin(), words.end(), "/bin/train");
  REQUIRE(words.end() - program == 4);
  CHECK(program[1] == "--fast");
  CHECK(program[2] == "--hypertune-agent");
  CHECK(program[3] == "host cpus=4 gpus=1 memory=8589934592");
}

TEST_CASE("further options go to the command that knows them") {
  const SlurmOptions options{
      .args = {"--licenses=matlab:1", "--cpu-bind=none", "--clusters=big", "--container-image=x"}};
  check_options(options);
  const auto job = sbatch_arguments(options, {.job = "a"}), step = srun_arguments(options, {.job = "a"}, 7);
  CHECK(has(job, "--licenses=matlab:1"));
  CHECK(has(job, "--clusters=big"));
  CHECK_FALSE(has(job, "--cpu-bind=none"));
  CHECK_FALSE(has(job, "--container-image=x"));
  CHECK_FALSE(has(step, "--licenses=matlab:1"));
  CHECK(has(step, "--clusters=big"));
  CHECK(has(step, "--cpu-bind=none"));
  CHECK(has(step, "--container-image=x"));
}

TEST_CASE("a worker as a step in an allocation shares it, and asks for nothing of its own") {
  const SlurmOptions options{.partition = "gpu", .time = 3600};
  const auto words = srun_arguments(options, {.job = "a", .node = "n7", .limits = {.cpus = 6}, .program = {"/x"}});
  CHECK(has(words, "--overlap"));
  CHECK(has(words, "--nodelist=n7"));
  CHECK(has(words, "--cpus-per-task=6"));
  CHECK(std::none_of(words.begin(), words.end(), [](const auto& word) {
    return word.starts_with("--partition") || word.starts_with("--time") || word.starts_with("--signal");
  }));
}

TEST_CASE("the environment of srun: a job of its own knows nothing of the allocation around its driver") {
  const EnvironmentVariable id("SLURM_JOB_ID", "7"), tasks("SLURM_NTASKS", "3"), conf("SLURM_CONF", "/etc/slurm.conf"),
      nodes("SLURM_JOB_NODELIST", "n[1-3]");
  const auto own = srun_environment({.save_grace = 30}, true);
  CHECK(own.at("SLURM_JOB_ID") == std::nullopt);
  CHECK(own.at("SLURM_NTASKS") == std::nullopt);
  CHECK_FALSE(own.contains("SLURM_CONF"));
  CHECK(own.at("SLURM_OVERLAP") == "1");
  CHECK(own.at("HYPERTUNE_NOTICE") == "30");
  const auto step = srun_environment({}, false);
  CHECK_FALSE(step.contains("SLURM_JOB_ID"));
  CHECK_FALSE(step.contains("SLURM_JOB_NODELIST"));
  CHECK(step.at("SLURM_NTASKS") == std::nullopt);
}

TEST_CASE("options that make no sense are named") {
  CHECK_THAT(problem({.pool = {3, 2}}), ContainsSubstring("pool is 3..2"));
  CHECK_THAT(problem({.partition = "-x"}), ContainsSubstring("partition is '-x'"));
  CHECK_THAT(problem({.partition = "a b"}), ContainsSubstring("partition is 'a b'"));
  CHECK_THAT(problem({.time = 60, .save_grace = 60}),
             ContainsSubstring("save_grace is 60 s, but must be less than 'time'"));
  CHECK_THAT(problem({.cpus = 0}), ContainsSubstring("cpus is 0"));
  CHECK_THAT(problem({.args = {"-n4"}}), ContainsSubstring("'-n4', which hypertune sets itself"));
  CHECK_THAT(problem({.args = {"--output=x"}}), ContainsSubstring("which hypertune sets itself"));
  CHECK_THAT(problem({.args = {"sleep"}}), ContainsSubstring("write options of sbatch or srun"));
  CHECK(problem({.args = {"--nice=10", "-C", "-wn1"}}) == "none");
  CHECK(problem({}) == "none");
}

TEST_CASE("GPUs of a gres, names of jobs, times") {
  CHECK(gpus_of_gres("") == 0);
  CHECK(gpus_of_gres("gpu") == 1);
  CHECK(gpus_of_gres("gpu:2") == 2);
  CHECK(gpus_of_gres("shm:8,gpu:a100:2,gpu:v100") == 3);
  CHECK(gpus_of_gres("gpu:4(S:0-1)") == 4);
  CHECK(gpus_of_gres("gpus:4") == 0);
  CHECK(job_word("my sweep, 2|x") == "my_sweep__2_x");
  CHECK(job_word("-x") == "_x");
  CHECK(time_text(90) == "0:01:30");
  CHECK(time_text(100 * 3600) == "100:00:00");
  CHECK(slots_of({.cpus = 8, .gpus = 2}, {.cpus = 2, .gpus = 1}) == 2);
  CHECK(slots_of({.cpus = 8}, {.cpus = 0}) == 8);
  CHECK(slots_of({.cpus = 1}, {.cpus = 4}) == 1);
}

TEST_CASE("squeue's lines: the newest job of each name, and why it waits") {
  const auto jobs = read_queue(
      "a.1|7|PENDING|Resources\na.1|5|COMPLETING|None\nb.2|12_3|RUNNING|None\n\nnonsense\n"
      "|9|PENDING|x\nc|x|PENDING|x\nd|3|PENDING|ReqNodeNotAvail, UnavailableNodes:n[1|2]");
  REQUIRE(jobs.size() == 3);
  CHECK(jobs.at("a.1") == QueuedJob{7, "PENDING", "Resources"});
  CHECK(jobs.at("b.2").state == "RUNNING");
  CHECK(jobs.at("d").reason == "ReqNodeNotAvail, UnavailableNodes:n[1|2]");
  CHECK(why_waiting(jobs.at("a.1")) == "waits in Slurm's queue (Resources: what it asks for is in use)");
  CHECK_THAT(why_waiting({1, "PENDING", "QOSMaxJobsPerUserLimit"}), ContainsSubstring("limit of its QOS"));
  CHECK(read_jobs("a.1|7|PENDING|Resources\na.1|5|COMPLETING|None\n").size() == 2);
  CHECK(why_waiting({1, "PENDING", "SomethingNew"}) == "waits in Slurm's queue (SomethingNew)");
  CHECK_THAT(why_waiting({1, "CONFIGURING", "None"}), ContainsSubstring("being made ready"));
}

TEST_CASE("what no waiting ends is told from what passes") {
  for (const char* reason :
       {"PartitionConfig", "BadConstraints", "PartitionTimeLimit", "PartitionNodeLimit", "InvalidAccount", "InvalidQOS",
        "QOSNotAllowed", "AccountNotAllowed", "QOSMaxCpuPerJobLimit", "QOSMaxWallDurationPerJobLimit",
        "AssocMaxCpuPerJobLimit", "QOSMaxGRESPerJob", "QOSMaxMemoryPerNode", "QOSMinGRES", "MaxMemPerLimit",
        "DependencyNeverSatisfied"}) {
    INFO(reason);
    CHECK_THAT(why_never({1, "PENDING", reason}), ContainsSubstring("(" + std::string(reason) + ")"));
    CHECK_THAT(why_waiting({1, "PENDING", reason}), ContainsSubstring("never starts"));
    CHECK(why_never({1, "RUNNING", reason}) == "");
  }
  for (const char* reason :
       {"None",
        "",
        "Resources",
        "Priority",
        "QOSMaxJobsPerUserLimit",
        "QOSMaxCpuPerUserLimit",
        "QOSGrpCpuLimit",
        "AssocMaxJobsLimit",
        "AssocGrpCpuLimit",
        "JobHeldAdmin",
        "JobHeldUser",
        "PartitionDown",
        "PartitionInactive",
        "ReqNodeNotAvail, UnavailableNodes:n1",
        "Licenses",
        "BeginTime",
        "Dependency",
        "Reservation",
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        "SomethingNew"}) {
    INFO(reason);
    CHECK(why_never({1, "PENDING", reason}) == "");
  }
}

TEST_CASE("whatever squeue prints, what is read of it is short and printable") {
  std::mt19937 rng(7);
  const std::string alphabet = "a|1\n\r\t\0\x1b\xff|9|PENDING|Resources\n";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (auto length = rng() % 200; length > 0; --length)
      text += rng() % 8 == 0 ? static_cast<char>(rng() % 256) : alphabet[rng() % alphabet.size()];
    for (const auto& [name, job] : read_queue(text)) {
      CHECK(job.id > 0);
      CHECK_FALSE(job.state.empty());
      const auto said = name + why_waiting(job);
      CHECK(said.size() < 700);
      CHECK(std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c < 0x7f; }));
    }
    static_cast<void>(classify_srun(text));
    CHECK(reason_of_srun(text).size() <= 300);
  }
}

TEST_CASE("what srun says: what passes by itself, what somebody has to mend, and its cause as one line") {
  using remote::FailureClass;
  CHECK(classify_srun(
            "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)") ==
        FailureClass::transient);
  CHECK(classify_srun("srun: error: Node failure on n2") == FailureClass::transient);
  CHECK(classify_srun("srun: error: Unable to allocate resources: Invalid partition name specified") ==
        FailureClass::permanent);
  CHECK(classify_srun("something else") == FailureClass::unknown);
  CHECK(reason_of_srun("srun: job 5 queued\nslurmstepd-n1: error: execve(): /x: No such file or directory\n"
                       "srun: error: n1: task 0: Exited with exit code 2\n") ==
        "execve(): /x: No such file or directory");
  CHECK(reason_of_srun("hello\nlast\n") == "last");
  CHECK(reason_of_srun("srun: unrecognized option '--foo'\nTry \"srun --help\" for more information\n") ==
        "srun: unrecognized option '--foo'");
  CHECK(reason_of_srun("srun: error: invalid partition specified: nosuch\n"
                       "srun: error: Unable to allocate resources: Invalid partition name specified\n") ==
        "invalid partition specified: nosuch");
  CHECK(reason_of_srun("Try \"srun --help\" for more information\n") == "Try \"srun --help\" for more information");
}

TEST_CASE("a request that Slurm refuses for good is told from one that it may accept later, in plain words") {
  using remote::FailureClass;
  // As sbatch of Slurm 22.05 and its accounting print them.
  const std::string licence = "sbatch: error: Batch job submission failed: Invalid license specification\n";
  CHECK(classify_srun(licence) == FailureClass::permanent);
  CHECK(reason_of_srun(licence) == "Invalid license specification");
  for (const char* what : {"wckey", "burst buffer", "Trackable RESource (TRES)"}) {
    const auto said = "sbatch: error: Batch job submission failed: Invalid " + std::string(what) + " specification\n";
    CHECK(classify_srun(said) == FailureClass::permanent);
  }
  const std::string policy =
      "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
      "and/or time limits)\n";
  const std::string many = "sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + policy;
  CHECK(classify_srun(many) == FailureClass::transient);
  CHECK(reason_of_srun(many) ==
        "Slurm accepts no job now: its QOS allows you no more jobs at once, whether they wait or run "
        "(QOSMaxSubmitJobPerUserLimit)");
  CHECK(classify_srun("sbatch: error: AssocMaxSubmitJobLimit\n" + policy) == FailureClass::transient);
  CHECK_THAT(reason_of_srun("sbatch: error: AssocGrpSubmitJobsLimit\n" + policy),
             ContainsSubstring("its account allows no more jobs at once"));
  CHECK(classify_srun("sbatch: error: QOSMaxCpuPerJobLimit\n" + policy) == FailureClass::permanent);
  CHECK_THAT(reason_of_srun("sbatch: error: QOSMaxCpuPerJobLimit\n" + policy),
             ContainsSubstring("a worker asks for more than its QOS allows a job"));
}

TEST_CASE("without a configuration of Slurm the cause is that") {
  const std::string said =
      "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
      "sbatch: error: fetch_config: DNS SRV lookup failed\n"
      "sbatch: error: _establish_config_source: failed to fetch config\n"
      "sbatch: fatal: Could not establish a configuration source\n";
  CHECK(classify_srun(said) == remote::FailureClass::permanent);
  CHECK_THAT(reason_of_srun(said), ContainsSubstring("SLURM_CONF") && ContainsSubstring("slurm.conf"));
  CHECK(reason_of_srun(said).find("res_nsearch") == std::string::npos);
  const EnvironmentVariable conf("SLURM_CONF", "/nonexistent/slurm.conf");
  std::string problem;
  try {
    require_configuration();
  } catch (const Error& error) { problem = error.what(); }
  CHECK_THAT(problem, ContainsSubstring("there is no '/nonexistent/slurm.conf', which SLURM_CONF names"));
}

TEST_CASE("a job that is over already counts as cancelled, one whose controller is away does not") {
  CHECK(cancelled(0, ""));
  CHECK(cancelled(1, "scancel: error: Kill job error on job id 7: Invalid job id specified\n"));
  CHECK(cancelled(1, "scancel: error: Kill job error on job id 7: Job/step already completing or completed\n"));
  CHECK_FALSE(cancelled(1,
                        "scancel: error: Kill job error on job id 7: Invalid job id specified\n"
                        "scancel: error: Kill job error on job id 8: Unable to contact slurm controller (connect "
                        "failure)\n"));
  CHECK_FALSE(cancelled(1, ""));
}

TEST_CASE("the jobs of an experiment have a name that a later driver finds, and nobody else has") {
  const TemporaryDirectory folder;
  const auto one = folder.path() / "one", two = folder.path() / "two", link = folder.path() / "link";
  std::filesystem::create_directory(one);
  std::filesystem::create_directory(two);
  std::filesystem::create_symlink(one, link);
  CHECK(job_stem("my sweep", one).starts_with("my_sweep-"));
  CHECK(job_stem("a", one) == job_stem("a", one));
  CHECK(job_stem("a", link) == job_stem("a", one));
  CHECK(job_stem("a", one) != job_stem("a", two));
  // Another folder of the same name, as on another machine.
  const auto before = job_stem("a", one);
  std::filesystem::rename(one, folder.path() / "kept");
  std::filesystem::create_directory(one);
  CHECK(job_stem("a", one) != before);
}

TEST_CASE("there are as many workers as the queue asks for, and those without a trial end after a while") {
  WorkerScaler workers({1, 4}, 2, 10, false);
  CHECK(workers.step(0, {.waiting = 5}).launch == std::vector{0, 1, 2});
  CHECK(workers.step(1, {.waiting = 100}).launch == std::vector{3});
  // Two run on one worker; one more waits, and has a place on another that runs one.
  const WorkerStates two{.waiting = 1, .running = {2, 1, 0, 0}, .up = {true, true, true, false}};
  CHECK(workers.step(2, two).end_workers.empty());
  const auto later = workers.step(12, two);
  CHECK(later.end_workers == std::vector{3, 2});  // who waits in the queue is the first
  CHECK(later.launch.empty());
  CHECK(workers.step(13, {.waiting = 3, .running = {2, 1}, .up = {true, true}}).launch == std::vector{2});
  // None is needed: the least number stays.
  const WorkerStates none{.running = {0, 0, 0, 0}, .up = {true, true, true, false}};
  CHECK(workers.step(14, none).end_workers.empty());
  CHECK(workers.step(30, none).end_workers == std::vector{2, 1});
  CHECK(workers.launched(0));
  // A trial that comes in time saves a worker.
  WorkerScaler patient({0, 2}, 1, 10, false);
  CHECK(patient.step(0, {.waiting = 1}).launch == std::vector{0});
  const WorkerStates idle{.running = {0}, .up = {true}};
  CHECK(patient.step(1, idle).end_workers.empty());
  CHECK(patient.step(8, {.running = {1}, .up = {true}}).end_workers.empty());
  CHECK(patient.step(12, idle).end_workers.empty());
  CHECK(patient.step(22, idle).end_workers == std::vector{0});
}

TEST_CASE("the workers of an ordered run are all there from the start to the end") {
  WorkerScaler workers({1, 3}, 1, 0, true);
  CHECK(workers.step(0, {.waiting = 1}).launch == std::vector{0, 1, 2});
  CHECK(workers.step(100, {.running = {0, 0, 0}, .up = {true, true, true}}).end_workers.empty());
}

TEST_CASE("the number of workers stays within its bounds, whatever is seen") {
  std::mt19937 rng(3);
  for (int round = 0; round < 200; ++round) {
    const int least = static_cast<int>(rng() % 3), most = least + 1 + static_cast<int>(rng() % 5);
    WorkerScaler workers({least, most}, 1 + static_cast<int>(rng() % 3), static_cast<double>(rng() % 5), false);
    for (double now = 0; now < 40; now += 1) {
      WorkerStates states{.waiting = static_cast<int>(rng() % 20)};
      for (int i = 0; i < most; ++i) {
        states.running.push_back(workers.launched(i) ? static_cast<int>(rng() % 3) : 0);
        states.up.push_back(states.running.back() > 0 || rng() % 2 == 0);
      }
      const auto orders = workers.step(now, states);
      int launched = 0;
      for (int i = 0; i < most; ++i) launched += workers.launched(i) ? 1 : 0;
      CHECK(launched >= least);
      CHECK(launched <= most);
      for (const int gone : orders.end_workers) CHECK(states.running[static_cast<std::size_t>(gone)] == 0);
    }
  }
}
