"""Runs sweeps with trackers, and asks the trackers what they have heard: Prometheus' own parsers, a real MLflow server.
Usage: trackers.py prometheus|mlflow HYPERTUNE [SERVER_PYTHON]"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from command_case import free_port, wait_until  # noqa: E402

TRAINER = r'''
import json, os, pathlib, time
params = json.loads(os.environ["HYPERTUNE_PARAMS"])
for step in range(int(os.environ["HYPERTUNE_STEP"]), 5):
    while os.environ.get("GATE") and step == 2 and not pathlib.Path(os.environ["GATE"]).exists(): time.sleep(0.02)
    loss = float("nan") if step == 1 else params["lr"] / (step + 1)
    print(json.dumps({"step": step, "loss": loss, "odd, \"name\"": step * 2}), flush=True)
if params["lr"] > 0.9: raise SystemExit("too \"high\"\nfor this")
'''

SWEEP = """\
name: 'ring "1" \\ x'
trial: {command: [python3, train.py]}
space: {lr: {grid: [0.25, 0.5, 0.95]}, kind: {choice: [a]}}
search: grid
metric: loss
mode: min
concurrency: 2
attributes: {dataset: v3}
executor: {type: local, isolation: thread}
output: run
"""


def run(*arguments, code=0):
    done = subprocess.run([sys.argv[2], *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (arguments, done)
    return done.stdout, done.stderr


def prometheus(folder):
    from prometheus_client.parser import text_string_to_metric_families

    pathlib.Path("sweep.yaml").write_text(SWEEP + "loggers: [{type: prometheus, file: out.prom}]\n")
    run("run", "sweep.yaml", "--quiet")
    text = pathlib.Path("out.prom").read_text()
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter"), family
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("experiment") == 'ring "1" \\ x', sample
            key = (sample.name, *sorted(labels.items()))
            assert key not in samples, key
            samples[key] = sample.value
    assert samples["hypertune_trials", ("state", "completed")] == 2, samples
    assert samples["hypertune_trials", ("state", "failed")] == 1
    assert samples["hypertune_reports_total",] == 15
    assert samples["hypertune_trial_failures_total", ("source", "user")] == 1
    assert samples["hypertune_best_value", ("metric", "loss"), ("mode", "min")] == 0.05
    assert samples["hypertune_experiment_ended",] == 1 and samples["hypertune_driver_starts_total",] == 1
    assert abs(samples["hypertune_experiment_last_record_time_seconds",] - time.time()) < 600
    (host,) = [dict(key[1:])["host"] for key in samples if key[0] == "hypertune_host_attempts_total"]
    assert samples["hypertune_host_attempts_total", ("host", host)] == 3
    assert samples["hypertune_host_busy_seconds_total", ("host", host)] > 0
    # The table of the documents names these, and no other.
    page = (pathlib.Path(__file__).parents[2] / "docs/experiment-folder.md").read_text()
    table = page.split("<!-- prometheus: metrics -->")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == {key[0] for key in samples}
    if promtool := shutil.which("promtool"):
        subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=True)
    # A second start counts; what cannot be written does not touch the experiment.
    run("run", "sweep.yaml", "--quiet", "--resume", "--retry-failed")
    assert 'hypertune_driver_starts_total{experiment="ring \\"1\\" \\\\ x"} 2' in pathlib.Path("out.prom").read_text()
    pathlib.Path("away.yaml").write_text(SWEEP + "loggers: [{type: prometheus, file: none/out.prom}]\n")
    _, err = run("run", "away.yaml", "--quiet", "--output", "other")
    assert "there is no folder 'none'" in err, err


class Server:
    """A real `mlflow server` on a port of its own."""

    def __init__(self, folder):
        self.port = free_port()
        self.folder, self.process = pathlib.Path(folder), None
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self):
        log = open(self.folder / "server.log", "ab")
        self.process = subprocess.Popen(
            [sys.argv[3], "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1",
             "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", "--artifacts-destination",
             str(self.folder / "artifacts")], stdout=log, stderr=log, start_new_session=True)
        wait_until(self.answers, "the MLflow server", 180)

    def answers(self):
        assert self.process.poll() is None, (self.folder / "server.log").read_text()
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
                line.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                return b" 200 " in line.recv(200)
        except OSError:
            return False

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def runs_of(server, experiment):
    """What MLflow's own client finds: (parent, children by trial)."""
    script = r'''
import json, sys
from mlflow.tracking import MlflowClient
client = MlflowClient(sys.argv[1])
experiment = client.get_experiment_by_name(sys.argv[2])
out = []
for run in client.search_runs([experiment.experiment_id], max_results=1000) if experiment else []:
    history = {key: [(m.step, repr(m.value), m.timestamp) for m in client.get_metric_history(run.info.run_id, key)]
               for key in run.data.metrics}
    out.append({"name": run.info.run_name, "status": run.info.status, "start": run.info.start_time,
                "end": run.info.end_time, "params": run.data.params, "tags": run.data.tags, "metrics": history,
                "id": run.info.run_id})
print(json.dumps(out))
'''
    done = subprocess.run([sys.argv[3], "-c", script, server.uri, experiment], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)
    parents = [r for r in runs if r["tags"]["hypertune.trial"] == "experiment"]
    children = [r for r in runs if r["tags"]["hypertune.trial"] != "experiment"]
    assert len(parents) == 1, [r["name"] for r in runs]
    by_trial = {int(r["tags"]["hypertune.trial"]): r for r in children}
    assert len(by_trial) == len(children), "a trial has two runs"
    assert all(r["tags"]["mlflow.parentRunId"] == parents[0]["id"] for r in children)
    return parents[0], by_trial


