"""hypertune import: what other programs found, judged as they judge it, and a search that goes on from there."""
from support import *

FLOAT = json.dumps({"name": "FloatDistribution", "attributes": {"step": None, "low": 0.0, "high": 1.0, "log": False}})
RUNNING, COMPLETE, PRUNED, FAIL = 0, 1, 2, 3

SWEEP = """\
name: on
trial: {command: [echo, '{{"loss": 1}}']}
space: {lr: {uniform: [0, 1]}}
metric: loss
mode: min
samples: 2
executor: {type: local, workers: threads}
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

    def ray_trial(self, name, config, losses, folder="ray"):
        place = self.folder / folder / name
        place.mkdir(parents=True)
        (place / "params.json").write_text(json.dumps(config))
        (place / "result.json").write_text("".join(
            json.dumps({"loss": loss, "training_iteration": i + 1, "timestamp": 1700000000 + i, "done": i + 1 == len(losses)}) + "\n"
            for i, loss in enumerate(losses)))

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

    def test_what_is_damaged(self):
        self.ray_trial("a", {"lr": 0.1}, [1.0, 0.5])
        self.ray_trial("b", {"lr": 0.2}, [1.0])
        (self.folder / "ray" / "b" / "params.json").write_text('{"lr": 0.')
        out, _ = self.run_command("import", "ray", "-o", "old", "--metric", "loss", "--mode", "min")
        self.assertRegex(out, "^1 trial of 'ray' of Ray Tune is in old; 1 that cannot be read is left out .*b/params.json")
        self.assertEqual(len(self.results("old")), 1)
        (self.folder / "a.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
        _, err = self.run_command("import", "a.db", "-o", "none", code=2)
        self.assertIn("'a.db' is damaged", err)
        self.assertNotIn("journal", err)

    def test_a_warm_start_takes_what_fits(self):
        for i in range(3):
            self.ray_trial(f"t{i}", {"lr": i / 10, "model": {"w": 7}}, [1.0, 0.5 + i])
            self.ray_trial(f"u{i}", {"lr": i / 10, "depth": i}, [1.0], folder="ray2")
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
