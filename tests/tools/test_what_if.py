"""hypertune what-if: an experiment played again under another schedule, or with other workers."""
import re

from support import *


class WhatIf(Case):
    def setUp(self):
        super().setUp()
        self.run_command("run", self.write(SWEEP + "ordered: true\n"), "--set", "samples=12")   # quick trials: their ends must not decide

    def played(self, *arguments):
        return json.loads(self.run_command("what-if", "runs/digits", "--format", "json", *arguments)[0])

    def test_the_recorded_schedule_is_known_and_gives_what_it_gave(self):
        results = self.results()
        before = sorted(p for p in (self.folder / "runs").rglob("*") if not p.name.startswith("experiment.db-"))
        document = self.played("--workers", "1")
        self.assertEqual(document["metric"], "accuracy")
        self.assertEqual(document["mode"], "max")
        self.assertEqual(document["recorded"]["best"], max(r["best"]["accuracy"] for r in results))
        self.assertEqual(document["recorded"]["steps"], sum(r["steps"] for r in results))
        (played,) = document["played"]
        self.assertEqual(played["workers"], 1)
        self.assertIn("reduction_factor: 3", played["schedule"])
        self.assertLessEqual(played["stands_still"]["best"], played["best"]["best"])
        after = sorted(p for p in (self.folder / "runs").rglob("*") if not p.name.startswith("experiment.db-"))
        self.assertEqual(before, after)

    def test_another_schedule_and_several_numbers_of_workers(self):
        document = self.played("--set", "schedule={type: fifo, max_steps: 9}", "--workers", "1,12")
        one, many = document["played"]
        self.assertEqual((one["workers"], many["workers"]), (1, 12))
        self.assertLess(many["usual"]["elapsed"], one["usual"]["elapsed"])
        self.assertGreater(one["usual"]["unknown_steps"], 0)
        self.assertEqual(one["usual"]["steps"], 12 * 9)
        table, _ = self.run_command("what-if", "runs/digits", "--set", "schedule.reduction_factor=2", "--workers", "1,12")
        self.assertIn("best accuracy", table)
        self.assertIn("asha (grace_period: 1, max_steps: 9, reduction_factor: 2", table)
        self.assertIn("beyond", table)
        busy = re.search(r"^recorded +\d+ +12 +\d+ +([\d.]+) s", table, re.M)
        self.assertTrue(busy, table)
        self.assertGreater(float(busy.group(1)), 0, "what took parts of a second is no 0 s")

    def test_what_cannot_be_is_said_in_one_line(self):
        for arguments, words in (
            (("--set", "samples=3"), "what-if changes the schedule (--set schedule.KEY=VALUE), --workers and --shuffled"),
            (("--set", "schedule.max_steps=1000000"), "no trial of the record has more than 9 steps"),
            (("--set", "schedule.reduction=3"), "reduction_factor"),
            (("--set", "schedule={type: pbt}"), "never recorded"),
            (("--workers", "0"), "--workers"),
        ):
            _, err = self.run_command("what-if", "runs/digits", *arguments, code=2)
            self.assertIn(words, err)
            self.assertEqual(len(err.strip().splitlines()), 1)
        self.assertIn("there is no experiment", self.run_command("what-if", "nowhere", code=2)[1])
