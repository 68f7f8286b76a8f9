"""Programs as they are: they buffer, exit with codes of their own, and give another result each time."""
from support import *

# Nothing is flushed: all reports leave the program in one write, at its end.
BUFFERED = r'''
import json, os
lr = json.loads(os.environ["HYPERTUNE_PARAMS"])["lr"]
for step in range(9):
    print(json.dumps({"step": step, "accuracy": (step + 1) * (1 + lr)}))
'''
SWEEP12 = SWEEP.replace("samples: 6", "samples: 12")
PBT = "{type: pbt, perturbation_interval: 2, max_steps: 8, quantile_fraction: 0.5}"
ASHA = "{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}"


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(PYTHONUNBUFFERED="")  # whatever the test's own environment says

    def states(self):
        return [(r["state"], r["steps"]) for r in self.results()]

    def test_a_program_that_has_ended_is_not_stopped(self):
        self.write(BUFFERED, "train.py")
        for i, more in enumerate(("ordered: true\n", "ordered: true\n" + THREADS,
                                  "ordered: true\nstop: {steps: 3}\n")):   # where the user says that a trial ends
            for schedule in (ASHA, ASHA.replace("}", ", promotion: true}"), "{type: hyperband, max_steps: 9}",
                             "{type: successive_halving, max_steps: 9}", "{type: median}", PBT)[:6 if i == 0 else 2]:
                with self.subTest(schedule=schedule, more=more):
                    shutil.rmtree(self.folder / "runs", ignore_errors=True)
                    self.run_command("run", self.write(SWEEP12.replace(ASHA, schedule) + more))
                    state, steps = ("stopped", 3) if "stop:" in more else ("completed", 8 if schedule == PBT else 9)  # its max_steps
                    self.assertEqual(self.states(), [(state, steps)] * 12)
                    for r in self.results():
                        self.assertEqual(r["best"]["step"], steps - 1)

    def test_one_that_prints_line_by_line_is_judged_by_each_in_an_ordered_run(self):
        self.write(BUFFERED.replace("}))", "}), flush=True)"), "train.py")
        seen = []
        for output in ("runs/a", "runs/b"):
            self.run_command("run", self.write(SWEEP12 + "ordered: true\n"), "--output", output)
            seen.append([(r["state"], r["steps"], r["params"]) for r in self.results(output)])
        self.assertEqual(seen[0], seen[1])
        self.assertIn("stopped", [state for state, _, _ in seen[0]])

    def test_a_resume_takes_what_was_recorded_of_a_program_that_had_ended(self):
        self.write(BUFFERED, "train.py")
        self.run_command("run", self.write(SWEEP12 + "ordered: true\n"), "--set", "samples=4")
        before = self.results(history=True)
        self.run_command("run", "sweep.yaml", "--resume")
        after = self.results(history=True)
        self.assertEqual(after[:4], before)
        self.assertEqual(self.states(), [("completed", 9)] * 12)

    def test_exit_codes_one_report_and_repeated_runs(self):
        # The value of a run is 100, and once in five 108.
        self.write('echo "value $((100 + ($HYPERTUNE_REPETITION == 3) * 8))"; echo "value 1"; exit 10\n', "solve.sh")
        sweep = SWEEP.replace("[python3, train.py]", '[bash, solve.sh]\n  metrics: {accuracy: "value ([0-9]+)"}\n'
                              "  success: [0, 10, 20]\n  report: best\n  repeat: {times: 5, use: median}")
        self.run_command("run", self.write(sweep))
        for r in self.results():
            self.assertEqual((r["state"], r["steps"], r["metrics"]["accuracy"]), ("completed", 1, 100))
            self.assertAlmostEqual(r["metrics"]["accuracy_std"], 3.5777, places=4)
        best = json.loads(self.run_command("best", "runs/digits", "--format", "json")[0])
        self.assertEqual(best["best"]["accuracy"], 100)

    def test_a_terminal_makes_a_program_print_line_by_line(self):
        self.write(BUFFERED, "train.py")
        sweep = SWEEP12.replace("[python3, train.py]", "[python3, train.py]\n  output: line")
        seen = []
        for output in ("runs/a", "runs/b"):
            self.run_command("run", self.write(sweep + "ordered: true\n"), "--output", output)
            seen.append([(r["state"], r["steps"]) for r in self.results(output)])
        self.assertEqual(seen[0], seen[1])
        self.assertIn("stopped", [state for state, _ in seen[0]])


if __name__ == "__main__":
    unittest.main()
