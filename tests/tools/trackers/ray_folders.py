"""Experiments of the real Ray Tune in which trials end in every way, and what Ray itself says about them.
Usage: ray_folders.py FOLDER            makes them below FOLDER
       ray_folders.py FOLDER TRIMMED    … and copies of them that have only what an import reads, without this machine's names,
                                        addresses and process numbers, with Ray's answers as expected.json"""
import json
import os
import pathlib
import re
import shutil
import sys
import time

os.environ.update(RAY_AIR_NEW_OUTPUT="0", RAY_USAGE_STATS_ENABLED="0", RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS="0")

# How each trial ended, by the experiment and its learning rate: the state and the end of the cause in hypertune, and the
# number of failures.
CUT, REACHED = "by its scheduler or a stopper", "training_iteration reached 4 (asked for 4)"
OUTSIDE = "the end of Ray Tune's run"
ENDED = {"mixed": {0.1: ("completed", "", 0), 0.2: ("completed", "", 1), 0.3: ("failed", "RuntimeError: always", 2)},
         "asha": {0.1: ("stopped", CUT, 0), 0.3: ("stopped", CUT, 0), 0.2: ("stopped", CUT, 0)},
         "criterion": {0.1: ("stopped", REACHED, 0), 0.2: ("stopped", REACHED, 0)},
         "class": {0.1: ("stopped", "by itself, its scheduler or a stopper", 0), 0.4: ("failed", "ValueError: at step", 1)},
         "stopper": {0.1: ("stopped", CUT, 0)},
         "budget": {0.1: ("stopped", OUTSIDE, 0), 0.2: ("stopped", OUTSIDE, 0)},
         "resumed": {0.1: ("completed", "", 0), 0.4: ("completed", "", 0)},
         "population": {0.1: ("stopped", REACHED, 0), 5.0: ("stopped", REACHED, 0)}}


def make(where):
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler, PopulationBasedTraining

    where = os.path.abspath(where)
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)

    def run(name, trainable, rates, stop=None, failures=0, **options):
        tune.Tuner(trainable, param_space={"lr": tune.grid_search(rates), "net": {"layers": 2, "act": "relu"}, "sizes": [1, 2]},
                   tune_config=tune.TuneConfig(metric="loss", mode="min", max_concurrent_trials=2 if name == "population" else 1, **options),
                   run_config=tune.RunConfig(name=name, storage_path=where, verbose=0, stop=stop,
                                             failure_config=tune.FailureConfig(max_failures=failures))).fit()

    def mixed(config):  # returns; fails once and then returns; always fails
        first = not os.path.exists(f"{where}/failed-once")
        for i in range(3):
            tune.report({"loss": config["lr"] * (3 - i), "good": i > 0, "net": {"acc": i / 10}, "word": "w"})
            if i == 1 and config["lr"] == 0.3:
                raise RuntimeError("always")
            if i == 1 and config["lr"] == 0.2 and first:
                open(f"{where}/failed-once", "w").close()
                raise RuntimeError("only once")

    def steps(config):
        for i in range(9):
            tune.report({"loss": config["lr"] * (3 - i / 10)})

    def endless(config):
        for i in range(1000):
            tune.report({"loss": config["lr"] * (3 - i / 1000)})
            time.sleep(0.5)

    def errs(config):
        for i in range(2):
            tune.report({"loss": config["lr"] * (3 - i)})
            if config["lr"] == 0.4 and not os.path.exists(f"{where}/mended"):
                raise RuntimeError("to be mended")

    def population(config):
        import tempfile
        i, checkpoint = 0, tune.get_checkpoint()
        if checkpoint:
            with checkpoint.as_directory() as folder:
                i = int(open(folder + "/i").read()) + 1
        while i < 8:
            with tempfile.TemporaryDirectory() as folder:
                open(folder + "/i", "w").write(str(i))
                tune.report({"loss": config["lr"] + 1 / (i + 1)}, checkpoint=tune.Checkpoint.from_directory(folder))
            i += 1
            time.sleep(0.05)

    class Class(tune.Trainable):
        def setup(self, config):
            self.rate, self.at = config["lr"], 0

        def step(self):
            self.at += 1
            if self.rate == 0.4 and self.at == 2:
                raise ValueError("at step")
            return {"loss": self.rate / self.at, "done": self.at == 3, "good": True}

        def save_checkpoint(self, folder):
            return folder

        def load_checkpoint(self, folder):
            pass

    class Below(tune.Stopper):
        def __call__(self, trial_id, result):
            return result["loss"] < 0.29

        def stop_all(self):
            return False

    run("mixed", mixed, [0.1, 0.2, 0.3], failures=1)
    run("asha", steps, [0.1, 0.3, 0.2], scheduler=ASHAScheduler(max_t=9, grace_period=1, reduction_factor=2))
    run("criterion", steps, [0.1, 0.2], stop={"training_iteration": 4})
    run("class", Class, [0.1, 0.4])
    run("stopper", steps, [0.1], stop=Below())
    run("budget", endless, [0.1, 0.2], time_budget_s=8)
    run("resumed", errs, [0.1, 0.4])
    time.sleep(1.1)  # the names of the states have seconds
    open(f"{where}/mended", "w").close()
    tune.Tuner.restore(f"{where}/resumed", errs, restart_errored=True).fit()
    mutations = {"lr": tune.uniform(0, 1)}
    run("population", population, [0.1, 5.0], stop={"training_iteration": 4},
        scheduler=PopulationBasedTraining(time_attr="training_iteration", perturbation_interval=2, quantile_fraction=0.5,
                                          resample_probability=1.0, hyperparam_mutations=mutations))
    ray.shutdown()


