"""Experiments of the page's tests: small, but really run by `hypertune run`."""
import contextlib
import json
import pathlib
import sqlite3

from support import run

# Its metrics are functions of its parameters and the step, so that a test knows them. ALLOWED names a file with a number of
# steps: no trial goes beyond it before the test says so.
TRAINER = r'''
import json, math, os, pathlib, sys, time
params = json.loads(os.environ["HYPERTUNE_PARAMS"])
trial, step = int(os.environ["HYPERTUNE_TRIAL"]), int(os.environ["HYPERTUNE_STEP"])
names = json.loads(os.environ.get("METRICS", '["accuracy", "loss"]'))
allowed = os.environ.get("ALLOWED")
if str(trial) in os.environ.get("FAIL", "").split():
    print("about to fail", flush=True)
    sys.exit("RuntimeError: no memory <b>left</b>")
for step in range(step, int(os.environ.get("STEPS", "9"))):
    end = time.monotonic() + 120
    while allowed and int(pathlib.Path(allowed).read_text() or 0) <= step:
        if time.monotonic() > end: sys.exit("nobody allowed this step")
        time.sleep(0.02)
    lr = next(value for value in params.values() if isinstance(value, float))
    accuracy = (1 - (math.log10(lr) + 2.5) ** 2 / 10) * (1 - 0.5 ** (step + 1))
    values = [accuracy, 2 * (1 - accuracy), 1 + abs(math.log10(lr))]
    if str(trial) in os.environ.get("NANS", "").split() and step >= 2: values[0] = math.nan
    print(f"epoch {step} of trial {trial}" + os.environ.get("SAYS", ""), flush=True)
    report = {"step": step, **dict(zip(names, values))}
    if os.environ.get("SAVE", "1") == "1":
        folder = pathlib.Path(os.environ["HYPERTUNE_CHECKPOINT"]) / f"step-{step}"
        folder.mkdir(parents=True)
        (folder / "state").write_text(str(step))
        report["checkpoint"] = f"step-{step}"
    print(json.dumps(report), flush=True)
'''

ASHA = {"type": "asha", "grace_period": 1, "max_steps": 9, "reduction_factor": 3}
SPACE = {"lr": {"log_uniform": [1.0e-4, 1.0e-1]}, "hidden": {"log_int": [16, 512]}, "optimizer": {"choice": ["sgd", "adam", "lion"]}}

HOSTILE = {
    "markup": "<img src=x onerror=window.pwned=1>",
    "script": "</script><script>window.pwned=1</script>",
    "long": "L" * 10000,
    "control": "bell\x07 escape\x1b[31m end",
    "right to left": "\u202etxt.exe \u05e9\u05dc\u05d5\u05dd",
    "emoji": "\U0001f984\U0001f525 \u6f22\u5b57",
    "template": "{{x}} {a|b} {b} %s ${x}",
    "quotes": "'\" onload=\"window.pwned=1",
}


def write(folder, name, **keys):
    """A sweep's file is JSON, which YAML reads, so that any name can be in it."""
    folder = pathlib.Path(folder)
    (folder / "train.py").write_text(TRAINER)
    sweep = {"name": name, "trial": {"command": ["python3", "train.py"]}, "space": SPACE, "metric": "accuracy", "mode": "max", "samples": 12, "seed": 1, "resources": {"cpus": 1},
             "concurrency": 2, "output": f"runs/{name}", **keys}
    sweep = {key: value for key, value in sweep.items() if value is not None}
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(sweep, ensure_ascii=False))
    return path


def make(folder, name, environment=None, **keys):
    """Runs it to its end; some of its trials may fail."""
    path = write(folder, name, **keys)
    done = run("run", path.name, cwd=folder, check=False, **(environment or {}))
    output = pathlib.Path(folder) / keys.get("output", f"runs/{name}")
    if not (output / "experiment.db").is_file():
        raise AssertionError(f"the experiment {name} was not run:\n{done.stdout}")
    return output


def asha(folder, name="digits", samples=18, **keys):
    """Ordered, so that each step of a program is judged, also where it has ended by then."""
    return make(folder, name, {"FAIL": "4"}, samples=samples, schedule=ASHA, ordered=True, **keys)


def population(folder):
    return make(folder, "population", samples=6, concurrency=6, schedule={"type": "pbt", "perturbation_interval": 2, "max_steps": 8, "quantile_fraction": 0.5}, environment={"STEPS": "8"})


def objectives(folder):
    return make(folder, "objectives", {"STEPS": "3", "METRICS": '["accuracy", "loss", "latency"]'}, metric=None, mode=None, objectives={"accuracy": "max", "latency": "min"}, samples=14)


def no_numbers(folder):
    return make(folder, "nan", {"NANS": "0 1 2 3", "STEPS": "5"}, samples=5)


def one(folder):
    return make(folder, "one", samples=1)


def damaged(folder):
    output = one(folder).rename(pathlib.Path(folder) / "runs" / "damaged")
    (output / "experiment.db").write_bytes(b"nonsense" * 1000)
    return output


def empty(folder):
    """Its driver died before it began a trial."""
    output = make(folder, "empty", samples=3)
    with contextlib.closing(sqlite3.connect(output / "experiment.db")) as db, db:
        db.execute("DELETE FROM records WHERE sequence > 1")
    return output


def failed(folder):
    return make(folder, "failed", {"FAIL": "0 1 2"}, samples=3)


def hostile(folder):
    # A key of YAML has 1024 characters at most; metrics and values can have more.
    names = [HOSTILE["script"], HOSTILE["template"], HOSTILE["long"]]
    space = {HOSTILE["markup"]: {"log_uniform": [1.0e-4, 1.0e-1]}, HOSTILE["long"][:1000]: {"int": [1, 9]}, HOSTILE["right to left"]: {"choice": list(HOSTILE.values())},
             HOSTILE["emoji"]: {"uniform": [0, 1]}, HOSTILE["quotes"]: {"choice": [True, False]}}
    return make(folder, "hostile", {"METRICS": json.dumps(names), "FAIL": "3", "STEPS": "9", "SAYS": " <b>bold</b> </pre><script>window.pwned=1</script> \x1b[31mred \x07"},
                space=space, metric=names[0], samples=8, schedule=ASHA)
