"""Imports what the real Optuna and the real Ray Tune write, and compares with what they say about it.
Usage: import_back.py optuna|optuna-old|ray HYPERTUNE"""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools" / "trackers"))
from imported import compare_optuna, compare_ray  # noqa: E402


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
executor: {type: local, isolation: thread}
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


def optuna_old(folder):
    """Also for versions before 5.0, which know other constraints and write other times."""
    from optuna_studies import answers, make, stores

    made = pathlib.Path(folder, "studies")
    made.mkdir()
    make(made)
    import optuna as package
    for kind, store in stores(made).items():
        found = answers(store)
        assert len(found) >= 8, list(found)
        for name, theirs in found.items():
            imported = f"{kind}-{name}"
            wrong = compare_optuna(lambda *arguments: run(*arguments)[0], str(made / f"s.{kind}"), name, theirs, imported)
            assert not wrong, wrong
            # Back to Optuna: the best trial or the front, states, values and times are those that it had.
            run("export", imported, "--format", "optuna", "-o", f"{imported}.db")
            study = package.load_study(study_name=name, storage=store)
            back = package.load_study(study_name=name, storage=f"sqlite:///{imported}.db")
            one = len(back.directions) == 1
            best = [back.best_trial] if one else back.best_trials
            assert sorted(int(t.user_attrs["optuna_number"]) for t in best) == theirs["best"], (name, theirs["best"], best)
            for trial in back.trials:
                before = study.trials[int(trial.user_attrs["optuna_number"])]
                assert (trial.state, trial.value if one else trial.values) == (before.state, before.value if one else before.values) \
                    or before.state.name != "COMPLETE", (trial, before)
                assert repr(trial.params) == repr({k: "None" if v is None else v for k, v in before.params.items()}), (trial, before)


def ray(folder):
    from ray_folders import answers, make

    made = os.path.join(folder, "ray")
    make(made)
    for name, theirs in answers(made).items():
        wrong = compare_ray(lambda *arguments: run(*arguments)[0], f"{made}/{name}", theirs, "from-" + name)
        assert not wrong, wrong


def main():
    what = {"optuna": lambda folder: (optuna(folder), optuna_old(folder)), "optuna-old": optuna_old, "ray": ray}[sys.argv[1]]
    sys.argv[2] = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="hypertune-") as folder:
        os.chdir(folder)
        try:
            what(folder)
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main()
