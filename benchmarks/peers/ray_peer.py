"""Ray Tune's side of scripts/benchmark; each prints one line of JSON.
ray_peer.py noop TRIALS AT_ONCE REUSE DIR
ray_peer.py asha TRIALS STEPS AT_ONCE DIR
ray_peer.py start DIR
ray_peer.py save MIB SAVES PAUSE_MS DIR
ray_peer.py faults run|restore REUSE TRIALS AT_ONCE STEPS STEP_MS EVERY DIR LOG
"""
import json
import os
import sys
import tempfile
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler


def begin(at_once):
    ray.init(include_dashboard=False, num_cpus=at_once, logging_level="ERROR", log_to_driver=False)


def fit(function, space, directory, callbacks=(), run=None, **config):
    return tune.Tuner(
        function, param_space=space, tune_config=tune.TuneConfig(metric="x", mode="max", **config),
        run_config=tune.RunConfig(name="exp", storage_path=directory, callbacks=list(callbacks), verbose=0, **(run or {}))).fit()


class Count(tune.Callback):
    reports = 0

    def on_trial_result(self, *args, **kwargs):
        self.reports += 1


def noop(trials, at_once, reuse, directory):
    def train(config):
        tune.report({"x": config["a"]})
    begin(int(at_once))
    t = time.perf_counter()
    results = fit(train, {"a": tune.uniform(0, 1)}, directory, num_samples=int(trials),
                  max_concurrent_trials=int(at_once), reuse_actors=reuse == "1")
    seconds = time.perf_counter() - t
    return {"trials": len(results), "seconds": seconds, "per_s": len(results) / seconds, "errors": results.num_errors}


def asha(trials, steps, at_once, directory):
    def train(config):
        for i in range(config["steps"]):
            tune.report({"x": config["a"] * (i + 1)})
    begin(int(at_once))
    count = Count()
    t = time.perf_counter()
    results = fit(train, {"a": tune.uniform(0, 1), "steps": int(steps)}, directory, [count], num_samples=int(trials),
                  max_concurrent_trials=int(at_once), reuse_actors=True,
                  scheduler=ASHAScheduler(max_t=int(steps), grace_period=1, reduction_factor=3))
    seconds = time.perf_counter() - t
    return {"trials": len(results), "reports": count.reports, "seconds": seconds, "per_s": count.reports / seconds}


def start(directory):
    def train(config):
        with open(config["file"], "w") as f:
            f.write(repr(time.time()))
        tune.report({"x": 1.0})
    begin(2)
    file = os.path.join(directory, "first")
    fit(train, {"file": file}, directory, num_samples=1)
    return {"first_report": float(open(file).read())}


def save(mib, saves, pause_ms, directory):
    def train(config):
        data = b"x" * (config["mib"] << 20)
        whole, own = [], []
        for _ in range(config["saves"]):
            time.sleep(config["pause"])
            a = time.perf_counter()
            with tempfile.TemporaryDirectory(dir=config["dir"]) as folder:
                with open(os.path.join(folder, "model.bin"), "wb") as f:
                    f.write(data)
                own.append(time.perf_counter() - a)
                tune.report({"x": 1.0}, checkpoint=tune.Checkpoint.from_directory(folder))
                # Ray keeps its own copy; removing the trial's is not counted.
                whole.append(time.perf_counter() - a)
        with open(os.path.join(config["dir"], "times"), "w") as f:
            json.dump({"whole_s": whole, "own_s": own}, f)
    begin(2)
    fit(train, {"mib": int(mib), "saves": int(saves), "pause": int(pause_ms) / 1000, "dir": directory}, directory,
        run={"checkpoint_config": tune.CheckpointConfig(num_to_keep=2)}, num_samples=1)
    with open(os.path.join(directory, "times")) as f:
        return json.load(f)


def faults(mode, reuse, trials, at_once, steps, step_ms, every, directory, log):
    def train(config):
        out = os.open(config["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        first = 0
        checkpoint = tune.get_checkpoint()
        if checkpoint:
            with checkpoint.as_directory() as folder, open(os.path.join(folder, "step")) as f:
                first = int(f.read())
        for i in range(first, config["steps"]):
            time.sleep(config["step"])
            # By the grid's index: a restored trial may have another id.
            os.write(out, (json.dumps([time.time(), config["i"], i, os.getpid(), first]) + "\n").encode())
            if (i + 1) % config["every"] == 0:
                with tempfile.TemporaryDirectory() as folder:
                    with open(os.path.join(folder, "step"), "w") as f:
                        f.write(str(i + 1))
                    tune.report({"x": i}, checkpoint=tune.Checkpoint.from_directory(folder))
            else:
                tune.report({"x": i})
    begin(int(at_once))
    if mode == "restore":
        results = tune.Tuner.restore(os.path.join(directory, "exp"), train, resume_unfinished=True, resume_errored=True).fit()
    else:
        space = {"steps": int(steps), "step": int(step_ms) / 1000, "every": int(every), "log": log,
                 "i": tune.grid_search(list(range(int(trials))))}
        results = fit(train, space, directory, run={"failure_config": tune.FailureConfig(max_failures=3)},
                      reuse_actors=reuse == "1")
    return {"trials": len(results)}


if __name__ == "__main__":
    answer = {"noop": noop, "asha": asha, "start": start, "save": save, "faults": faults}[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(answer), flush=True)
    ray.shutdown()
