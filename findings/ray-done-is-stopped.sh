#!/usr/bin/env bash
# Ray Tune 2.60.0: "done": true in result.json means that a trial was cut off, and error.txt that it failed at some time.
#
# A trial's folder has result.json, a line for each report with a member "done", and error.txt after an error. One would
# guess that the last line of a trial that ran to its end says done, and that a folder with error.txt is one of a failed
# trial. A function that returned leaves "done": false in its last line, because the end is not a report; only a trial that
# a stop condition or a scheduler ended has true. error.txt stays after a retry that succeeded. Whoever reads folders by
# these two takes finished trials for interrupted ones, stopped for finished, and retried for failed. The state stands in
# experiment_state-*.json alone, as JSON within JSON.
#
# Seen on 2026-11-27: as in the expectations below.
source "$(dirname "$0")/common.sh"
python venv "ray[tune]==2.60.0"

cat >"$tmp/trials.py" <<'P'
import glob, json, os, sys
os.environ.update(RAY_AIR_NEW_OUTPUT="0", RAY_USAGE_STATS_ENABLED="0")
import ray
from ray import tune
where = sys.argv[1]

def train(config):
    for step in range(3):
        tune.report({"loss": 1.0 / (step + 1)})
        if config["kind"] == "retried" and step == 1 and not os.path.exists(where + "/failed"):
            open(where + "/failed", "w").close()
            raise RuntimeError("once")

ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
for kind, stop in (("returned", None), ("stopped", {"training_iteration": 2}), ("retried", None)):
    tune.Tuner(train, param_space={"kind": kind},
               run_config=tune.RunConfig(name=kind, storage_path=where, verbose=0, stop=stop,
                                         failure_config=tune.FailureConfig(max_failures=1))).fit()
    folder = os.path.dirname(glob.glob(f"{where}/{kind}/*/result.json")[0])
    last = json.loads(open(folder + "/result.json").read().splitlines()[-1])
    state = json.load(open(sorted(glob.glob(f"{where}/{kind}/experiment_state-*.json"))[-1]))
    trial = json.loads(state["trial_data"][0][0])
    print(kind, f"done={last['done']}", f"error.txt={os.path.exists(folder + '/error.txt')}", trial["status"], sep=" ")
P
"$tmp/venv/bin/python" "$tmp/trials.py" "$tmp" 2>/dev/null | grep done= >"$tmp/seen"
expect "a function that returned" "returned done=False error.txt=False TERMINATED" "$(sed -n 1p "$tmp/seen")"
expect "a trial that a stop condition ended" "stopped done=True error.txt=False TERMINATED" "$(sed -n 2p "$tmp/seen")"
expect "a function that failed once and then returned" "retried done=False error.txt=True TERMINATED" "$(sed -n 3p "$tmp/seen")"
