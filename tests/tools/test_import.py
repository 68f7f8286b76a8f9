"""hypertune import: what other programs found, judged as they judge it, and a search that goes on from there."""
import pathlib
import sqlite3
import sys
from contextlib import closing

from support import *

TRACKERS = pathlib.Path(__file__).resolve().parent / "trackers"
sys.path.insert(0, str(TRACKERS))
from imported import compare_optuna, compare_ray  # noqa: E402

FLOAT = json.dumps({"name": "FloatDistribution", "attributes": {"step": None, "low": 0.0, "high": 1.0, "log": False}})
RUNNING, COMPLETE, PRUNED, FAIL = 0, 1, 2, 3

SWEEP = """\
name: on
trial: {command: [echo, '{{"loss": 1}}']}
space: {lr: {uniform: [0, 1]}}
metric: loss
mode: min
samples: 2
executor: {type: local, isolation: thread}
"""


class Import(Case):
    def optuna_log(self, trials, study="s", file="a.log"):
        """A file of Optuna's JournalStorage: (state, values, intermediate values) of each trial."""
        lines = [{"op_code": 0, "study_name": study, "directions": [1]}]
        for number, (state, values, between) in enumerate(trials):
            lines.append({"op_code": 4, "study_id": 0, "datetime_start": f"2026-01-01T00:00:{number:02}+00:00"})
            lines.append({"op_code": 5, "trial_id": number, "param_name": "lr", "param_value_internal": (number + 1) / 10,
                          "distribution": FLOAT})
            for step, value in between.items():
                lines.append({"op_code": 7, "trial_id": number, "step": step, "intermediate_value": value})
            lines.append({"op_code": 6, "trial_id": number, "state": state, "values": values,
                          "datetime_complete": f"2026-01-01T00:01:{number:02}+00:00"})
        (self.folder / file).write_text("".join(json.dumps({"worker_id": "w", **line}) + "\n" for line in lines))

    def ray_trial(self, name, params, folder="ray"):
        """A real trial of Ray with other parameters, in a folder without a state."""
        shutil.copytree(next((TRACKERS / "ray-2.60.0" / "criterion").glob("*lr=0.1*")), self.folder / folder / name)
        (self.folder / folder / name / "params.json").write_text(json.dumps(params))

    def best(self, folder):
        return json.loads(self.run_command("best", folder, "--format", "json")[0])

    def test_the_best_is_optunas(self):
        self.optuna_log([(COMPLETE, [9.0], {0: 0.001, 1: 5.0, 2: 9.0}),      # good on its way
                         (COMPLETE, [2.0], {0: 4.0, 1: 3.0}),                # ends with what it never reported
                         (PRUNED, [0.5], {0: 0.5}),                          # Optuna keeps its last report as its value
                         (COMPLETE, [float("inf")], {0: 0.048}),
                         (FAIL, None, {0: 0.01})])
        self.run_command("import", "a.log", "-o", "old")
        best = self.best("old")
        self.assertEqual((best["trial"], best["best"]["value"], best["best"]["step"]), (1, 2.0, 1))
        trials = self.results("old", history=True)
        self.assertEqual([[{k: r[k] for k in r if k in ("step", "value", "intermediate_value")} for r in t["history"]] for t in trials], [
            [{"step": 0, "intermediate_value": 0.001}, {"step": 1, "intermediate_value": 5}, {"step": 2, "intermediate_value": 9, "value": 9}],
            [{"step": 0, "intermediate_value": 4}, {"step": 1, "intermediate_value": 3, "value": 2}],
            [{"step": 0, "intermediate_value": 0.5}],
            [{"step": 0, "intermediate_value": 0.048, "value": "Infinity"}],
            [{"step": 0, "intermediate_value": 0.01}]])
        self.assertEqual([t["state"] for t in trials], ["completed", "completed", "stopped", "completed", "failed"])
        # Back in Optuna it is the best, too.
        self.run_command("export", "old", "--format", "optuna", "-o", "back.db")
        self.run_command("import", "back.db", "-o", "again")
        self.assertEqual(self.best("again")["best"]["value"], 2.0)

    def test_an_objective_that_is_called_as_what_is_between(self):
        self.optuna_log([(COMPLETE, [2.0], {0: 1.0})])
        self.run_command("import", "a.log", "-o", "old", "--metric", "intermediate_value")
        self.assertEqual(self.best("old")["best"]["intermediate_value"], 2.0)

    def output(self, *arguments):
        return self.run_command(*arguments)[0]

    def test_studies_that_optuna_wrote(self):
        for version in ("5.0.0", "4.9.0"):
            theirs = json.loads((TRACKERS / f"optuna-{version}.json").read_text())
            self.assertGreater(len(theirs), 7)
            for study in theirs:
                folder = f"{version}-{study}"
                source = str(TRACKERS / f"optuna-{version}.log")
                self.assertEqual(compare_optuna(self.output, source, study, theirs[study], folder), [])
                # Back in Optuna's form, they are judged as before.
                self.run_command("export", folder, "--format", "optuna", "-o", folder + ".db")
                with closing(sqlite3.connect(self.folder / (folder + ".db"))) as db:
                    states = [state for state, in db.execute("SELECT state FROM trials ORDER BY number")]
                self.assertEqual(states, [trial["state"] for trial in theirs[study]["trials"]])

    def test_folders_that_ray_wrote(self):
        theirs = json.loads((TRACKERS / "ray-2.60.0" / "expected.json").read_text())
        for name in theirs:
            source = str(TRACKERS / "ray-2.60.0" / name)
            self.assertEqual(compare_ray(self.output, source, theirs[name], name), [])
        first = next(t for t in self.results("mixed", history=True) if t["params"]["lr"] == 0.1)
        self.assertEqual(first["params"], {"lr": 0.1, "net/act": "relu", "net/layers": 2, "sizes": "[1,2]"})
        self.assertEqual(first["history"][1], first["history"][1] | {"good": 1, "net/acc": 0.1})
        result = next((TRACKERS / "ray-2.60.0" / "mixed").glob("*lr=0.1*/result.json")).read_text().splitlines()[1]
        with closing(sqlite3.connect(self.folder / "mixed" / "experiment.db")) as db:
            times = db.execute("SELECT time FROM reports WHERE trial = ? AND step = 1 AND metric = 'loss'", [first["trial"]]).fetchall()
        self.assertEqual(times, [(json.loads(result)["timestamp"],)])
        # A single trial's folder is read by the same state.
        trial = next((TRACKERS / "ray-2.60.0" / "mixed").glob("*lr=0.2*"))
        self.run_command("import", str(trial), "-o", "single", "--metric", "loss", "--mode", "min")
        self.assertEqual([t["state"] for t in self.results("single")], ["completed"])
        # What the newest run does not count is left out, and said.
        out, _ = self.run_command("import", str(TRACKERS / "ray-2.60.0" / "resumed"), "-o", "again", "--metric", "loss", "--mode", "min")
        self.assertIn("; 1 of an earlier run in this folder is left out", out)
        # Nested names, and which metrics there are.
        _, err = self.run_command("import", str(TRACKERS / "ray-2.60.0" / "mixed"), "-o", "none", code=2)
        self.assertIn("--metric and --mode (reported were: good, loss, net/acc)", err)
        _, err = self.run_command("import", str(TRACKERS / "ray-2.60.0" / "mixed"), "-o", "none", "--metric", "los", "--mode", "min", code=2)
        self.assertIn("reported 'los'", err)

    def test_a_state_as_ray_wrote_it_before_2_5(self):
        self.run_command("import", str(TRACKERS / "ray-2.3.1" / "old"), "-o", "old", "--metric", "loss", "--mode", "min")
        states = {t["params"]["lr"]: t["state"] for t in self.results("old")}
        self.assertEqual(states, {0.1: "completed", 0.2: "stopped", 0.4: "stopped"})

    def test_a_copy_of_rays_folder_without_its_state(self):
        shutil.copytree(TRACKERS / "ray-2.60.0" / "mixed", self.folder / "mixed")
        next((self.folder / "mixed").glob("experiment_state-*")).unlink()
        diverged = next((self.folder / "mixed").glob("*lr=0.1*/result.json"))
        diverged.write_text(diverged.read_text().replace('"loss": 0.2,', '"loss": NaN,'))
        self.run_command("import", "mixed", "-o", "old", "--metric", "loss", "--mode", "min")
        states = {t["params"]["lr"]: t["state"] for t in self.results("old")}
        self.assertEqual(states, {0.1: "stopped", 0.2: "failed", 0.3: "failed"})
        first = next(t for t in self.results("old", history=True) if t["params"]["lr"] == 0.1)
        self.assertEqual([r["loss"] for r in first["history"]], [0.30000000000000004, "NaN", 0.1])

    def test_operations_that_optuna_refused(self):
        """The smallest journals for which each rule matters."""
        created = [{"op_code": 0, "study_name": name, "directions": [1]} for name in ("a", "a", "b", "a", "c")]
        trials = [{"op_code": 4, "study_id": study, "datetime_start": "2026-01-01T00:00:00"} for study in (0, 1, 2, 7, 2)]
        ends = [{"op_code": 6, "trial_id": trial, "state": COMPLETE, "values": [float(trial)],
                 "datetime_complete": "2026-01-01T00:00:01"} for trial in (0, 1, 2, 3)]
        late = [{"op_code": 6, "trial_id": 2, "state": COMPLETE, "values": [-1.0], "datetime_complete": "2026-01-01T00:00:02"},
                {"op_code": 8, "trial_id": 2, "user_attr": {"late": 1}}, {"op_code": 9, "trial_id": 2, "system_attr": {"constraints": [1.0]}},
                {"op_code": 7, "trial_id": 2, "step": 5, "intermediate_value": 1.0}, {"op_code": 4, "study_id": 2, "datetime_start": None}]
        unfinished = {"op_code": 8, "trial_id": 4, "user_attr": {"unwritten": 1}}
        text = "".join(json.dumps({"worker_id": "w", **line}) + "\n" for line in created + trials + ends + late)
        (self.folder / "a.log").write_text(text + json.dumps({"worker_id": "w", **unfinished}))
        for study, values in (("a", [0.0]), ("b", [1.0]), ("c", [2.0, 3.0])):
            self.run_command("import", "a.log", "-o", study, "--study", study)
            trials = self.results(study, history=True)
            self.assertEqual([t["metrics"] for t in trials], [{"value": value} for value in values])
            self.assertEqual([t["attributes"] for t in trials], [{"optuna_number": str(i)} for i in range(len(values))])

    def test_control_characters_in_names(self):
        """hypertune has none in the names of attributes and metrics, so that its tables have a line for each trial."""
        self.optuna_log([(COMPLETE, [1.0], {0: 1.5})])
        with open(self.folder / "a.log", "a") as log:
            # Only trials that run take attributes.
            log.write("".join(json.dumps({"worker_id": "w", **line}) + "\n" for line in (
                {"op_code": 4, "study_id": 0, "datetime_start": "2026-01-01T00:02:00"}, {"op_code": 8, "trial_id": 1, "user_attr": {"a\nb": "x"}},
                {"op_code": 6, "trial_id": 1, "state": COMPLETE, "values": [2.0], "datetime_complete": "2026-01-01T00:02:01"},
                {"op_code": 2, "study_id": 0, "user_attr": {"c\td": 1}})))
        self.run_command("import", "a.log", "-o", "old")
        self.assertEqual(self.results("old")[1]["attributes"], {"a_b": "x", "optuna_number": "1"})
        self.assertIn("c_d: 1", self.run_command("status", "old")[0])

    def test_what_is_damaged(self):
        self.ray_trial("a", {"lr": 0.1})
        self.ray_trial("b", {"lr": 0.2})
        (self.folder / "ray" / "b" / "params.json").write_text('{"lr": 0.')
        out, _ = self.run_command("import", "ray", "-o", "old", "--metric", "loss", "--mode", "min")
        self.assertRegex(out, "^1 trial of 'ray' of Ray Tune is in old; 1 that cannot be read is left out .*b/params.json")
        self.assertEqual(len(self.results("old")), 1)
        (self.folder / "text").write_text("hello\n")
        for source, words in [("text", "is neither a storage of Optuna"), ("nothing", "there is no file or folder"),
                              ("old", "no folder in it has a params.json"), ("old/experiment.db", "is no Optuna storage")]:
            _, err = self.run_command("import", source, "-o", "bad", code=2)
            self.assertIn(words, err)
            self.assertFalse((self.folder / "bad").exists())
        (self.folder / "a.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
        _, err = self.run_command("import", "a.db", "-o", "none", code=2)
        self.assertIn("'a.db' is damaged", err)
        self.assertNotIn("journal", err)

    def test_a_warm_start_takes_what_fits(self):
        for i in range(3):
            self.ray_trial(f"t{i}", {"lr": i / 10, "model": {"w": 7}})
            self.ray_trial(f"u{i}", {"lr": i / 10, "depth": i}, folder="ray2")
        for folder in ("ray", "ray2"):
            self.run_command("import", folder, "-o", "from-" + folder, "--metric", "loss", "--mode", "min")
        # A constant that the new space lacks is no reason to leave a trial out; one that differed is.
        self.write(SWEEP + "search: {type: random, warm_start: [from-ray, from-ray2]}\noutput: on\n")
        _, err = self.run_command("run", "sweep.yaml", "--plain")
        search = json.loads(self.run_command("status", "on", "--format", "json")[0])["search"]
        self.assertIn("warm start with 3 trials of from-ray, 0 trials of from-ray2 (3 do not fit this space: there is no parameter 'depth'", search)
        # Nothing at all to begin with is a mistake.
        self.write(SWEEP + "search: {type: random, warm_start: [from-ray2]}\noutput: none\n")
        _, err = self.run_command("run", "sweep.yaml", code=2)
        self.assertIn("none of its 3 trials fits this space", err)


if __name__ == "__main__":
    unittest.main()
