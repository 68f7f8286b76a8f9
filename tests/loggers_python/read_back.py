"""Reads what write_experiment wrote, by TensorBoard, csv, json, Optuna and optuna-dashboard themselves.
Usage: read_back.py tensorboard|csv|jsonl|optuna|dashboard WRITER"""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile


def close(a, b, tolerance=1e-6):
    return abs(a - b) <= tolerance * max(1, abs(b))


def tensorboard(directory):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
    from tensorboard.plugins.hparams import metadata, plugin_data_pb2

    runs = EventMultiplexer().AddRunsFromDirectory(directory).Reload().Runs()
    assert sorted(runs) == [f"trials/{t}" for t in range(6)], runs
    for trial in range(4):
        log = EventAccumulator(f"{directory}/trials/{trial}", size_guidance={"scalars": 0})
        log.Reload()
        accuracy = log.Scalars("accuracy")
        assert [e.step for e in accuracy] == [0, 1, 2, 3]
        for e in accuracy:
            if trial == 2 and e.step == 1:
                assert math.isnan(e.value)
            elif trial == 2 and e.step == 2:
                assert e.value == math.inf
            else:
                assert close(e.value, 0.1 * e.step + 0.01 * trial)
        assert [e.step for e in log.Scalars("loss, late")] == [2, 3]
        assert accuracy[0].wall_time > 1_700_000_000
        content = log.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
        start = metadata.parse_session_start_info_plugin_data(content)
        assert close(start.hparams["lr"].number_value, 0.001 * (trial + 1))
        assert start.hparams["optimizer"].string_value == ("sgd" if trial % 2 == 0 else 'a, "b"')
        assert start.hparams["amp"].HasField("bool_value") and start.hparams["amp"].bool_value == (trial >= 3)
        assert ("momentum" in start.hparams) == (trial % 2 == 0)
        content = log.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content
        end = metadata.parse_session_end_info_plugin_data(content)
        assert end.status == (2 if trial == 3 else 1), end
    hparams_tab(directory)


def hparams_tab(directory):
    """What the HPARAMS tab itself computes from the files."""
    from tensorboard.backend.event_processing import plugin_event_multiplexer
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.context import RequestContext
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import backend_context

    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
    multiplexer.AddRunsFromDirectory(directory)
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, directory)
    context = backend_context.Context(base_plugin.TBContext(data_provider=provider, logdir=directory))
    request = RequestContext()
    experiment = context.experiment_from_metadata(
        request, "", True, context.hparams_metadata(request, ""), context.hparams_from_data_provider(request, "", 100))
    names = {info.name for info in experiment.hparam_infos}
    assert names == {"lr", "hidden", "drop", "optimizer", "amp", "momentum", "noise"}, names
    assert {m.name.tag for m in experiment.metric_infos} >= {"accuracy"}, experiment.metric_infos


