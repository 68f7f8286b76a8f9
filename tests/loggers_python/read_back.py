"""Reads what write_experiment wrote, by TensorBoard, csv, json, Optuna and optuna-dashboard themselves.
Usage: read_back.py tensorboard|csv|jsonl|optuna|judged|dashboard|arrow|trace WRITER HYPERTUNE"""
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


def export(directory, *arguments):
    """Standard output and error of `hypertune export`."""
    done = subprocess.run([sys.argv[3], "export", directory, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def arrow(directory):
    import pyarrow
    import pyarrow.compute
    import pyarrow.ipc
    import pyarrow.parquet

    def table(file):
        with pyarrow.ipc.open_file(file) as reader:
            read = reader.read_all()
        read.validate(full=True)
        assert pyarrow.ipc.open_file(pyarrow.memory_map(file)).read_all().num_rows == read.num_rows
        return read

    export(directory, "--format", "arrow", "-o", f"{directory}/tables")
    reports = table(f"{directory}/tables/reports.arrow")
    assert reports.column_names == ["sequence", "time", "trial", "attempt", "step", "metrics_accuracy",
                                    "metrics_loss, late"]
    assert reports.schema.field("time").type == pyarrow.timestamp("us", "UTC")
    assert reports.num_rows == 16 and reports["trial"].to_pylist() == [0, 1, 2, 3] * 4
    assert reports["step"].to_pylist() == [step for step in range(4) for _ in range(4)]
    late = reports["metrics_loss, late"].to_pylist()
    assert late == [None] * 8 + [0.5] * 4 + [1 / 3] * 4, late
    accuracy = [v for v, t in zip(reports["metrics_accuracy"].to_pylist(), reports["trial"].to_pylist()) if t == 2]
    assert math.isnan(accuracy[1]) and accuracy[2] == math.inf and close(accuracy[3], 0.32), accuracy
    assert reports["time"][0].as_py().timestamp() > 1_700_000_000
    trials = table(f"{directory}/tables/trials.arrow")
    rows = trials.to_pylist()
    assert [r["trial"] for r in rows] == list(range(6))
    assert [r["state"] for r in rows] == ["completed", "stopped", "completed", "failed", "pending", "pending"]
    assert rows[1]["params_optimizer"] == 'a, "b"' and rows[3]["params_amp"] is True and rows[2]["params_hidden"] == 64
    assert rows[0]["params_momentum"] == 0.9 and rows[1]["params_momentum"] is None
    assert close(rows[2]["best_accuracy"], 0.32) and rows[2]["best_step"] == 3 and rows[4]["best_accuracy"] is None
    assert rows[3]["cause"] == 'segfault "in" conv' and rows[3]["failures"] == 1 and rows[0]["cause"] is None
    assert trials.schema.field("params_hidden").type == pyarrow.int64()
    assert trials.schema.field("params_amp").type == pyarrow.bool_()
    metadata = trials.schema.metadata
    assert metadata[b"name"] == b"digits" and metadata[b"objectives"] == b"max accuracy", metadata
    # What comes with pandas and Polars reads them, too, and Parquet is made of them by one line.
    frame = reports.to_pandas()
    assert frame["metrics_accuracy"].isna().sum() == 1 and len(frame) == 16
    pyarrow.parquet.write_table(reports, f"{directory}/tables/reports.parquet")
    assert pyarrow.parquet.read_table(f"{directory}/tables/reports.parquet").num_rows == 16
    try:
        import polars
    except ImportError:
        polars = None
    if polars:
        assert polars.read_ipc(f"{directory}/tables/trials.arrow")["params_hidden"].to_list() == [
            16, 32, 64, 128, 256, 512]
    # Notes reach it; no trial, no report: tables without rows.
    export(f"{directory}/places", "--format", "arrow", "-o", f"{directory}/tables/places")
    noted = table(f"{directory}/tables/places/trials.arrow")
    assert noted["attributes_good"].to_pylist() == [None, True, None]
    assert noted["attributes_score"].to_pylist() == [None, 2.5, None]
    assert noted.schema.metadata[b"attribute_who"] == b"me"
    assert noted["ended"].to_pylist()[:2] == [None, None] and noted["ended"].to_pylist()[2] is not None
    again = subprocess.run([sys.argv[3], "export", directory, "--format", "arrow", "-o", f"{directory}/tables"],
                           capture_output=True, text=True)
    assert again.returncode == 2 and "exists already" in again.stderr, again


def trace(directory):
    """The Trace Event Format's rules, event by event, and that what happened is there."""
    for name in ["", "/tradeoff", "/places"]:
        check_trace(json.loads(export(directory + name, "--format", "trace")))
    whole = json.loads(export(f"{directory}/places", "--format", "trace"))
    assert whole["otherData"]["experiment"] == "places" and whole["otherData"]["start"] == 1_700_000_000
    events = whole["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(processes.values()) == sorted(["experiment", "trials", "a", 'b "two"', "c"]), processes
    slices = spans(events)

    def on(process, name):
        return sorted((b / 1e6, e / 1e6, slot, args) for p, slot, n, b, e, args in slices
                      if processes[p] == process and n == name)

    # Trial 0 on a, paused, then on c until the driver was killed; trial 1 in both slots of its workers, resized to one.
    assert [(b, e, s) for b, e, s, _ in on("a", "trial 0")] == [(2, 4, 1)]
    assert [(b, e) for b, e, _, _ in on("c", "trial 0")] == [(7, 8.5)]
    assert [(b, e, s) for b, e, s, _ in on("a", "trial 1")] == [(2, 4.5, 2), (4.5, 8.5, 2)]
    assert [(b, e) for b, e, _, _ in on('b "two"', "trial 1")] == [(2, 4.5)]
    assert [a["generation"] for _, _, _, a in on("a", "trial 1")] == [0, 1]
    assert [(b, e, s) for b, e, s, _ in on("a", "trial 2")] == [(5, 6, 1), (102, 104, 1)]
    steps = [(e["ts"] / 1e6, e["dur"] / 1e6, e["args"]) for e in events if e["ph"] == "X"]
    assert steps[0] == (2, 1, {"loss": 1.0}) and steps[1] == (2, 2, {"loss": 0.5, "size": 3})
    assert steps[2] == (4.5, 3.5, {"loss": 0.25}) and steps[3][2] == {"loss": "NaN"}
    marks = {e["name"]: e for e in events if e["ph"] == "i"}
    assert marks["trial 2 failed"]["args"] == {"why": 'out of "memory"', "source": "user", "attempt": 0}
    assert marks["resized"]["args"] == {"workers": 1, "why": "host b is gone"}
    assert marks["note"]["args"] == {"who": "me"} and marks["trial 1 note"]["args"] == {"good": True, "score": 2.5}
    assert marks["host lost"]["args"]["why"] == "no route" and marks["checkpoint"]["args"]["bytes"] == 100
    # The arrows: to trial 0 on c, and to trial 2, which took over that checkpoint.
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = [e for e in events if e["ph"] == "f"]
    assert [e["ts"] / 1e6 for e in ends] == [7, 102] and [starts[e["id"]]["ts"] / 1e6 for e in ends] == [3.5, 3.5]
    states = [(e["ph"], e["name"], e["ts"] / 1e6) for e in events if e.get("id") == "trial-0"]
    assert states == [("b", "pending", 1), ("e", "pending", 2), ("b", "running", 2), ("e", "running", 4),
                      ("b", "paused", 4), ("e", "paused", 7), ("b", "running", 7), ("e", "running", 8.5),
                      ("b", "pending", 8.5), ("e", "pending", 105)], states
    saving = [(e["ph"], e["ts"] / 1e6) for e in events if e.get("cat") == "checkpoint" and e["ph"] in "be"]
    assert saving == [("b", 3), ("e", 3.5)], saving
    assert [e["args"]["value"] for e in events if e["ph"] == "C" and e["name"] == "best so far"] == [1, 0.5, 0.25]


def spans(events):
    """Slices of B and E: (pid, tid, name, begin, end, args). Each E ends the innermost of its thread, in order of time."""
    found, open_ = [], {}
    for event in sorted((e for e in events if e["ph"] in "BE"), key=lambda e: e["ts"]):
        stack = open_.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event)
        else:
            begin = stack.pop()
            found.append((event["pid"], event["tid"], begin["name"], begin["ts"], event["ts"], begin.get("args", {})))
    assert not any(open_.values()), open_
    return found


def check_trace(whole):
    """What a reader of the format relies on: the keys and types of each phase, pairs, and slices that nest."""
    needed = {"B": set(), "E": set(), "X": {"dur"}, "i": {"s"}, "C": {"args"}, "M": {"args"}, "b": {"id", "cat"},
              "e": {"id", "cat"}, "s": {"id", "cat"}, "f": {"id", "cat", "bp"}}
    assert whole["displayTimeUnit"] in ("ms", "ns") and whole["traceEvents"]
    asynchronous, flows, named = {}, set(), set()
    for event in whole["traceEvents"]:
        assert {"ph", "pid", "tid", "ts", "name"} | needed[event["ph"]] <= set(event), event
        assert all(type(event[k]) is int for k in ("pid", "tid", "ts")) and event["ts"] >= 0, event
        assert type(event["name"]) is str and event.get("dur", 0) >= 0, event
        key = (event.get("cat"), event.get("id"), event["name"])
        if event["ph"] == "b":
            asynchronous[key] = asynchronous.get(key, 0) + 1
        elif event["ph"] == "e":
            asynchronous[key] -= 1
            assert asynchronous[key] >= 0, event
        elif event["ph"] == "s":
            flows.add(event["id"])
        elif event["ph"] == "f":
            assert event["id"] in flows, event
        elif event["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in event["args"].values()), event
        elif event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "process_sort_index", "thread_sort_index"), event
            named.add((event["pid"], event["name"]))
    assert not any(asynchronous.values()), asynchronous
    slices = spans(whole["traceEvents"])
    for event in whole["traceEvents"]:
        assert (event["pid"], "process_name") in named, event
        if event["ph"] == "X":  # within the attempt that it belongs to
            assert any(p == event["pid"] and t == event["tid"] and b <= event["ts"] and event["ts"] + event["dur"] <= e
                       for p, t, _, b, e, _ in slices), event


def judged(directory):
    """The best trial and the front by Optuna are ours, whatever the values and constraints are."""
    import optuna as package

    choices = [1, 2.5, math.nan, math.inf, -math.inf, "NaN", "x", True, 9007199254740993, 3.0]
    seen = {"best": 0, "front": 0, "none": 0, "violated": 0, "unknown": 0}
    for name in sorted(os.listdir(directory), key=int):
        with open(f"{directory}/{name}/expected.json") as file:
            ours = json.load(file)
        study = package.load_study(study_name="judged", storage=f"sqlite:///{directory}/{name}/optuna.db")
        assert len(study.trials) == ours["trials"], (name, study.trials)
        for trial in study.trials:
            wanted = {"choice": choices[trial.number % len(choices)], "late": math.nan if trial.number == 80 else trial.number / 4}
            for key, value in trial.params.items():
                nan = value != value and wanted[key] != wanted[key]
                assert nan or (value == wanted[key] and isinstance(value, str) == isinstance(wanted[key], str)), (name, trial, wanted)
        if ours["objectives"] == 2:
            theirs = [trial.number for trial in study.best_trials]
            recorded = any("constraints" in trial.system_attrs for trial in study.trials)
            if ours["constraints"] and not ours["met"] and recorded:  # Optuna names none if none meets them
                assert theirs == [], (name, ours, theirs)
                seen["violated"] += 1
            else:
                assert theirs == ours["front"], (name, ours, theirs)
                seen["front"] += len(theirs) > 1
            continue
        try:
            theirs = study.best_trial.number
        except ValueError:
            theirs = None
        if ours["best"] is None:
            assert theirs is None, (name, ours, theirs)
            seen["none"] += 1
        elif ours["constraints"] and ours["known"] and not ours["met"]:
            assert theirs is None, (name, ours, theirs)
            seen["violated"] += 1
        else:
            assert theirs == ours["best"], (name, ours, theirs)
            seen["unknown" if ours["constraints"] and not ours["known"] else "best"] += 1
    assert all(seen.values()), seen


def main():
    reader = {"tensorboard": tensorboard, "csv": read_csv, "jsonl": read_jsonl, "optuna": optuna,
              "judged": judged, "dashboard": dashboard, "arrow": arrow, "trace": trace}[sys.argv[1]]
    with tempfile.TemporaryDirectory(prefix="hypertune-") as directory:
        subprocess.run([sys.argv[2], directory] + ["judged"] * (sys.argv[1] == "judged"), check=True)
        reader(directory)


if __name__ == "__main__":
    main()
