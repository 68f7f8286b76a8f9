"""Runs one program once and sees what it took: its answer, its memory, what it left in a log of steps."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

MARK = "HYPERTUNE_BENCHMARK"


class Failed(Exception):
    """A program could not be run, or did not answer: its figure is missing, and the others go on."""


def marked(mark):
    """The processes of a run, also those that left its tree (Ray's daemons): they carry the mark in their environment."""
    needle = f"{MARK}={mark}".encode() + b"\0"
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as f:
                    if needle in f.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


def pss_mib(mark):
    """PSS shares out pages that several processes map, and is the fair sum."""
    total = 0
    for pid in marked(mark):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                total += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except (OSError, StopIteration):
            pass
    return total / 1024


def spread(values):
    values = sorted(values)
    return {"n": len(values), "min": values[0], "median": statistics.median(values), "max": values[-1]}


class Run:
    """A program under way in a folder of its own. Ends, with all that it started, when the `with` does."""

    def __init__(self, command, directory=None):
        self.own = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="hypertune-benchmark-")
        self.mark = f"{os.getpid()}-{time.time_ns()}"
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        command = [part.replace("{dir}", self.directory) for part in command]
        self.began = time.time()
        try:
            self.process = subprocess.Popen(command, stdout=self.out, stderr=self.err, cwd=self.directory,
                                            stdin=subprocess.DEVNULL, env={**os.environ, MARK: self.mark})
        except OSError as e:
            raise Failed(str(e)) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill() if self.process.poll() is None else None
        self.process.wait()
        for pid in marked(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if self.own:
            shutil.rmtree(self.directory, ignore_errors=True)

    def said(self, file):
        file.seek(0)
        return file.read()

    def answer(self, limit):
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"not finished in {limit:.0f} s") from None
        lines = [line for line in self.said(self.out).splitlines() if line.startswith("{")]
        if status != 0 or not lines:
            last = (self.said(self.err).strip().splitlines() or ["no message"])[-1]
            raise Failed(f"exit status {status}: {last[:200]}")
        return json.loads(lines[-1])


def ask(command, limit, sample_memory=0.0):
    """The program's answer; with `peak_pss_mib` where its memory is looked at every `sample_memory` seconds."""
    with Run(command) as run:
        done, peak = threading.Event(), [0.0]

        def watch():
            while not done.wait(sample_memory):
                peak[0] = max(peak[0], pss_mib(run.mark))
        watcher = threading.Thread(target=watch, daemon=True)
        if sample_memory:
            watcher.start()
        try:
            answer = run.answer(limit)
        finally:
            done.set()
            if sample_memory:
                watcher.join()
        return {**answer, "began": run.began, "peak_pss_mib": peak[0]}


def steps(log):
    """The lines [time, trial, step, pid, first step of the attempt] that are whole."""
    try:
        with open(log) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]
    except OSError:
        return []


def wait_for(run, log, condition, limit):
    """The first non-empty condition(steps)."""
    end = time.time() + limit
    while time.time() < end:
        ended = run.process.poll() is not None
        found = condition(steps(log))
        if found:
            return found
        if ended:
            run.answer(1)
            raise Failed("the program ended before there was anything to kill or to see")
        time.sleep(0.005)
    raise Failed(f"nothing seen in {limit:.0f} s")


def redone(log):
    seen = [(trial, step) for _, trial, step, *_ in steps(log)]
    return len(seen) - len(set(seen))


def kill_worker(command, limit):
    """SIGKILL of the process of a trial in its tenth step: seconds until the trial's next step, steps run again."""
    with Run(command) as run:
        log = os.path.join(run.directory, "steps")
        _, trial, _, pid, _ = wait_for(run, log, lambda all: [s for s in all if s[2] >= 9], limit)[0]
        if pid == run.process.pid:
            raise Failed("the trial runs in its driver's process")
        killed = time.time()
        os.kill(pid, signal.SIGKILL)
        again = wait_for(run, log, lambda all: [s for s in all if s[1] == trial and s[3] != pid], limit)[0]
        run.answer(limit)
        return {"again_s": again[0] - killed, "redone": redone(log)}


def kill_driver(command, restart, seconds, expected, limit):
    """SIGKILL of the driver `seconds` after its first step, then `restart` on the same folder."""
    directory = tempfile.mkdtemp(prefix="hypertune-benchmark-")
    log = os.path.join(directory, "steps")
    try:
        with Run(command, directory) as run:
            wait_for(run, log, lambda all: all, limit)
            try:
                run.process.wait(seconds)
                raise Failed("it had ended before the kill")
            except subprocess.TimeoutExpired:
                pass
            run.process.kill()
            run.process.wait()
        before = steps(log)
        with Run(restart, directory) as run:
            fresh = wait_for(run, log, lambda all: all[len(before):], limit)[0]
            run.answer(limit)
            result = {"again_s": fresh[0] - run.began, "redone": redone(log), "before": len(before)}
        missing = expected - len({(s[1], s[2]) for s in steps(log)})
        if missing:
            raise Failed(f"{missing} steps were never run")
        return result
    finally:
        shutil.rmtree(directory, ignore_errors=True)
