"""What the tests of the command share: a folder, a trainer, and runs of `hypertune` in it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HYPERTUNE = os.environ.get("HYPERTUNE", "hypertune")

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

# For the end of a sweep: its commands are started by threads of the driver.
THREADS = "executor: {type: local, workers: threads}\n"


def wait_until(condition, what, seconds=30):
    """Polls a condition of another process; a bound, not a delay."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "train.py").write_text(TRAINER)
        self.environment = dict(os.environ)

    def write(self, text, name="sweep.yaml"):
        (self.folder / name).write_text(text)
        return name

    def start(self, *arguments, **options):
        return subprocess.Popen([HYPERTUNE, *arguments], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def run_command(self, *arguments, code=0, timeout=120):
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"{arguments} hangs\n{out}\n{err}")
        self.assertEqual(process.returncode, code, f"{arguments}\n{out}\n{err}")
        return out, err

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


__all__ = ["Case", "HYPERTUNE", "SWEEP", "THREADS", "TRAINER", "json", "os", "pathlib", "shutil", "signal", "subprocess", "time", "unittest", "wait_until"]
