"""Imports what the real Optuna writes, and folders as Ray Tune documents them, and compares.
Usage: import_back.py optuna|ray HYPERTUNE"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*arguments, code=0):
    done = subprocess.run([sys.argv[2], *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (arguments, done)
    return done.stdout, done.stderr


def results(folder):
    return json.loads(run("results", folder, "--format", "json", "--history")[0])


SWEEP = """\
name: on
trial: {command: [python3, train.py, "{lr}"]}
space: {lr: {log_uniform: [1.0e-4, 0.1]}, layers: {int: [1, 4]}, width: {int: [16, 64], quantum: 16},
        drop: {uniform: [0, 0.5], quantum: 0.25}, kind: {choice: [a, b]}}
metric: loss
mode: min
samples: 2
executor: {type: local, workers: threads}
"""


def optuna(folder):
    import optuna as package
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import create_trial
    from optuna.distributions import FloatDistribution

    package.logging.set_verbosity(package.logging.ERROR)
    stores = {"a.db": RDBStorage(f"sqlite:///{folder}/a.db"),
              "a.log": JournalStorage(JournalFileBackend(f"{folder}/a.log"))}
    for file, store in stores.items():
        study = package.create_study(study_name="first", storage=store, direction="minimize")
        study.set_metric_names(["loss"])
        study.set_user_attr("dataset", "v3")

        def objective(trial):
            lr = trial.suggest_float("lr", 1e-4, 0.1, log=True)
            trial.suggest_int("layers", 1, 4)
            trial.suggest_int("width", 16, 64, step=16)
            trial.suggest_float("drop", 0, 0.5, step=0.25)
            trial.suggest_categorical("kind", ["a", "b"])
            trial.set_user_attr("note", 'it\'s "odd"')
            trial.set_user_attr("list", [1, {"a": None}])
            for step in range(3):
                trial.report(math.nan if trial.number == 4 and step == 1 else lr * (3 - step), step)
            if trial.number == 1:
                raise package.TrialPruned()
            if trial.number == 2:
                raise RuntimeError("boom")
            return math.inf if trial.number == 3 else lr

        study.optimize(objective, n_trials=12, catch=(RuntimeError,))
        study.ask()  # never told: left out
        study.add_trial(create_trial(params={"lr": 0.05}, distributions={"lr": FloatDistribution(1e-4, 0.1, log=True)},
                                     value=0.5, intermediate_values={7: math.nan}, user_attrs={"added": True}))
        package.create_study(study_name="second", storage=store, directions=["minimize", "maximize"])
        second = package.load_study(study_name="second", storage=store)
        second.optimize(lambda t: (t.suggest_float("x", 0, 1), 2), n_trials=3)
        check_optuna(file, package.load_study(study_name="first", storage=store), second)


def check_optuna(file, study, second):
    _, err = run("import", file, "-o", "none", code=2)
    assert "name one of its studies with --study: first, second" in err, err
    folder = "from-" + file
    out, _ = run("import", file, "-o", folder, "--study", "first")
    assert "13 trials of study 'first' of Optuna" in out and "1 that had not ended is left out" in out, out
    found = {t["attributes"]["optuna_number"]: t for t in results(folder)}
    theirs = {str(t.number): t for t in study.trials if t.state.is_finished()}
    assert set(found) == set(theirs)
    state = {"COMPLETE": "completed", "PRUNED": "stopped", "FAIL": "failed"}
    for number, mine in found.items():
        their = theirs[number]
        assert mine["state"] == state[their.state.name], (mine, their)
        assert mine["params"] == their.params, (mine["params"], their.params)
        as_number = lambda v: float(v) if isinstance(v, str) else v
        between = {r["step"]: repr(as_number(r["intermediate_value"])) for r in mine["history"]}
        assert between == {s: repr(v) for s, v in sorted(their.intermediate_values.items())}, (mine, their)
        # What it ended with is the objective, once, in the last report; a pruned trial has none.
        values = [(r["step"], as_number(r["loss"])) for r in mine["history"] if "loss" in r]
        complete = their.state.name == "COMPLETE"
        assert values == ([(max(their.intermediate_values), their.value)] if complete else []), (mine, their)
        if number != "13":
            assert mine["attributes"]["note"] == 'it\'s "odd"'
            assert json.loads(mine["attributes"]["list"]) == [1, {"a": None}]
    best = json.loads(run("best", folder, "--format", "json")[0])
    status = json.loads(run("status", folder, "--format", "json")[0])
    assert status["attributes"]["dataset"] == "v3" and status["state"] == "ended"
    assert best["best"]["loss"] == study.best_value, best
    assert best["attributes"]["optuna_number"] == str(study.best_trial.number), best
    # Back to Optuna: the distributions are those that it had.
    import optuna as package
    run("export", folder, "--format", "optuna", "-o", f"back-{file}.db")
    back = package.load_study(study_name="first", storage=f"sqlite:///back-{file}.db")
    assert back.trials[0].distributions == study.trials[0].distributions, back.trials[0].distributions
    # A search goes on from them: the line says how many fit its space.
    pathlib.Path("sweep.yaml").write_text(SWEEP + f"search: {{type: random, warm_start: [{folder}]}}\noutput: on-{file}\n")
    pathlib.Path("train.py").write_text("import sys\nprint('{\"step\": 0, \"loss\": ' + sys.argv[1] + '}')\n")
    run("run", "sweep.yaml", "--quiet")
    search = json.loads(run("status", f"on-{file}", "--format", "json")[0])["search"]
    assert f"warm start with 12 trials of {folder} (1 does not fit this space" in search, search  # 13 has only `lr`
    run("import", file, "-o", "two-" + file, "--study", "second")
    two = results("two-" + file)
    assert [t["metrics"] for t in two] == [{"value_0": t.values[0], "value_1": 2} for t in second.trials], two
    _, err = run("import", file, "-o", folder, "--study", "first", code=2)
    assert "there is an experiment" in err
    # A log whose last line is being written is read up to there; one that is broken is refused with its line.
    if file.endswith(".log"):
        text = pathlib.Path(file).read_text()
        pathlib.Path("cut.log").write_text(text + '{"op_code": 4, "wor')
        run("import", "cut.log", "-o", "cut", "--study", "first")
        assert len(results("cut")) == 13
        pathlib.Path("broken.log").write_text(text + "nonsense}\n")
        _, err = run("import", "broken.log", "-o", "broken", "--study", "first", code=2)
        assert f"broken.log:{text.count(chr(10)) + 1}: this is no JSON" in err and not os.path.exists("broken"), err


def ray(folder):
    def trial(name, config, lines, error=None):
        place = pathlib.Path("ray_exp") / name
        place.mkdir(parents=True)
        (place / "params.json").write_text(json.dumps(config))
        base = {"trial_id": name, "date": "2024-05-01_12-00-00", "pid": 1, "hostname": "h", "node_ip": "127.0.0.1",
                "config": config, "time_since_restore": 1.0, "iterations_since_restore": 1, "experiment_tag": name}
        (place / "result.json").write_text("".join(json.dumps({**line, **base}) + "\n" for line in lines))
        if error:
            (place / "error.txt").write_text(error)

    def line(iteration, loss, at, done=False, **more):
        return {"loss": loss, "nested": {"acc": iteration / 10}, "timestamp": 1714564800 + at, "time_total_s": float(at),
                "time_this_iter_s": 1.0, "training_iteration": iteration, "done": done, **more}

    trial("f_2", {"lr": 0.2, "net": {"layers": 2, "act": "relu"}, "sizes": [1, 2], "none": None},
          [line(1, 0.9, 10), line(2, math.nan, 20), line(3, 0.5, 30, True)])
    trial("f_1", {"lr": 0.1, "net": {"layers": 1, "act": "tanh"}}, [line(1, 0.8, 5), line(2, 0.7, 6), line(2, 0.6, 7)])
    trial("f_3", {"lr": 0.3, "net": {"layers": 1, "act": "tanh"}}, [line(1, 1.5, 8)],
          "Traceback (most recent call last):\n  …\nRuntimeError: boom\n")
    trial("f_4", {"lr": 0.4}, [])
    (pathlib.Path("ray_exp") / "experiment_state-2024.json").write_text("{}")
    _, err = run("import", "ray_exp", "-o", "out", code=2)
    assert "--metric and --mode (reported were: loss, nested/acc" in err, err
    _, err = run("import", "ray_exp", "-o", "out", "--metric", "los", "--mode", "min", code=2)
    assert "no trial of 'ray_exp' reported 'los'" in err, err
    out, _ = run("import", "ray_exp", "-o", "out", "--metric", "loss", "--mode", "min")
    assert "3 trials of 'ray_exp' of Ray Tune" in out and "1 that had not ended" in out, out
    found = {t["attributes"]["ray_trial"]: t for t in results("out")}
    assert set(found) == {"f_1", "f_2", "f_3"}
    assert found["f_2"]["params"] == {"lr": 0.2, "net/layers": 2, "net/act": "relu", "sizes": "[1,2]", "none": "None"}
    assert found["f_2"]["state"] == "completed" and found["f_1"]["state"] == "stopped"
    assert found["f_3"]["state"] == "failed" and found["f_3"]["cause"] == "RuntimeError: boom", found["f_3"]
    reports = [(r.pop("step"), r) for r in found["f_2"]["history"]]
    assert reports == [(0, {"loss": 0.9, "nested/acc": 0.1}), (1, {"loss": "NaN", "nested/acc": 0.2}),
                       (2, {"loss": 0.5, "nested/acc": 0.3})], reports
    assert [(r["step"], r["loss"]) for r in found["f_1"]["history"]] == [(0, 0.8), (1, 0.6)]
    db = subprocess.run(["sqlite3", "out/experiment.db", "SELECT time FROM reports WHERE metric = 'loss' AND value = 0.9"],
                        capture_output=True, text=True)
    if db.returncode == 0:
        assert float(db.stdout) == 1714564810, db
    pathlib.Path("text").write_text("hello\n")
    for source, words in [("text", "is neither a storage of Optuna"), ("nothing", "there is no file or folder"),
                          ("out", "no folder in it has a params.json"), ("out/experiment.db", "is no Optuna storage")]:
        _, err = run("import", source, "-o", "bad", code=2)
        assert words in err and not os.path.exists("bad"), err


def main():
    what = {"optuna": optuna, "ray": ray}[sys.argv[1]]
    sys.argv[2] = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="hypertune-") as folder:
        os.chdir(folder)
        try:
            what(folder)
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main()
