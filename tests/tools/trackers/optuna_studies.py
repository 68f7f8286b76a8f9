"""Studies of the real Optuna with everything that an import has to read rightly, in an SQLite storage (s.db) and in a file
of its JournalStorage (s.log), and what Optuna itself says about them.
Usage: optuna_studies.py FOLDER [log]       With `log` only the file, and Optuna's own answers as FOLDER/expected.json"""
import json
import math
import sys
import warnings

import optuna
from optuna.distributions import FloatDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")
names_constraints = int(optuna.__version__.split(".")[0]) >= 5


def stores(folder, kinds=("db", "log")):
    make = {"db": lambda: RDBStorage(f"sqlite:///{folder}/s.db"),
            "log": lambda: JournalStorage(JournalFileBackend(f"{folder}/s.log"))}
    return {kind: make[kind]() for kind in kinds}


def refused(operation):
    try:
        operation()
    except Exception:
        return
    raise AssertionError("Optuna has not refused it")


def several(store, again):
    """Three studies. Two are opened twice, which writes a second creation into a journal; one more was deleted."""
    for name, offset in (("a", 0), ("b", 10)):
        for _ in range(2):
            study = optuna.create_study(study_name=name, storage=store, load_if_exists=True)
            study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + offset, n_trials=2)
        refused(lambda: optuna.create_study(study_name=name, storage=again))
    gone = optuna.create_study(study_name="gone", storage=store)
    gone.optimize(lambda trial: 1.0, n_trials=2)
    optuna.delete_study(study_name="gone", storage=store)


def states(store):
    """Trials that complete, are pruned, fail, wait and run; and changes of finished ones, which are refused."""
    study = optuna.create_study(study_name="states", storage=store, direction="maximize")

    def objective(trial):
        x = trial.suggest_float("x", 0.001, 1, log=True)
        trial.suggest_categorical("kind", ["a", None, math.nan, 1.5, True, math.inf])
        trial.suggest_int("n", 1, 9, step=2)
        trial.set_user_attr("infinite", math.inf)
        for step in range(2):
            trial.report(x * step, step)
        if trial.number % 5 == 1:
            raise optuna.TrialPruned()
        if trial.number % 5 == 2:
            raise RuntimeError("no")
        return x

    study.optimize(objective, n_trials=6, catch=(RuntimeError,))
    first, same = study.trials[0]._trial_id, FloatDistribution(0.001, 1, log=True)
    refused(lambda: store.set_trial_user_attr(first, "late", 1))
    refused(lambda: store.set_trial_intermediate_value(first, 9, 99.0))
    refused(lambda: store.set_trial_state_values(first, TrialState.COMPLETE, [1e9]))
    refused(lambda: store.set_trial_param(first, "x", 0.5, same))
    refused(lambda: store.set_trial_system_attr(first, "constraints", [5.0]))
    trial = study.ask()
    refused(lambda: store.set_trial_param(trial._trial_id, "x", 0.5, FloatDistribution(0.001, 1)))
    trial.suggest_float("x", 0.001, 1, log=True)
    study.tell(trial, 0.5)
    study.enqueue_trial({"x": 0.3})
    study.add_trial(create_trial(params={"x": 0.2}, distributions={"x": same}, value=0.9, user_attrs={"added": 1}))
    study.optimize(objective, n_trials=1, catch=(RuntimeError,))
    study.ask()
    # Two are equally good: the first is the best, though it ends last.
    equal = optuna.create_study(study_name="equal", storage=store)
    trials = [equal.ask(), equal.ask()]
    equal.tell(trials[1], 1.0)
    equal.tell(trials[0], 1.0)


def constrained(store, objectives):
    """Constraints as a list; a part of the trials with none; and by name, which only 5.0 knows."""
    directions = ["minimize"] * objectives
    values = lambda x: (x, (x - 0.5) ** 2)[:objectives]
    sampler = optuna.samplers.NSGAIISampler if objectives > 1 else optuna.samplers.TPESampler
    listed = optuna.create_study(study_name=f"listed{objectives}", storage=store, directions=directions,
                                 sampler=sampler(seed=1, constraints_func=lambda trial: trial.user_attrs["c"]))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("c", (0.3 - x, x - 0.8))
        return values(x)

    listed.optimize(objective, n_trials=6)
    part = optuna.create_study(study_name=f"part{objectives}", storage=store, directions=directions)
    # Whether the best or the front has trials without any is what the versions differ in. That of one objective is
    # undefined before 5.0, so it is not asked for here.
    for i, c in enumerate([[0.5], [-1.0], None, [0.0], [2.0]]):
        attributes = {} if c is None else {"constraints": c}
        value = [float(i if objectives > 1 else i + 10 * (c is None)), -float(i)][:objectives]
        part.add_trial(create_trial(values=value, params={}, distributions={}, system_attrs=attributes))
    if not names_constraints:
        return
    named = optuna.create_study(study_name=f"named{objectives}", storage=store, directions=directions,
                                sampler=optuna.samplers.RandomSampler(seed=1))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if trial.number != 2:
            trial.set_constraint("memory in GB", 0.3 - x)
        if trial.number % 2:
            trial.set_constraint("time", x - 0.8)
        if trial.number == 4:
            trial.set_constraint("infinite", -math.inf)
        return values(x)

    named.optimize(objective, n_trials=6)


def make(folder, kinds=("db", "log")):
    again = stores(folder, kinds)
    for kind, store in stores(folder, kinds).items():
        several(store, again[kind])
        states(store)
        for objectives in (1, 2):
            constrained(store, objectives)


def constraints_of(trial):
    if names_constraints:
        return trial.constraints
    return {str(i): value for i, value in enumerate(trial.system_attrs.get("constraints") or [])}


def answers(store):
    """What Optuna says about each study: its finished trials, and the numbers of the best one or of those on the front."""
    out = {}
    for summary in optuna.get_all_study_summaries(store):
        study = optuna.load_study(study_name=summary.study_name, storage=store)
        one = len(study.directions) == 1
        out[study.study_name] = {
            "best": [study.best_trial.number] if one else sorted(trial.number for trial in study.best_trials),
            "objectives": len(study.directions),
            "trials": [{"number": t.number, "state": t.state.name, "params": t.params, "attributes": t.user_attrs,
                        "values": t.values if t.state.name == "COMPLETE" else None,
                        "between": {str(step): v for step, v in t.intermediate_values.items()},
                        "constraints": constraints_of(t)}
                       for t in study.trials if t.state.is_finished()]}
    return out


if __name__ == "__main__":
    if sys.argv[2:] == ["log"]:
        make(sys.argv[1], ("log",))
        with open(f"{sys.argv[1]}/expected.json", "w") as out:
            json.dump(answers(stores(sys.argv[1], ("log",))["log"]), out, indent=0)
    else:
        make(sys.argv[1])
