"""Sweeps whose machines come and go with their queue: real hosts, made and ended by a provider's program."""
import shlex

from cluster_case import *

PROVIDER = pathlib.Path(__file__).resolve().parent / "host_machines.py"
TRAINER = r'''
import json, os, time
trial, checkpoint = int(os.environ["HYPERTUNE_TRIAL"]), os.environ["HYPERTUNE_CHECKPOINT"]
restore, done = os.environ.get("HYPERTUNE_RESTORE"), 0
if restore:
    done = int(open(os.path.join(restore, "done")).read())
for step in range(done, 3):
    time.sleep(float(os.environ["LAST"] if trial == 19 else os.environ["PAUSE"]))
    folder = os.path.join(checkpoint, f"step-{step}")
    os.makedirs(folder)
    open(os.path.join(folder, "done"), "w").write(str(step + 1))
    print(json.dumps({"step": step, "loss": 1 / (step + 1), "checkpoint": f"step-{step}"}), flush=True)
'''


class Scale(Case):
    def setUp(self):
        super().setUp()
        self.make_cloud()
        self.write("train.py", TRAINER)
        self.cluster()
        self.sweep()

    def cluster(self, spot=2, more="", minutes=0.03):
        self.write("c.yaml", f"""
cluster_name: scale{os.getpid()}
max_workers: 3
idle_timeout_minutes: {minutes}
provider: {{type: command, command: ["{PROVIDER}", "{self.cloud}"], settings: {{spot: {spot}}}, start_timeout: 60s}}
auth: {{ssh_user: root, ssh_private_key: {self.cloud}/hosts/id}}
available_node_types:
  head: {{resources: {{CPU: 1}}, max_workers: 0, price: 1}}
  worker: {{resources: {{CPU: 2}}, spot: true, price: {{on_demand: 360, spot: 90}}}}
head_node_type: head
{more}
""")

    def sweep(self, pause=0.1, last=4, more=""):
        self.write("sweep.yaml", f"""
name: grown
trial: {{command: [python3, train.py], environment: {{PAUSE: "{pause}", LAST: "{last}"}}}}
space: {{rate: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: 20
executor: {{type: ssh, cluster: c.yaml, file_mounts: {{train.py: train.py}}}}
output: runs/grown
{more}
""")

    def start(self, *arguments, **options):
        process = super().start(*arguments, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)  # a test that fails leaves none behind
        return process

    def machines(self):
        file = self.cloud / "machines.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def events(self):
        file = self.cloud / "events.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def results(self):
        return json.loads(self.run_command("results", "runs/grown", "--format", "json")[0])

    def reports(self):
        """Steps so far; 0 while nothing is recorded."""
        process = self.start("results", "runs/grown", "--format", "json")
        out, _ = self.finish(process)
        return sum(trial["steps"] for trial in json.loads(out)) if process.returncode == 0 else 0

    def assert_all_ended(self):
        self.assertEqual(self.machines(), {})
        events = self.events()
        made = {event["id"] for event in events if event["event"] == "create"}
        self.assertEqual(made, {event["id"] for event in events if event["event"] == "terminate"})
        self.assertEqual(self.status()["machines"], [])

    def test_grows_with_the_queue_and_shrinks_when_it_is_empty(self):
        process = self.start("run", "sweep.yaml", "--plain")
        out, err = self.finish(process, 180)
        end = time.time()
        self.assertEqual(process.returncode, 0, out + err)
        trials = self.results()
        self.assertEqual([trial["state"] for trial in trials], ["completed"] * 20)
        self.assertEqual({trial["steps"] for trial in trials}, {3})
        events = self.events()
        self.assertEqual(max(event["there"] for event in events), 3, events)
        # Spot first, and on-demand where there is no more of it.
        self.assertEqual(sorted(event["spot"] for event in events if event["event"] == "create")[:3], [False, True, True])
        # While the last trial ran, the others went for want of work.
        early = [event for event in events if event["event"] == "terminate" and event["time"] < end - 3]
        self.assertGreaterEqual(len(early), 1, (events, end, err))
        self.assert_all_ended()
        self.assertIn("cost: ", out)
        self.assertIn("saved by spot machines", out)
        cost = json.loads(self.run_command("status", "runs/grown", "--format", "json")[0])["cost"]
        self.assertEqual(cost["machines"], len([event for event in events if event["event"] == "create"]))
        self.assertAlmostEqual(cost["total"], sum(line["hours"] * line["price"] for line in cost["lines"]), places=6)
        self.assertAlmostEqual(cost["saved"], sum(line["hours"] * 270 for line in cost["lines"] if line["spot"]), places=6)
        both = json.loads(self.run_command("results", "runs/grown", "--format", "json", "--cost")[0])
        self.assertEqual(both["trials"], trials)
        self.assertEqual(set(both["cost"]), set(cost))
        for key in ("hours", "total", "saved", "trial_hours"):
            self.assertAlmostEqual(both["cost"][key], cost[key], places=6)
        self.assertEqual(cost["repeated_steps"], 0)
        self.assertIn("--format json", self.run_command("results", "runs/grown", "--cost", code=2)[1])
        for command in ("status", "results"):
            self.assertIn(out[out.index("cost: "):].splitlines()[0], self.run_command(command, "runs/grown")[0])

    def test_interrupted_killed_and_resumed_no_machine_is_forgotten(self):
        self.sweep(pause=0.4, last=0.4)
        process = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: self.reports() >= 5, "some reports")
        process.send_signal(signal.SIGINT)
        out, err = self.finish(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.assert_all_ended()
        first = json.loads((self.folder / "runs/grown/cost.json").read_text())
        self.assertFalse(first["open"])
        before = self.reports()
        process = self.start("run", "sweep.yaml", "--plain", "--resume")
        wait_until(lambda: self.reports() >= before + 5, "more reports")
        process.kill()
        process.communicate()
        left = self.machines()
        self.assertGreater(len(left), 0)
        self.assertEqual({machine["id"] for machine in self.status()["machines"]}, set(left))
        out, _ = self.run_command("run", "sweep.yaml", "--plain", "--resume", timeout=180)
        trials = self.results()
        self.assertEqual([trial["state"] for trial in trials], ["completed"] * 20)
        self.assert_all_ended()
        # All three runs are counted, and what the machines did while no driver was there.
        cost = json.loads(self.run_command("status", "runs/grown", "--format", "json")[0])["cost"]
        self.assertEqual(cost["machines"], len([event for event in self.events() if event["event"] == "create"]))
        begun, hours = {}, 0
        for event in self.events():
            if event["event"] == "create":
                begun[event["id"]] = event["time"]
            else:
                hours += (event["time"] - begun[event["id"]]) / 3600
        self.assertAlmostEqual(cost["hours"] * 3600, hours * 3600, delta=15)

    def test_a_terminal_that_is_closed_ends_the_run_in_order(self):
        self.sweep(pause=0.5)
        process = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: self.reports() >= 3, "some reports")
        process.send_signal(signal.SIGHUP)
        out, err = self.finish(process)
        self.assertEqual(process.returncode, 130, out + err)
        self.assert_all_ended()

    def take_away(self):
        """All machines at once, as a provider does it that wants its spot machines back."""
        import fcntl
        with open(self.cloud / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            gone = self.machines()
            (self.cloud / "machines.json").write_text("{}")
            for name in gone:
                subprocess.run([HOSTS, self.cloud / "hosts", "kill", name.removeprefix("host"), "--wipe"], check=True,
                               capture_output=True, timeout=60)
        return gone

    def test_machines_that_are_taken_away_are_replaced(self):
        self.sweep(pause=0.5, last=0.5, more="failures: {max_retries: 3}")
        process = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: self.reports() >= 10, "some reports")
        gone = self.take_away()
        self.assertGreater(len(gone), 0)
        out, err = self.finish(process, 180)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual([(trial["state"], trial["steps"]) for trial in self.results()], [("completed", 3)] * 20)
        self.assertTrue({event["id"] for event in self.events() if event["event"] == "create"} - set(gone))
        self.assertEqual(self.machines(), {})
        self.assertIn("done twice", out)

    def test_a_cpp_program_grows_by_one_line(self):
        example = pathlib.Path(os.environ.get("EXAMPLES", "")) / "cluster_machines"
        if not example.exists():
            self.skipTest("the examples are not built")

        def program():
            process = subprocess.Popen([example, "c.yaml"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            return process

        def ended():
            out, _ = self.finish(process := super(Scale, self).start("results", "runs/cluster_machines", "--format", "json"))
            return sum(trial["state"] == "completed" for trial in json.loads(out)) if process.returncode == 0 else 0
        process = program()
        wait_until(lambda: self.machines(), "a machine")
        process.send_signal(signal.SIGINT)  # before it is up, or just after
        _, err = self.finish(process)
        self.assertIn("interrupted", err)
        self.assert_all_ended()
        process = program()
        wait_until(ended, "a trial")
        process.kill()
        process.communicate()
        self.assertGreater(len(self.machines()), 0)
        process = program()
        out, err = self.finish(process, 180)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertIn("error=", out)
        self.assertEqual(ended(), 24)
        self.assertEqual(max(event["there"] for event in self.events()), 3)
        self.assert_all_ended()
        cost = json.loads((self.folder / "runs/cluster_machines/cost.json").read_text())
        self.assertFalse(cost["open"])
        self.assertIn("cost: ", self.run_command("results", "runs/cluster_machines")[0])
        events = len(self.events())
        process = program()  # nothing is left to do: no machine is asked for
        out, err = self.finish(process)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(len(self.events()), events)

    def test_down_ends_what_a_killed_run_has_left(self):
        self.sweep(pause=1)
        process = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: len(self.machines()) >= 2, "machines")
        _, err = self.run_command("down", "c.yaml", "-y", code=2)  # not under a run that goes on
        self.assertIn(f"process {process.pid}", err)
        process.kill()
        process.communicate()
        self.run_command("down", "c.yaml", "-y")
        self.assert_all_ended()

    def test_ctrl_c_before_the_first_machine_is_up(self):
        self.cluster(more='setup_commands: ["sleep 60"]')
        process = self.start("run", "sweep.yaml", "--plain")
        wait_until(lambda: self.machines(), "a machine")
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process)
        self.assertEqual(process.returncode, 130, err)
        self.assert_all_ended()

    def test_what_can_never_be_is_said_before_a_machine_is_made(self):
        self.sweep(more="resources: {cpus: 3}")
        _, err = self.run_command("run", "sweep.yaml", code=2)
        self.assertIn("a trial asks for 3 cpus, which no machine of available_node_types has (the largest, 'worker'", err)
        self.sweep(more="resources: {gpus: 1}")
        self.assertIn("1 gpus", self.run_command("run", "sweep.yaml", code=2)[1])
        self.sweep()
        self.write("c.yaml", "cluster_name: x\nprovder: {}\n")
        self.assertIn("c.yaml:2", self.run_command("run", "sweep.yaml", code=2)[1])
        (self.folder / "c.yaml").unlink()
        self.assertIn("c.yaml", self.run_command("run", "sweep.yaml", code=2)[1])
        self.assertEqual(self.events(), [])

    def test_machines_that_cannot_be_set_up_end_the_run(self):
        self.cluster(more='setup_commands: ["echo no such disk >&2; exit 1"]')
        _, err = self.run_command("run", "sweep.yaml", "--plain", code=1, timeout=180)
        self.assertIn("no machine comes up", err)
        self.assertIn("no such disk", err)
        self.assert_all_ended()


