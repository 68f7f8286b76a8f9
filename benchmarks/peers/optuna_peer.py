"""Optuna's side of scripts/benchmark; each prints one line of JSON.
optuna_peer.py noop memory|sqlite|journal TRIALS JOBS SAMPLER DIR
optuna_peer.py asha memory|sqlite|journal TRIALS STEPS SAMPLER DIR
optuna_peer.py start memory|sqlite DIR
SAMPLER: random, or default for what a study has that names none (TPE).
"""
import json
import os
import sys
import time
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def study(kind, directory, sampler="random", pruner=None):
    storage = None
    if kind == "sqlite":
        storage = "sqlite:///" + os.path.join(directory, "study.db")
    elif kind == "journal":
        from optuna.storages.journal import JournalFileBackend
        storage = optuna.storages.JournalStorage(JournalFileBackend(os.path.join(directory, "journal.log")))
    return optuna.create_study(storage=storage, pruner=pruner, direction="maximize",
                               sampler=optuna.samplers.RandomSampler(seed=1) if sampler == "random" else None)


def noop(kind, trials, jobs, sampler, directory):
    s = study(kind, directory, sampler)
    t = time.perf_counter()
    s.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=int(trials), n_jobs=int(jobs))
    seconds = time.perf_counter() - t
    return {"trials": int(trials), "seconds": seconds, "per_s": int(trials) / seconds}


def asha(kind, trials, steps, sampler, directory):
    s = study(kind, directory, sampler, optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3))
    reports = 0

    def objective(trial):
        nonlocal reports
        a = trial.suggest_float("a", 0, 1)
        for i in range(int(steps)):
            trial.report(a * (i + 1), i)
            reports += 1
            if trial.should_prune():
                raise optuna.TrialPruned()
        return a
    t = time.perf_counter()
    s.optimize(objective, n_trials=int(trials))
    seconds = time.perf_counter() - t
    return {"trials": int(trials), "reports": reports, "seconds": seconds, "per_s": reports / seconds}


def start(kind, directory):
    first = 0.0

    def objective(trial):
        nonlocal first
        a = trial.suggest_float("a", 0, 1)
        trial.report(a, 0)
        first = time.time()
        return a
    study(kind, directory).optimize(objective, n_trials=1)
    return {"first_report": first}


if __name__ == "__main__":
    print(json.dumps({"noop": noop, "asha": asha, "start": start}[sys.argv[1]](*sys.argv[2:])))
