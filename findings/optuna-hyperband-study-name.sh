#!/usr/bin/env bash
# Optuna 5.0.0: under HyperbandPruner the name of the study decides which trials are pruned, so that a seed repeats nothing.
#
# One would guess that a sampler with a seed, a pruner without random numbers and an objective without noise give the same
# study each time. HyperbandPruner puts each trial into a bracket by a checksum of the study's name and the trial's
# number. A study without a name in memory gets a random one, so that two runs of an unchanged script prune other trials,
# and samplers that learn from them go on otherwise. Two people who compare runs of one script under two names compare two
# pruners. To repeat a run, name the study; SuccessiveHalvingPruner alone does not depend on the name.
#
# Seen on 2026-11-27: the same last steps for one name twice, other ones for another name and between two runs without one.
source "$(dirname "$0")/common.sh"
python venv optuna==5.0.0

cat >"$tmp/study.py" <<'P'
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)

def objective(trial):
    x = trial.suggest_float("x", 0, 1)
    for step in range(27):
        trial.report(x + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return x

def last_steps(name, pruner):
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=1), pruner=pruner)
    study.optimize(objective, n_trials=40)
    return [trial.last_step for trial in study.trials]

same = lambda a, b: "same" if a == b else "different"
for name, make in ("hyperband", lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=27)), \
                  ("halving", lambda: optuna.pruners.SuccessiveHalvingPruner(min_resource=1)):
    first = last_steps("a", make())
    print(name, same(first, last_steps("a", make())), same(first, last_steps("b", make())),
          same(last_steps(None, make()), last_steps(None, make())))
P
run() { "$tmp/venv/bin/python" "$tmp/study.py" 2>/dev/null; }
expect version 5.0.0 "$("$tmp/venv/bin/python" -c 'import optuna; print(optuna.__version__)')"
seen=$(run)
expect "one name twice, two names, two runs without a name" "hyperband same different different" "$(head -n 1 <<<"$seen")"
expect "one name twice, two names, two runs without a name" "halving same same same" "$(tail -n 1 <<<"$seen")"