class Submitted(HostsCase):
    def test_a_submitted_sweep_grows_from_the_head(self):
        self.write("train.sh", "#!/bin/sh\nhostname >&2\nsleep 0.5\necho '{\"step\": 0, \"loss\": 1}'\n", 0o755)
        self.write("sub/c.yaml", f"""
cluster_name: submitted{os.getpid()}
provider: {{type: local, head_ip: host1, worker_ips: [host2, host3]}}
auth: {{ssh_config: {self.config}}}
min_workers: 0
max_workers: 2
idle_timeout_minutes: 0.05
""")
        self.write("sweep.yaml", """
name: s
trial: {command: [sh, ./train.sh]}
space: {x: {uniform: [0, 1]}}
metric: loss
mode: min
samples: 16
executor: {type: ssh, cluster: sub/c.yaml, file_mounts: {train.sh: train.sh}}
output: runs/s
""")
        # What the head needs to log in to the workers by that file.
        for name in ("ssh_config", "id", "known_hosts"):
            text = (pathlib.Path(self.state) / name).read_text()
            self.ssh("host1", f"umask 077; mkdir -p {self.state}; printf %s {shlex.quote(text)} >{self.state}/{name}")
        out, err = self.run_command("submit", "--start", "--stop", "--min-workers", "0", "sub/c.yaml", "sweep.yaml", "--sync",
                                    "train.sh", "-o", "out", timeout=200)
        trials = json.loads(self.run_command("results", "out/runs/s", "--format", "json")[0])
        self.assertEqual([trial["state"] for trial in trials], ["completed"] * 16, out + err)
        said = "".join(f.read_text(errors="replace") for f in (self.folder / "out/runs/s/trials").rglob("*") if f.is_file())
        self.assertIn("host2\n", said, out)
        self.assertIn("cost: ", out)
        self.assertEqual(self.status("sub/c.yaml")["machines"], [])
        for host in ("host1", "host2", "host3"):
            self.assertEqual(self.ssh(host, "ls -A .hypertune/clusters 2>/dev/null"), "")


if __name__ == "__main__":
    unittest.main()
