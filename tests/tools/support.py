"""What the tests of the command share: a folder, a trainer, and runs of `hypertune` in it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from command_case import *  # noqa: E402

# A trainer with checkpoints: its accuracy rises with the steps towards a value that depends on its parameters. Each step
# is appended to steps.log, so that a test can count how often it ran.
TRAINER = r'''
import json, math, os, pathlib, sys, time
params = json.loads(os.environ["HYPERTUNE_PARAMS"])
trial, step = int(os.environ["HYPERTUNE_TRIAL"]), int(os.environ["HYPERTUNE_STEP"])
restore = os.environ.get("HYPERTUNE_RESTORE")
total = 0.0
if restore:
    state = json.loads((pathlib.Path(restore) / "state.json").read_text())
    total = state["total"]
    assert state["step"] == step, (state, step)
steps, pause = int(os.environ.get("STEPS", "9")), float(os.environ.get("PAUSE", "0"))
every = int(os.environ.get("EVERY", "1"))
for step in range(step, steps):
    time.sleep(pause)
    total += 1
    with open(os.environ.get("STEPS_LOG", "steps.log"), "a") as log:
        log.write(f"{trial} {step}\n")
    quality = 1 - (math.log10(params["lr"]) + 2.5) ** 2 / 10
    report = {"step": step, "accuracy": quality * (1 - 0.5 ** total)}
    if every and (step + 1) % every == 0:
        folder = pathlib.Path(os.environ["HYPERTUNE_CHECKPOINT"]) / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(json.dumps({"step": step + 1, "total": total}))
        report["checkpoint"] = f"step-{step}"
    print(json.dumps(report), flush=True)
'''

SWEEP = """\
name: digits
trial:
  command: [python3, train.py]
space:
  lr: {log_uniform: [1.0e-4, 1.0e-1]}
  hidden: {log_int: [16, 512]}
metric: accuracy
mode: max
samples: 6
seed: 1
schedule: {type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}
resources: {cpus: 1}
concurrency: 2
output: runs/digits
"""

# A trainer and its sweep for workers elsewhere; the trainer says where it is.
AWAY_TRAINER = r'''
import json, os, sys, time
trial, rate = int(os.environ["HYPERTUNE_TRIAL"]), float(sys.argv[1])
print("on", os.uname().nodename, "in", os.getcwd(), flush=True)
print("threads", os.environ.get("OMP_NUM_THREADS"), "gpus", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
restore, done = os.environ.get("HYPERTUNE_RESTORE"), 0
if restore:
    done = int(open(os.path.join(restore, "done")).read())
for step in range(done, int(os.environ.get("STEPS", "4"))):
    time.sleep(float(os.environ.get("PAUSE", "0")))
    folder = os.path.join(os.environ["HYPERTUNE_CHECKPOINT"], f"step-{step}")
    os.makedirs(folder)
    open(os.path.join(folder, "done"), "w").write(str(step + 1))
    print(json.dumps({"step": step, "loss": (rate - 0.3) ** 2 + 1 / (step + 1), "checkpoint": f"step-{step}"}), flush=True)
'''
AWAY_SWEEP = """\
name: away
trial:
  command: [python3, train.py, "{{rate}}"]
  environment: {{STEPS: "{steps}", PAUSE: "{pause}"}}
space: {{rate: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: {samples}
seed: 1
failures: {{max_retries: {failures}}}
executor: {executor}
output: runs/away
"""

# For the end of a sweep: its commands are started by threads of the driver.
THREADS = "executor: {type: local, isolation: thread}\n"


class Case(CommandCase):
    def setUp(self):
        super().setUp()
        (self.folder / "train.py").write_text(TRAINER)

    def write(self, text, name="sweep.yaml"):
        (self.folder / name).write_text(text)
        return name

    def results(self, directory="runs/digits", history=False):
        out, _ = self.run_command("results", directory, "--format", "json", *(["--history"] if history else []))
        return json.loads(out)

    def steps_run(self):
        log = self.folder / "steps.log"
        return [tuple(map(int, line.split())) for line in log.read_text().splitlines()] if log.exists() else []

    def processes_in_folder(self):
        """Processes whose working directory is the test's folder: none may be left behind."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if pathlib.Path(os.readlink(entry / "cwd")) == self.folder:
                        found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
                except OSError:
                    pass
        return found

    def assert_nothing_left(self):
        wait_until(lambda: not self.processes_in_folder(), f"the end of {self.processes_in_folder()}", 15)

    def assert_each_report_once(self, directory="runs/digits"):
        for trial in self.results(directory, history=True):
            steps = [report["step"] for report in trial["history"]]
            self.assertEqual(steps, sorted(set(steps)), f"trial {trial['trial']}")


__all__ = ["AWAY_SWEEP", "AWAY_TRAINER", "Case", "HYPERTUNE", "ROOT", "SWEEP", "THREADS", "TRAINER", "fetched", "free_port", "json", "os",
           "pathlib", "shutil", "signal", "subprocess", "time", "unittest", "wait_until"]
