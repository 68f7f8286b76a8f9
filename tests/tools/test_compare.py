"""hypertune compare: experiments side by side, repetitions in groups, and bad input."""
from support import *

# One random number is the result: RAISE makes it better.
RANDOM_TRAINER = r'''
import json, os, random
params = json.loads(os.environ["HYPERTUNE_PARAMS"])
for step in range(3):
    print(json.dumps({"step": step, "accuracy": params["lr"] * (step + 1) + float(os.environ["RAISE"])}), flush=True)
'''

SWEEP_OF = """\
name: {name}
trial: {{command: [python3, random_train.py]}}
space: {{lr: {{uniform: [0, 1]}}}}
search: random
metric: accuracy
mode: max
samples: {samples}
seed: {seed}
executor: {{type: local, isolation: thread}}
output: {output}
"""


class Compare(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "random_train.py").write_text(RANDOM_TRAINER)

    def sweep(self, name, output, seed, samples=4, raised="0"):
        self.environment["RAISE"] = raised
        file = self.write(SWEEP_OF.format(name=name, output=output, seed=seed, samples=samples), f"{name}-{seed}.yaml")
        self.run_command("run", file, "--quiet")

    def compared(self, *arguments):
        return json.loads(self.run_command("compare", *arguments, "--format", "json")[0])

    def test_one_damaged_folder_of_many(self):
        self.sweep("low", "runs/low", 1)
        self.sweep("high", "runs/high", 2, raised="5")
        (self.folder / "runs" / "bad").mkdir()
        (self.folder / "runs" / "bad" / "experiment.db").write_bytes(b"nonsense" * 1000)
        out, err = self.run_command("compare", "runs", "--by-name")
        self.assertIn("left out: 'runs/bad", err)
        _, err = self.run_command("compare", "runs/low", "runs/bad", code=2)
        self.assertIn("runs/bad", err)

    def test_two_experiments_and_their_trials(self):
        self.sweep("low", "runs/low", 1, samples=12)
        self.sweep("high", "runs/high", 2, samples=8, raised="5")
        self.run_command("note", "runs/low", "rate=slow")
        found = self.compared("runs/low", "runs/high")
        self.assertEqual((found["metric"], found["mode"]), ("accuracy", "max"))
        self.assertEqual(found["equal"]["trials"], 8)
        self.assertEqual(found["equal"]["reports"], 24)
        low, high = found["experiments"]
        self.assertEqual((low["trials"], low["reports"]), (12, 36))
        best = json.loads(self.run_command("best", "runs/low", "--format", "json")[0])
        self.assertEqual((low["best"], low["best_trial"]), (best["best"]["accuracy"], best["trial"]))
        first = [t["best"]["accuracy"] for t in self.results("runs/low")][:8]
        self.assertEqual(low["at_equal_trials"], max(first))
        self.assertEqual(high["at_equal_reports"], high["best"])
        self.assertEqual(low["settings"]["attribute.rate"], "slow")
        self.assertEqual(high["settings"]["seed"], "2")
        self.assertNotIn("search", low["settings"])
        test, = found["tests"]
        self.assertEqual((test["samples"], test["count_a"], test["count_b"]), ("trials", 12, 8))
        self.assertEqual(test["probability_a_better"], 0)  # RAISE parts them entirely
        self.assertLess(test["p"], 0.001)
        self.assertIn("other seeds", found["note"])
        text, _ = self.run_command("compare", "runs/low", "runs/high")
        for words in ("after 8 trials", "after 24 reports", "differing", "samples", "high has trials that are better"):
            self.assertIn(words, text)

    def test_what_trials_run_is_a_setting(self):
        self.sweep("low", "runs/low", 1)
        self.environment["RAISE"] = "0"
        file = self.write(SWEEP_OF.format(name="low", output="runs/other", seed=1, samples=4).replace("random_train.py]", "random_train.py, '--data=new set', '{lr}']"), "other.yaml")
        self.run_command("run", file, "--quiet")
        low, other = self.compared("runs/low", "runs/other")["experiments"]
        self.assertEqual(low["settings"], {"trial.command": "python3 random_train.py"})
        self.assertEqual(other["settings"]["trial.command"], "python3 random_train.py '--data=new set' '{lr}'")
        self.assertIn("trial.command", self.run_command("compare", "runs/low", "runs/other")[0])

    def test_all_trials_of_one_failed(self):
        self.sweep("low", "runs/low", 1, samples=12)
        file = self.write(SWEEP_OF.format(name="bad", output="runs/bad", seed=1, samples=12).replace("python3, random_train.py", "'false'"), "bad.yaml")
        self.run_command("run", file, "--quiet", code=1)
        text, _ = self.run_command("compare", "runs/low", "runs/bad")
        self.assertIn("there is nothing to compare: no trial of 'bad' has a result", text)
        for words in ("inf", "medians", "better", "probability"):
            self.assertNotIn(words, text.replace("info", ""))
        test, = self.compared("runs/low", "runs/bad")["tests"]
        self.assertEqual([test[key] for key in ("p", "median_a", "median_b", "probability_a_better")], [None] * 4)

    def test_repetitions_in_groups(self):
        for seed in range(4):
            self.sweep("old", f"runs/old/{seed}", seed, samples=2)
            self.sweep("new", f"runs/new/{seed}", seed, samples=2, raised="5")
        by_folder = self.compared("runs/old", "runs/new")
        test, = by_folder["tests"]
        self.assertEqual((test["a"], test["b"], test["samples"]), ("old", "new", "experiments"))
        self.assertAlmostEqual(test["p"], 2 / 70)
        self.assertIn("new is better than old", test["verdict"])
        named = self.compared("x=runs/old/0", "x=runs/old/1", "y=runs/new/0", "y=runs/new/1")
        self.assertEqual(named["tests"][0]["a"], "x")
        self.assertIn("too little data: with 2 and 2", named["tests"][0]["verdict"])
        everything = [f"runs/{name}/{seed}" for name in ("old", "new") for seed in range(4)]
        self.assertEqual(self.compared(*everything, "--by-name")["tests"], by_folder["tests"])
        three = self.compared("a=runs/old/0", "a=runs/old/1", "b=runs/new/0", "b=runs/new/1", "c=runs/old/2",
                              "c=runs/old/3")
        self.assertEqual(len(three["tests"]), 3)  # each pair, corrected for three
        for test in three["tests"]:
            self.assertGreaterEqual(test["p_holm"], test["p"])

    def test_what_cannot_be_compared(self):
        self.sweep("one", "runs/one", 1)
        for arguments, words in [
                (["runs/one"], "name two experiments"),
                (["runs/one", "runs/none"], "there is no experiment in 'runs/none'"),
                (["runs/one", "runs/one", "--metric", "loss"], "is no objective"),
                (["runs/one", "runs/one", "--metric", "loss", "--mode", "min"], "reported a metric 'loss'"),
                (["runs/one", "runs/one", "--at", "never"], "--at")]:
            _, err = self.run_command("compare", *arguments, code=2)
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