def answers(where):
    """What Ray says about each experiment, and how its trials ended."""
    from ray.tune import ExperimentAnalysis

    out = {}
    for name, ended in ENDED.items():
        analysis = ExperimentAnalysis(f"{os.path.abspath(where)}/{name}")
        trials = []
        for trial in analysis.trials:
            frame = analysis.trial_dataframes[trial.trial_id]
            if len(frame) == 0:
                continue  # the time was over before it began
            frame = frame.drop_duplicates("training_iteration", keep="last")
            own = [column for column in ("loss", "good", "net/acc") if column in frame]
            state, cause, failures = ended[trial.evaluated_params["lr"] if name != "population" else
                                           {"0": 0.1, "1": 5.0}[trial.experiment_tag[0]]]
            trials.append({"folder": trial.relative_logdir, "status": trial.status, "config": trial.config, "ended": state,
                           "cause": cause, "failures": failures,
                           "reports": [{key: float(row[key]) for key in own} for row in frame.to_dict("records")]})
        best = analysis.get_best_trial("loss", "min", scope="all")
        out[name] = {"best": best.relative_logdir, "trials": trials}
    return out


def trim(where, target):
    keep = {"status", "trial_id", "relative_logdir", "config", "experiment_tag", "stopping_criterion", "trainable_name",
            "start_time", "num_failures", "error_filename", "last_result"}
    replaced = [(re.compile(p), r) for p, r in [(r'"hostname": "[^"]*"', '"hostname": "host"'), (r'"pid": \d+', '"pid": 1000'),
                (r"pid=\d+, ip=[^,]*, actor_id=\w+", "pid=1000, ip=192.0.2.1, actor_id=0"),
                (r'"node_ip": "[^"]*"', '"node_ip": "192.0.2.1"'), (r'File "/[^"]*/', 'File "/place/')]]

    def clean(text):
        for pattern, by in replaced:
            text = pattern.sub(by, text)
        return text

    for name in ENDED:
        for file in sorted(pathlib.Path(where, name).rglob("*")):
            to = pathlib.Path(target, file.relative_to(where))
            if file.name.startswith("experiment_state-"):
                state = json.loads(file.read_text())
                state["trial_data"] = [[clean(json.dumps({k: v for k, v in json.loads(part).items() if k in keep})) for part in pair]
                                       for pair in state["trial_data"]]
                state["runner_data"] = {}
                text = json.dumps(state, indent=1) + "\n"
            elif file.name in ("params.json", "result.json", "error.txt"):
                text = clean(file.read_text())
            else:
                continue
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(text)
    pathlib.Path(target, "expected.json").write_text(json.dumps(answers(where), indent=0) + "\n")


if __name__ == "__main__":
    make(sys.argv[1])
    if len(sys.argv) > 2:
        trim(*sys.argv[1:3])