def read_csv(directory):
    for trial in range(4):
        with open(f"{directory}/trials/{trial}/progress.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["step", "time", "accuracy", "loss, late"]
        assert [int(r["step"]) for r in rows] == [0, 1, 2, 3]
        assert [r["loss, late"] for r in rows] == ["", "", "0.5", str(1 / 3)]
        if trial == 2:
            assert math.isnan(float(rows[1]["accuracy"])) and float(rows[2]["accuracy"]) == math.inf
    assert not os.path.exists(f"{directory}/trials/5/progress.csv")


def read_jsonl(directory):
    with open(f"{directory}/events.jsonl") as file:
        events = [json.loads(line) for line in file]
    assert [e["sequence"] for e in events] == list(range(1, len(events) + 1))
    reports = [e for e in events if e["event"] == "trial_reported" and e["trial"] == 2]
    assert [e["metrics"]["accuracy"] for e in reports][1:3] == ["NaN", "Infinity"]
    assert events[-1]["cause"] == {"blame": "user", "text": 'segfault "in" conv'}


def optuna(directory):
    import optuna as package
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.trial import TrialState

    study = package.load_study(study_name="digits", storage=f"sqlite:///{directory}/optuna.db")
    assert study.direction.name == "MAXIMIZE" and study.metric_names == ["accuracy"]
    trials = study.trials
    assert [t.number for t in trials] == list(range(6))
    expected = [TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE, TrialState.FAIL, TrialState.WAITING,
                TrialState.WAITING]  # 4 was running when its driver ended: it waits for a resume
    assert [t.state for t in trials] == expected
    d = trials[0].distributions
    assert d["lr"] == FloatDistribution(0.0001, 0.1, log=True)
    assert d["hidden"] == IntDistribution(16, 512, log=True)
    assert d["drop"] == FloatDistribution(0, 1, step=0.25)
    assert d["optimizer"] == CategoricalDistribution(["sgd", 'a, "b"'])
    assert d["amp"] == CategoricalDistribution([False, True])
    assert d["momentum"] == FloatDistribution(0.5, 0.99)
    assert d["noise"] == FloatDistribution(-2.5, 2.5)
    assert close(trials[2].params["lr"], 0.003) and trials[2].params["hidden"] == 64
    assert trials[1].params["optimizer"] == 'a, "b"' and trials[3].params["amp"] is True
    assert "momentum" not in trials[1].params
    assert close(trials[0].value, 0.3) and close(trials[2].value, 0.32) and study.best_trial.number == 2
    seen = trials[2].intermediate_values
    assert sorted(seen) == [0, 1, 2, 3] and math.isnan(seen[1]) and seen[2] == math.inf
    assert trials[0].datetime_start is not None and trials[0].datetime_complete > trials[0].datetime_start
    assert trials[3].user_attrs["hypertune:cause"] == 'segfault "in" conv'
    # Optuna goes on from there: first with the trials that wait.
    study.optimize(lambda t: t.suggest_float("lr", 0.0001, 0.1, log=True), n_trials=1)
    assert study.trials[4].state == TrialState.COMPLETE and close(study.trials[4].value, study.trials[4].params["lr"])
    package.importance.get_param_importances(study, params=["lr", "hidden"])
    tradeoff = package.load_study(study_name="tradeoff", storage=f"sqlite:///{directory}/tradeoff/optuna.db")
    assert [d.name for d in tradeoff.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert tradeoff.metric_names == ["accuracy", "latency"]
    expected = [TrialState.COMPLETE, TrialState.COMPLETE, TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL]
    assert [t.state for t in tradeoff.trials] == expected
    assert sorted(t.number for t in tradeoff.best_trials) == [0, 1, 2]  # 2, which a stop condition ended, is among them
    assert tradeoff.trials[2].values == [0.95, 30]


def dashboard(directory):
    def single(get):
        detail = show(get, "digits")
        assert [t["state"] for t in detail["trials"]] == ["Complete", "Pruned", "Complete", "Fail", "Waiting", "Waiting"]
        assert detail["objective_names"] == ["accuracy"] and detail["directions"] == ["maximize"]
        # What its plots are made of: history, intermediate values, parallel coordinates, importance.
        assert close(float(detail["trials"][0]["values"][0]), 0.3) and [t["number"] for t in detail["best_trials"]] == [2]
        assert [v["step"] for v in detail["trials"][0]["intermediate_values"]] == [0, 1, 2, 3]
        common = {p["name"]: p["distribution"]["type"] for p in detail["intersection_search_space"]}
        assert common["lr"] == "FloatDistribution" and common["optimizer"] == "CategoricalDistribution", common
        importances = json.loads(get("/api/studies/1/param_importances"))["param_importances"]
        assert {i["name"] for i in importances[0]} >= {"lr", "hidden"}, importances

    def several(get):
        detail = show(get, "tradeoff")
        assert detail["directions"] == ["maximize", "minimize"] and detail["objective_names"] == ["accuracy", "latency"]
        assert sorted(t["number"] for t in detail["best_trials"]) == [0, 1, 2], detail["best_trials"]
        importances = json.loads(get("/api/studies/1/param_importances"))["param_importances"]
        assert len(importances) == 2, importances

    def show(get, name):
        studies = json.loads(get("/api/studies"))
        summary = (studies.get("study_summaries") or studies)[0]
        assert summary["study_name"] == name, studies
        assert "<html" in get("/dashboard/").lower()
        return json.loads(get(f"/api/studies/{summary['study_id']}"))

    serve_dashboard(f"{directory}/optuna.db", single)
    serve_dashboard(f"{directory}/tradeoff/optuna.db", several)


def serve_dashboard(file, check):
    """Calls check(get) while the dashboard shows the storage; get(path) is what the page in a browser asks for."""
    import threading
    import urllib.request
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    from optuna.storages import RDBStorage
    from optuna_dashboard import wsgi

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_):
            pass

    with make_server("127.0.0.1", 0, wsgi(RDBStorage(f"sqlite:///{file}")), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            def get(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=60) as answer:
                    return answer.read().decode()

            check(get)
        finally:
            server.shutdown()
            thread.join()


def main():
    reader = {"tensorboard": tensorboard, "csv": read_csv, "jsonl": read_jsonl, "optuna": optuna,
              "dashboard": dashboard}[sys.argv[1]]
    with tempfile.TemporaryDirectory(prefix="hypertune-") as directory:
        subprocess.run([sys.argv[2], directory], check=True)
        reader(directory)


if __name__ == "__main__":
    main()
