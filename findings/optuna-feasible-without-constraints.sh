#!/usr/bin/env bash
# Optuna 4.9.0 and 5.0.0: is a trial without recorded constraints feasible? best_trial and best_trials disagree.
#
# In a study with constraints a trial may lack them: it was added by add_trial(), or ran before the constraints were thought
# of. One would guess that study.best_trial and study.best_trials treat it alike. In 4.9.0 best_trial counts it as feasible
# and best_trials, of the same study with one objective, does not; 5.0.0 counts it as feasible in both. So an unchanged
# journal file has another Pareto front after an upgrade, and before it best_trial is not one of best_trials.
#
# Seen on 2026-11-27: 4.9.0 says trial 0 and trials [1], 5.0.0 says trial 0 and trials [0].
source "$(dirname "$0")/common.sh"
for version in 4.9.0 5.0.0; do python "$version" "optuna==$version"; done

cat >"$tmp/make.py" <<'P'
import sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
storage = JournalStorage(JournalFileBackend(sys.argv[1]))
domain = {"x": optuna.distributions.FloatDistribution(0, 1)}
study = optuna.create_study(storage=storage, study_name="s")
study.add_trial(optuna.create_trial(params={"x": 0.1}, distributions=domain, value=0.1))   # without constraints
study.add_trial(optuna.create_trial(params={"x": 0.5}, distributions=domain, value=0.5, system_attrs={"constraints": [-1.0]}))
study.add_trial(optuna.create_trial(params={"x": 0.2}, distributions=domain, value=0.2, system_attrs={"constraints": [1.0]}))
P
cat >"$tmp/best.py" <<'P'
import sys
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
study = optuna.load_study(storage=JournalStorage(JournalFileBackend(sys.argv[1])), study_name="s")
print(study.best_trial.number, [trial.number for trial in study.best_trials])
P
"$tmp/4.9.0/bin/python" "$tmp/make.py" "$tmp/s.log" 2>/dev/null
for version in 4.9.0 5.0.0; do
  echo "$version: $("$tmp/$version/bin/python" "$tmp/best.py" "$tmp/s.log" 2>/dev/null)"
done >"$tmp/seen"
expect "best trial and best trials" "4.9.0: 0 [1]" "$(head -n 1 "$tmp/seen")"
expect "best trial and best trials" "5.0.0: 0 [0]" "$(tail -n 1 "$tmp/seen")"