def check_runs(server, experiment, directory):
    """The server has what the record has, each report once."""
    parent, children = runs_of(server, experiment)
    trials = json.loads(run("results", directory, "--format", "json", "--history")[0])
    assert sorted(children) == [t["trial"] for t in trials]
    db = sqlite3.connect(f"{directory}/experiment.db")
    times = {(t, s): round(at * 1000) for t, s, at in db.execute("SELECT trial, step, time FROM reports")}
    db.close()
    for trial in trials:
        child = children[trial["trial"]]
        assert child["name"] == f"trial {trial['trial']}"
        assert child["params"] == {"lr": f"{trial['params']['lr']:g}", "kind": "a"}, child["params"]
        assert child["status"] == ("FAILED" if trial["state"] == "failed" else "FINISHED"), child
        assert child["tags"]["hypertune.state"] == trial["state"] and child["end"] >= child["start"]
        loss = sorted(child["metrics"]["loss"])
        assert [step for step, _, _ in loss] == [0, 1, 2, 3, 4], loss
        assert loss[1][1] == "nan" and float(loss[4][1]) == trial["params"]["lr"] / 5, loss
        assert [at for _, _, at in loss] == [times[trial["trial"], step] for step in range(5)]
        [key] = [key for key in child["metrics"] if re.fullmatch("odd_ _name_-[0-9a-f]{8}", key)]
        odd = sorted(child["metrics"][key])
        assert [float(value) for _, value, _ in odd] == [0, 2, 4, 6, 8], odd
    failed = [children[t["trial"]] for t in trials if t["state"] == "failed"]
    assert len(failed) == 1 and "high" in failed[0]["tags"]["hypertune.cause"], failed
    assert parent["status"] == "FINISHED" and parent["tags"]["dataset"] == "v3", parent
    assert parent["tags"]["hypertune.objectives"] == "min loss"
    return parent, children


def mlflow(folder):
    server = Server(folder)
    try:
        server.start()
        text = SWEEP + f"loggers: [{{type: mlflow, uri: '{server.uri}/', experiment: NAME, patience: 60s}}]\n"
        pathlib.Path("sweep.yaml").write_text(text.replace("NAME", "plain"))
        _, err = run("run", "sweep.yaml", "--quiet")
        assert "MLflow" not in err, err
        first = check_runs(server, "plain", "run")
        # A resumption adds nothing twice, and the notes that a person made since. Also where the position is lost.
        run("note", "run", "1", "good", "why=because")
        run("run", "sweep.yaml", "--quiet", "--resume")
        again = check_runs(server, "plain", "run")
        assert {t: r["id"] for t, r in again[1].items()} == {t: r["id"] for t, r in first[1].items()}
        assert again[1][1]["tags"]["good"] == "true" and again[1][1]["tags"]["why"] == "because"
        pathlib.Path("run/trials/.mlflow").unlink()
        run("run", "sweep.yaml", "--quiet", "--resume")
        check_runs(server, "plain", "run")

        # The server dies in the middle of a run, and returns while it goes on.
        gate = pathlib.Path("gate")
        os.environ["GATE"] = str(gate.absolute())
        pathlib.Path("dies.yaml").write_text(text.replace("NAME", "dies"))
        process = subprocess.Popen([sys.argv[2], "run", "dies.yaml", "--quiet", "--output", "dies"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: pathlib.Path("dies/trials/.mlflow").exists(), "the first records in MLflow")
        server.kill()
        gate.touch()
        wait_until(lambda: len(json.loads(run("results", "dies", "--format", "json")[0])) == 3 and
                   json.loads(run("status", "dies", "--format", "json")[0])["trials"]["completed"] == 2,
                   "the trials, which do not wait for MLflow")
        server.start()
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        check_runs(server, "dies", "dies")

        # It is away from the beginning to the end: that is said once, and a resumption sends all.
        server.kill()
        pathlib.Path("away.yaml").write_text(text.replace("NAME", "away").replace("60s", "0.5s"))
        begin = time.monotonic()
        _, err = run("run", "away.yaml", "--quiet", "--output", "away")
        assert err.count("cannot be reached") == 1 and "--resume sends what is missing" in err, err
        assert time.monotonic() - begin < 60
        server.start()
        run("run", "sweep.yaml", "--set", f"loggers=[{{type: mlflow, uri: '{server.uri}', experiment: away, patience: 60s}}]",
            "--quiet", "--resume", "--output", "away")
        check_runs(server, "away", "away")

        # What is no MLflow server is said, too.
        with subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, "PYTHONUNBUFFERED": "1"}) as other:
            try:
                port = re.search(r"port (\d+)", other.stdout.readline()).group(1)
                _, err = run("run", "sweep.yaml", "--quiet", "--output", "other", "--set",
                             f"loggers=[{{type: mlflow, uri: 'http://127.0.0.1:{port}'}}]")
                assert "nothing more is sent there" in err, err
            finally:
                other.kill()
    finally:
        server.kill()


def main():
    what = {"prometheus": prometheus, "mlflow": mlflow}[sys.argv[1]]
    sys.argv[2:] = [os.path.abspath(path) for path in sys.argv[2:]]
    with tempfile.TemporaryDirectory(prefix="hypertune-") as folder:
        os.chdir(folder)
        pathlib.Path("train.py").write_text(TRAINER)
        try:
            what(folder)
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main()
