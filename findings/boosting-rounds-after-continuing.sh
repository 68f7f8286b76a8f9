#!/usr/bin/env bash
# A booster that is trained further, from a model with some rounds.
#
# One would guess: the rounds that are printed go on from those of the model, or at least mean the same as what the library
# calls its best round.
# What happens: three libraries do it in three ways. LightGBM prints and counts on. CatBoost prints and counts from 0 again, so
# that its best round is one of the new ones, although the model has all. XGBoost prints from 0 again, but its best_iteration
# counts on: the round that it names is not the one that it printed.
# Seen 2026-11-27: XGBoost 3.2.0, LightGBM 4.7.0, CatBoost 1.2.10. For a tuner that takes a trial's step from the line, a trial
# that goes on from its checkpoint reports small steps once more.
source "$(dirname "$0")/common.sh"
python boost xgboost-cpu==3.2.0 lightgbm==4.7.0 catboost==1.2.10 numpy==2.3.5 scikit-learn==1.7.2
cat >"$tmp/boost.py" <<'EOF'
import re
import sys

import catboost
import lightgbm
import numpy
import xgboost

random = numpy.random.default_rng(1)
inputs = random.normal(size=(500, 5))
target = (inputs[:, 0] + random.normal(size=500) > 0).astype(int)
seen, held = (inputs[:400], target[:400]), (inputs[400:], target[400:])


def with_xgboost():
    options = {"objective": "binary:logistic", "nthread": 1}
    train, test = xgboost.DMatrix(*seen), xgboost.DMatrix(*held)
    first = xgboost.train(options, train, 3, evals=[(test, "test")])
    both = xgboost.train(options, train, 3, evals=[(test, "test")], xgb_model=first, early_stopping_rounds=50)
    return both.best_iteration, both.num_boosted_rounds()


def with_lightgbm():
    options = {"objective": "binary", "verbose": -1, "num_threads": 1}
    def train(model, callbacks):
        return lightgbm.train(options, lightgbm.Dataset(*seen), 3, valid_sets=[lightgbm.Dataset(*held)], init_model=model,
                              callbacks=[lightgbm.log_evaluation(1), *callbacks])
    both = train(train(None, []), [lightgbm.early_stopping(50, verbose=False)])
    return both.best_iteration, both.num_trees()


def with_catboost():
    def train(model):
        new = catboost.CatBoostClassifier(iterations=3, learning_rate=0.1, thread_count=1, allow_writing_files=False)
        new.fit(*seen, eval_set=held, init_model=model, use_best_model=False)
        return new
    both = train(train(None))
    return both.get_best_iteration(), both.tree_count_


print("best", *{"xgboost": with_xgboost, "lightgbm": with_lightgbm, "catboost": with_catboost}[sys.argv[1]]())
EOF
# rounds LIBRARY: the rounds that it prints in both trainings, and what it calls the best one of how many.
rounds() {
  "$tmp/boost/bin/python" "$tmp/boost.py" "$1" 2>/dev/null >"$tmp/out"
  printf '%s, best: %s of %s' "$(sed -nE 's/^\[?([0-9]+)[]:].*/\1/p' "$tmp/out" | paste -sd' ')" \
    $(sed -n 's/^best //p' "$tmp/out")
}
expect "rounds of LightGBM 4.7.0, three and three more" "1 2 3 4 5 6, best: 6 of 6" "$(rounds lightgbm)"
expect "rounds of XGBoost 3.2.0" "0 1 2 0 1 2, best: 4 of 6" "$(rounds xgboost)"
expect "rounds of CatBoost 1.2.10" "0 1 2 0 1 2, best: 2 of 6" "$(rounds catboost)"
