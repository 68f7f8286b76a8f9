"""Sweeps on Slurm: workers as jobs, within an allocation, and the driver as a batch job that goes on where it was."""
import re

from served import *
from support import *

TESTSLURM = ROOT / "tests/support/slurm/testslurm"


class SlurmCase(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(AWAY_TRAINER)
        self.state = self.folder / "slurm"
        self.addCleanup(lambda: self.slurm("down"))
        done = self.slurm("up", 2, "--cpus", 2, "--owner", os.getpid())
        if done.returncode == 3:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.environment["SLURM_CONF"] = str(self.state / "slurm.conf")

    def slurm(self, *words):
        return subprocess.run([str(TESTSLURM), str(self.state), *map(str, words)], capture_output=True, text=True)

    def call(self, *words):
        """One of Slurm's own commands."""
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, timeout=60,
                              env={**os.environ, **self.environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def jobs(self):
        return self.call("squeue", "-h", "-o", "%j %T").splitlines()


class Slurm(SlurmCase):
    def sweep(self, executor, samples=4, steps=4, pause=0):
        return self.write(AWAY_SWEEP.format(executor=executor, failures=0, samples=samples, steps=steps, pause=pause))

    def check_whole(self, trials, steps, lost=0):
        """`lost`: attempts that may have ended with their worker."""
        results = self.results("runs/away")
        self.assertEqual([(t["state"], t["steps"]) for t in results], [("completed", steps)] * trials,
                         [t["cause"] for t in results])
        self.assertLessEqual(sum(t["failures"] for t in results), lost)
        self.assert_each_report_once("runs/away")

    def test_a_sweep_on_workers(self):
        self.sweep('{type: slurm, pool: 1..2, cpus: 2, gres: "gpu:1"}', samples=6)
        _, err = self.run_command("run", "sweep.yaml", "--plain")
        self.assertIn("executor slurm", err)
        self.check_whole(6, 4)
        logs = [log.read_text() for log in (self.folder / "runs/away/trials").glob("*/log")]
        self.assertTrue(all("threads 2 gpus 0" in log or "threads 2 gpus 1" in log for log in logs), logs)
        wait_until(lambda: not self.jobs(), "the end of all jobs", 20)

    def test_within_an_allocation(self):
        self.sweep("slurm", samples=4)
        self.call("salloc", "-N2", "--ntasks-per-node=1", "-c2", os.environ["HYPERTUNE"], "run", "sweep.yaml", "--quiet")
        self.check_whole(4, 4)

    def test_a_trial_that_starts_a_step_of_its_own(self):
        self.sweep("{type: slurm, pool: 1, cpus: 2}", samples=2)
        text = (self.folder / "sweep.yaml").read_text().replace(
            'command: [python3, train.py, "{rate}"]',
            """command: [sh, -c, 'srun -n2 -c1 sh -c "[ \\$SLURM_PROCID = 0 ] && exec python3 train.py $0; exit 0"', "{rate}"]""")
        self.write(text)
        self.run_command("run", "sweep.yaml", "--quiet")
        self.check_whole(2, 4)

    def test_the_driver_as_a_job_that_is_preempted_and_goes_on(self):
        self.sweep("{type: slurm, pool: 1, cpus: 1, partition: spotq}", samples=2, steps=300, pause=0.1)
        out, _ = self.run_command("submit", "--slurm", "sweep.yaml", "--", "--partition=spotq", "-w", "n1", "-c2")
        self.assertRegex(out, r"job \d+: the driver of 'away'")
        self.wait_for_reports(5)
        before = len(self.reports())
        self.call("srun", "-p", "urgent", "-w", "n1", "-c2", "-n1", "true")
        wait_until(lambda: not self.jobs(), "the end of the driver", 300)
        self.assertGreater(len(self.reports()), before)
        self.check_whole(2, 300, lost=2)  # the driver's srun are preempted with it
        log = (self.folder / "runs/away.slurm.log").read_text()
        self.assertRegex(log, "PREEMPTION|is queued again")
        self.assertIn("results:", log)

    def test_the_driver_as_a_job_whose_time_is_over_is_queued_again(self):
        self.sweep("local", samples=2, steps=60, pause=0.1)
        out, _ = self.run_command("submit", "--slurm", "sweep.yaml", "--", "-c2")
        number = out.split(":")[0].split()[1]
        self.wait_for_reports(5)
        self.call("scancel", "--batch", "--signal=TERM", number)  # as --signal=B:TERM does
        wait_until(lambda: not self.jobs(), "the end of the driver", 240)
        self.check_whole(2, 60)
        log = (self.folder / "runs/away.slurm.log").read_text()
        self.assertIn("is queued again, and goes on from there", log)
        self.assertIn("results:", log)

    def test_a_cancelled_driver_does_not_come_back(self):
        self.sweep("local", samples=2, steps=400, pause=0.1)
        self.run_command("submit", "--slurm", "sweep.yaml")
        self.wait_for_reports(5)
        self.call("scancel", "--name=away")
        wait_until(lambda: not self.jobs(), "the end of the driver", 60)
        self.run_command("submit", "--slurm", "sweep.yaml", "--set", "trial.environment.PAUSE='0'")
        wait_until(lambda: not self.jobs(), "the end of the driver", 60)
        self.check_whole(2, 400)

    def driver(self):
        """The process that drives the experiment, 0: there is none yet."""
        try:
            pid = int((self.folder / "runs/away/driver.lock").read_text().split()[0])
            return pid if b"run" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") else 0
        except (OSError, ValueError, IndexError):
            return 0

    def test_a_driver_that_is_killed_goes_on_in_its_job(self):
        self.sweep("{type: slurm, pool: 1, cpus: 1}", samples=2, steps=60, pause=0.1)
        out, _ = self.run_command("submit", "--slurm", "sweep.yaml")
        number = out.split(":")[0].split()[1]
        self.assertEqual(self.call("squeue", "-h", "-j", number, "-o", "%j|%k").strip(),
                         f"away|hypertune: the driver of the experiment 'away' in {self.folder.resolve()}/runs/away")
        self.wait_for_reports(5)
        os.kill(self.driver(), signal.SIGKILL)
        wait_until(lambda: not self.jobs(), "the end of all jobs", 240)
        self.check_whole(2, 60, lost=2)
        log = (self.folder / "runs/away.slurm.log").read_text()
        self.assertIn("the driver was killed (signal 9, as when the job's memory is used up), and goes on", log)
        self.assertIn("results:", log)
        self.assertIn("JobState=COMPLETED", self.call("scontrol", "show", "job", number))

    def test_a_driver_that_is_killed_again_and_again_is_not_started_for_ever(self):
        self.sweep("local", samples=1, steps=4000, pause=0.1)
        out, _ = self.run_command("submit", "--slurm", "sweep.yaml")
        number = out.split(":")[0].split()[1]
        killed = set()

        def over():
            pid = self.driver()
            if pid and pid not in killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
            return not self.jobs()
        wait_until(over, "the end of the job", 240)
        self.assertEqual(len(killed), 6)
        self.assertIn("the driver was killed 6 times in a row", (self.folder / "runs/away.slurm.log").read_text())
        self.assertIn("JobState=FAILED", self.call("scontrol", "show", "job", number))

    def test_the_drivers_machine_dies_and_the_experiment_goes_on(self):
        self.sweep("{type: slurm, pool: 1..2, cpus: 2}", samples=2, steps=100, pause=0.1)
        run = self.start("run", "sweep.yaml", "--quiet")
        self.wait_for_reports(30)
        names = {job.split()[0] for job in self.jobs()}
        self.assertTrue(all(re.fullmatch(r"away-[0-9a-f]{8}\.[12]", name) for name in names), names)

        # The driver, what it has started, and the agents: stopped, then killed together.
        dead = [run.pid]
        for pid in dead:
            os.kill(pid, signal.SIGSTOP)
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                dead += map(int, (task / "children").read_text().split())
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink() == self.folder.resolve() and \
                        b"--hypertune-agent" in (entry / "cmdline").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGSTOP)
                    dead.append(int(entry.name))
            except OSError:
                pass
        for pid in dead:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.communicate()
        wait_until(lambda: not self.jobs(), "the end of all jobs", 60)
        again = self.start("run", "sweep.yaml", "--resume", "--plain")
        seen = set()

        def look():
            seen.update(job.split()[0] for job in self.jobs())
            return again.poll() is not None
        wait_until(look, "the end of the run", 120)
        again.communicate()
        self.assertEqual(again.returncode, 0)
        self.assertLessEqual(names, seen)  # the same names, so that a driver finds what an earlier one left
        self.check_whole(2, 100, lost=2)
        wait_until(lambda: not self.jobs(), "the end of all jobs", 20)

    def test_status_says_what_no_worker_can_begin_for(self):
        holder = subprocess.Popen(["srun", "-N2", "-c2", "sleep", "300"], env={**os.environ, **self.environment})
        self.addCleanup(holder.wait)
        self.addCleanup(holder.terminate)
        wait_until(lambda: self.jobs() == ["sleep RUNNING"], "the other job", 20)
        self.sweep("{type: slurm, pool: 1..2}")
        run = self.start("run", "sweep.yaml", "--quiet")
        self.addCleanup(run.communicate)
        self.addCleanup(run.terminate)

        def status():
            done = subprocess.run([HYPERTUNE, "status", "runs/away"], cwd=self.folder, capture_output=True, text=True)
            return done.stdout if "Slurm's queue (" in done.stdout else ""  # else it has not begun, or not asked Slurm
        shown = wait_until(status, "the reason", 60)
        self.assertRegex(shown, r"no trial runs: waits for a worker: worker-1.*: waits in Slurm's queue \(")
        self.assertTrue(all(job.startswith(("away-", "sleep ")) for job in self.jobs()), self.jobs())

    def reports(self):
        return [r for t in self.results("runs/away", history=True) for r in t["history"]]

    def wait_for_reports(self, count):
        def steps():
            done = subprocess.run([HYPERTUNE, "results", "runs/away", "--format", "json"], cwd=self.folder,
                                  capture_output=True, text=True)
            return sum(t["steps"] for t in json.loads(done.stdout)) if done.returncode == 0 else 0  # not begun
        wait_until(lambda: steps() >= count, "reports", 60)

    def test_what_cannot_work_is_said(self):
        self.sweep("{type: slurm, partition: nowhere}")
        _, err = self.run_command("run", "sweep.yaml", "--plain", code=2)
        self.assertIn("nvalid partition", err)
        self.assertNotIn("set aside", err.splitlines()[-1])
        self.sweep("{type: slurm, pool: 4, args: [--foo]}")
        _, err = self.run_command("run", "sweep.yaml", "--output", "runs/foo", "--plain", code=2)
        self.assertIn("unrecognized option '--foo'", err.splitlines()[-1])
        self.assertNotIn("--help", err)
        self.sweep('{type: slurm, pool: 2, args: ["--licenses=nope"]}')
        _, err = self.run_command("run", "sweep.yaml", "--output", "runs/licence", "--plain", code=2, timeout=30)
        self.assertIn("Invalid license specification", err.splitlines()[-1])
        _, err = self.run_command("submit", "--slurm", "sweep.yaml", "--", "--licenses=nope", code=2)
        self.assertIn("sbatch has refused the job: Invalid license specification", err)
        self.sweep("{type: slurm, pool: 4, cpus: 99}")
        _, err = self.run_command("run", "sweep.yaml", "--output", "runs/wide", "--plain", code=2)
        self.assertIn("it asks for 99 cpus", err.splitlines()[-1])
        wait_until(lambda: not self.jobs(), "the end of all jobs", 20)
        conf = self.environment.pop("SLURM_CONF")
        if not pathlib.Path("/etc/slurm/slurm.conf").exists():
            for what in (["run", "sweep.yaml", "--plain"], ["submit", "--slurm", "sweep.yaml"]):
                _, err = self.run_command(*what, code=2)
                self.assertIn("SLURM_CONF is not set, and there is no slurm.conf", err)
                self.assertNotIn("res_nsearch", err)
        self.environment["SLURM_CONF"] = str(self.folder / "nowhere.conf")
        for what in (["run", "sweep.yaml", "--plain"], ["submit", "--slurm", "sweep.yaml"]):
            _, err = self.run_command(*what, code=2, timeout=20)
            self.assertIn("nowhere.conf', which SLURM_CONF names", err)
        self.environment["SLURM_CONF"] = conf
        (self.folder / "bin").mkdir()
        (self.folder / "bin/python3").symlink_to(shutil.which("python3"))
        self.environment["PATH"] = str(self.folder / "bin")
        _, err = self.run_command("run", "sweep.yaml", "--plain", code=2)
        self.assertIn("srun", err)


class Serve(SlurmCase):
    """examples/serving/serve.sbatch as it is, apart from what the test's nodes lack."""
    def setUp(self):
        super().setUp()
        make_served(self, self.folder)
        bin = self.folder / "bin"
        bin.mkdir()
        (bin / "hypertune").symlink_to(HYPERTUNE)
        self.environment["PATH"] = f"{bin}:{self.environment['PATH']}"
        shutil.copy(ROOT / "examples/serving/serve.sbatch", self.folder)

    def submit(self, *options):
        out = self.call("sbatch", "--parsable", "--cpus-per-task=1", "--mem=100", *options, "serve.sbatch", "runs/digits", "--",
                        "./answer.sh")
        return out.strip()

    def log(self, number):
        path = self.folder / f"serve-{number}.log"
        return path.read_text() if path.exists() else ""

    def state_of(self, number):
        return re.search("JobState=(\\w+)", self.call("scontrol", "show", "job", number)).group(1)

    def served(self):
        """Where it says that it listens, once it answers there. All nodes are on this machine."""
        def answers():
            try:
                host, port = (self.folder / "serve.address").read_text().strip().rsplit(":", 1)
            except (OSError, ValueError):
                return None
            self.assertEqual(host, os.uname().nodename)
            self.client = Client(self.folder / "serve.crt", (self.folder / "serve.token").read_text().strip())
            at = ("127.0.0.1", int(port))
            return at if self.client.ready(at) else None
        return wait_until(answers, "the server", 240)

    def served_again(self, number, node):
        """After it was queued again. Slurm lets it wait for two minutes, as its last node refuses it for some time: it is sent to
        the other one at once."""
        wait_until(lambda: "Restarts=0" not in self.call("scontrol", "show", "job", number), "that it is queued again", 240)

        def begins():
            subprocess.run(["scontrol", "update", f"jobid={number}", f"excnodelist={node}", "starttime=now"], capture_output=True, timeout=60,
                           env={**os.environ, **self.environment})
            return self.state_of(number) == "RUNNING"
        wait_until(begins, "that it begins again", 240)
        return self.served()

    def node_of(self, number):
        return self.call("squeue", "-h", "-j", number, "-o", "%N").strip()

    def begin_slow(self, at, number):
        slow = in_background(lambda: self.client.predict(at, 7))
        wait_until(lambda: "seven is asked" in self.log(number), "the request")
        return slow

    def end_slow(self, slow, at):
        """What it was asked before it was told to end is answered."""
        wait_until(lambda: not self.client.accepts(at), "that the server accepts nobody")
        (self.folder / "release").touch()
        self.assertEqual(slow(), (200, {"y": [1007]}))

    def test_a_server_that_is_cancelled_answers_what_it_was_asked(self):
        number = self.submit()
        at = self.served()
        self.assertEqual(self.client.predict(at, 8), (200, {"y": [1008]}))
        self.assertEqual(self.client.predict(at, 8, headers={})[0], 401)
        self.assertEqual({oct((self.folder / f"serve.{kind}").stat().st_mode & 0o777) for kind in ("token", "pem", "crt", "address")},
                         {"0o600"})
        self.assertIn(f"it is served at {os.uname().nodename}:{at[1]}\n", self.log(number))
        # As docs/serving.md has it, but that the node has no name here.
        shell = f"curl -sS --cacert serve.crt --connect-to hypertune-serve:443:127.0.0.1:{at[1]} " \
                "-H @<(echo \"Authorization: Bearer $(cat serve.token)\") https://hypertune-serve/predict -d '{\"x\": [9]}'"
        if shutil.which("curl"):
            self.assertEqual(json.loads(self.call("bash", "-c", shell)), {"y": [1009]})
        slow = self.begin_slow(at, number)
        self.call("scancel", number)
        self.end_slow(slow, at)
        wait_until(lambda: not self.jobs(), "the end of the job", 240)
        self.assertEqual(self.state_of(number), "CANCELLED")
        self.assertNotIn("is queued again", self.log(number))

    def test_a_server_whose_time_is_over_answers_again(self):
        number = self.submit()
        at = self.served()
        node = self.node_of(number)
        slow = self.begin_slow(at, number)
        token = (self.folder / "serve.token").read_text()
        self.call("scancel", "--batch", "--signal=TERM", number)  # as --signal=B:TERM does
        self.end_slow(slow, at)
        self.assertEqual(self.client.predict(self.served_again(number, node), 8), (200, {"y": [1008]}))
        self.assertEqual((self.folder / "serve.token").read_text(), token)
        self.assertIn("it is queued again", self.log(number))

    def test_a_server_that_is_preempted_answers_again(self):
        number = self.submit("--partition=spotq", "--exclusive")
        self.served()
        node = self.node_of(number)
        self.call("srun", "-p", "urgent", "-w", node, "-n1", "--exclusive", "true")
        self.assertEqual(self.client.predict(self.served_again(number, node), 8), (200, {"y": [1008]}))

    def test_a_server_whose_node_is_lost_answers_on_another_one(self):
        number = self.submit()
        at = self.served()
        node = self.node_of(number)
        self.slurm("kill-node", node[1:])
        again = self.served_again(number, node)
        self.assertNotEqual(again, at)
        self.assertNotEqual(self.node_of(number), node)
        self.assertEqual(self.client.predict(again, 8), (200, {"y": [1008]}))


if __name__ == "__main__":
    unittest.main()
