"""What --resume makes of a sweep that has changed: docs/resume.md has a row for each key."""
import re
import shlex
import sqlite3

from support import *


class ResumeChanged(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(STEPS="3")
        self.text = SWEEP.replace("{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}", "fifo")
        self.write(self.text)

    def resume(self, *arguments, code=0, **changes):
        for key, value in changes.items():
            arguments += ("--set", f"{key}={value}")
        return self.run_command("run", "sweep.yaml", "--resume", "--quiet", *arguments, code=code)

    def names(self):
        db = sqlite3.connect(self.folder / "runs/digits/experiment.db")
        self.addCleanup(db.close)
        return [text for (text,) in db.execute("SELECT text FROM events WHERE event = 'experiment started' ORDER BY sequence")]

    def test_start_with_and_known(self):
        self.run_command("run", "sweep.yaml", "--quiet")
        _, err = self.resume(start_with="[{lr: 0.01, hidden: 32}]")
        self.assertIn("1 too few for the configurations of start_with", err)
        self.assertEqual(self.results()[6]["params"], {"lr": 0.01, "hidden": 32})
        self.resume(known="[{params: {lr: 0.02, hidden: 64}, metrics: {accuracy: 0.99}}]")
        self.assertEqual(self.results()[7]["metrics"], {"accuracy": 0.99})
        self.assertEqual(len(self.results()), 8)

    def test_fewer_samples(self):
        self.run_command("run", "sweep.yaml", "--quiet")
        _, err = self.run_command("run", "sweep.yaml", "--resume", "--plain", "--samples", "8")
        _, err = self.run_command("run", "sweep.yaml", "--resume", "--plain")
        self.assertIn("8 samples were asked for before, 6 by the file: it goes on to 8", err)
        _, err = self.resume("--samples", "5")
        self.assertIn("there are 8 trials, more than the 5 samples asked for now", err)

    def test_what_the_file_does_not_say_is_as_before(self):
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "seed=7")
        self.write(self.text.replace("seed: 1\n", "").replace("name: digits\n", ""), "sweep.yaml")
        _, err = self.resume()
        self.assertEqual(err, "")
        self.assertEqual(self.names(), ["digits", "digits"])
        self.resume(name="other")
        self.assertEqual(self.names(), ["digits", "digits", "other"])
        self.assertIn("other: ended", self.run_command("status", "runs/digits")[0])
        _, err = self.resume(seed=8)
        self.assertIn("the seed was 7 and is 8 now", err)

    def test_the_objective_stays(self):
        self.run_command("run", "sweep.yaml", "--quiet")
        _, err = self.resume(mode="min", code=2)
        self.assertIn("tunes accuracy (max), not accuracy (min)", err)
        _, err = self.resume(metric="loss", code=2)
        self.assertIn("tunes accuracy (max), not loss (max)", err)

    def test_failed_trials_are_tried_again(self):
        self.write("import os, pathlib, sys\nif not pathlib.Path('mended').exists() and os.environ['HYPERTUNE_TRIAL'] in '024': sys.exit(3)\n"
                   "print('{\"accuracy\": 0.5}')\n", "train.py")
        self.run_command("run", "sweep.yaml", "--quiet")
        self.assertEqual([t["state"] == "failed" for t in self.results()], [True, False] * 3)
        (self.folder / "mended").write_text("")
        self.resume()
        self.assertEqual([t["state"] == "failed" for t in self.results()], [True, False] * 3)
        _, err = self.resume("--retry-failed", failures="{max_trials: 2}")
        self.assertIn("3 trials that failed are tried again", err)
        self.assertEqual({t["state"] for t in self.results()}, {"completed"})
        self.run_command("run", "sweep.yaml", "--retry-failed", code=2)

    def test_too_many_have_failed_already(self):
        self.write("import sys; sys.exit(3)", "train.py")
        self.run_command("run", "sweep.yaml", "--quiet", code=1)
        _, err = self.resume(failures="{max_trials: 2}", code=2)
        self.assertIn("6 trials of 'runs/digits' have failed, and 2 may", err)
        self.assertIn("--retry-failed", err)

    def test_a_longer_stop_condition(self):
        self.environment.update(STEPS="100")
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "stop={steps: 2}")
        self.assertEqual({t["steps"] for t in self.results()}, {2})
        self.resume(stop="{steps: 4}")
        self.assertEqual({t["steps"] for t in self.results()}, {4})
        self.assert_each_report_once()

    def test_another_search_or_schedule_is_said(self):
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "samples=2")
        _, err = self.resume("--samples", "3", search="tpe")
        self.assertEqual(err, "hypertune: the search was auto: gp and is tpe now\n")
        _, err = self.resume("--samples", "4", search="tpe", schedule="{type: median}")
        self.assertEqual(err, "hypertune: the schedule was fifo and is median now\n")
        _, err = self.resume("--samples", "5", search="tpe", schedule="{type: median, grace_period: 2}")
        self.assertEqual(err, "")
        self.assertEqual(len(self.results()), 5)

    def test_what_an_interrupted_run_says_goes_on_as_it_was(self):
        self.environment.update(PAUSE="0.1", STEPS="1000")
        process = self.start("run", "sweep.yaml", "--quiet", "--samples", "4", "--executor", "local", "--output", "runs/a b",
                             "--set", "schedule={type: hyperband, max_steps: 9}", "--set", "seed=7", "--set", "name=it's")
        self.addCleanup(process.kill)
        wait_until(lambda: self.steps_run(), "a step")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        hint = err.split("go on with: hypertune ")[1].strip()
        self.assertEqual(hint, "run sweep.yaml --resume --output 'runs/a b' --executor local --samples 4 "
                         "--set 'schedule={type: hyperband, max_steps: 9}' --set seed=7 --set 'name=it'\\''s'")
        self.environment.update(PAUSE="0")
        _, err = self.run_command(*shlex.split(hint), "--quiet")
        self.assertEqual(err, "")
        self.assertEqual(len(self.results("runs/a b")), 4)
        self.assertEqual(json.loads(self.run_command("status", "runs/a b", "--format", "json")[0])["schedule"], "hyperband")

    def test_what_status_says_goes_on_as_it_was(self):
        self.environment.update(PAUSE="0.1", STEPS="1000")
        process = self.start("run", "sweep.yaml", "--quiet", "--samples", "4", "--set", "search=random")
        self.addCleanup(process.kill)
        wait_until(lambda: self.steps_run(), "a step")
        process.kill()
        process.wait()
        out, _ = self.run_command("status", "runs/digits")
        hint = re.search(r"its driver was killed: go on with (.*)", out).group(1)
        self.assertEqual(hint, "--resume --output runs/digits --samples 4 --set search=random")
        self.environment.update(PAUSE="0", STEPS="1")
        self.run_command("run", "sweep.yaml", *shlex.split(hint), "--quiet")
        self.assertEqual(len(self.results()), 4)
        self.run_command("run", "sweep.yaml", "--resume", "--quiet")  # the options were not given: they do not stay
        self.assertFalse((self.folder / "runs/digits/resume-options").exists())

    def test_nobody_is_told_to_resume_what_a_job_of_kubernetes_goes_on_with(self):
        if "was built" in self.run_command("attach", "--kubernetes", "sweep.yaml", code=2)[1]:
            self.skipTest("this command was built without Kubernetes")
        self.environment.update(PAUSE="0.1", STEPS="1000", HYPERTUNE_DRIVER_JOB="away")
        process = self.start("run", "sweep.yaml", "--quiet", "--set", "samples=2", "--output", "runs/away")
        self.addCleanup(process.kill)
        wait_until(lambda: self.steps_run(), "a step")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("hypertune: interrupted, all is saved; the job goes on with it, unless it was ended\n", err)
        self.assertNotIn("--resume", err)
        del self.environment["HYPERTUNE_DRIVER_JOB"]
        self.environment["HYPERTUNE_BESIDE_DRIVER"] = "1"
        out, _ = self.run_command("status", "runs/away")
        self.assertIn("its job goes on with it; where that has ended, `hypertune submit --kubernetes` does", out)
        self.assertNotIn("--resume", out)

    def test_what_concerns_only_what_is_to_come(self):
        self.run_command("run", "sweep.yaml", "--quiet", "--set", "samples=2")
        for more, (key, value) in enumerate({
                "resources": "{cpus: 0.5}", "concurrency": 1,
                "checkpoint": "{every: 2, keep: 2}", "failures": "{max_retries: 2}", "hang_timeout": "60", "interrupt_grace": "5",
                "ordered": "true", "executor": "{type: local, isolation: thread}", "trial.environment": "{A: b}",
                "trial.stop_grace": "3", "constraints": "{accuracy: {at_most: 2}}"}.items()):
            _, err = self.resume("--samples", str(3 + more), **{key: value})
            self.assertEqual(err, "", key)
            self.assertEqual(len(self.results()), 3 + more, key)

    def spaced(self, space, trainer="print('{\"accuracy\": 1}')\n"):
        self.write(trainer, "train.py")
        before = self.text[self.text.index("space:"):self.text.index("metric:")]
        self.write(self.text.replace(before, f"space:\n{space}"))

    def test_a_condition_a_constraint_or_a_formula_has_changed(self):
        space = "  o: {{choice: [a, b]}}\n  m: {{uniform: [0, 1], when: {{o: {when}}}}}\n  n: {{integer: [1, 9]}}\n  w: {{derived: {formula}}}\n  constraints: [{rules}]\n"
        now = dict(when="a", formula="2 * n", rules='"n <= 8"')
        self.spaced(space.format(**now))
        self.run_command("run", "sweep.yaml", "--quiet", "--samples", "12")
        _, err = self.resume("--samples", "12")
        self.assertEqual(err, "")
        fitting = {"when": 0, "formula": 0, "rules": sum(trial["params"]["n"] <= 3 for trial in self.results())}
        told = {"when": "hypertune: the search space: m was {uniform: [0, 1], when: {o: a}} and is {uniform: [0, 1], when: {o: b}} now\n",
                "formula": 'hypertune: the search space: w was {derived: "2 * n"} and is {derived: "2 * n + 1"} now\n',
                "rules": 'hypertune: the search space: the constraint "n <= 8" is gone\nhypertune: the search space: the constraint "n <= 3" is new\n'}
        why = {"when": "its condition does not hold", "formula": "but it is derived, and", "rules": "violates the constraint 'n <= 3'"}
        self.assertLess(fitting["rules"], 12)
        shutil.copytree(self.folder / "runs/digits", self.folder / "before")
        for part, change in (("when", "b"), ("formula", "2 * n + 1"), ("rules", '"n <= 3"')):
            shutil.rmtree(self.folder / "runs/digits")
            shutil.copytree(self.folder / "before", self.folder / "runs/digits")
            self.spaced(space.format(**{**now, part: change}))
            _, err = self.resume("--samples", "12")
            self.assertTrue(err.startswith(told[part]), err)
            if part == "when":  # those of o = b lack m, those of o = a have it
                self.assertIn("12 of 12 trials do not fit it and teach nothing (", err)
            else:
                self.assertIn(f"{12 - fitting[part]} of 12 trials do not fit it and teach nothing (", err)
                self.assertIn(why[part], err)
            self.assertEqual(self.resume("--samples", "12")[1].count("the search space:"), 0)  # said when it changes
            self.write(self.text[self.text.index("name:"):self.text.index("space:")].replace("runs/digits", "runs/new") +
                       "space:\n" + space.format(**{**now, part: change}) +
                       "metric: accuracy\nmode: max\nsamples: 1\nsearch: {type: random, warm_start: [before]}\noutput: runs/new\n", "warm.yaml")
            shutil.rmtree(self.folder / "runs/new", ignore_errors=True)
            _, err = self.run_command("run", "warm.yaml", "--plain", code=2 if fitting[part] == 0 else 0)
            self.assertIn(f"{12 - fitting[part]} do not fit this space: " if fitting[part] else "none of its 12 trials fits this space", err)

    def test_an_unfinished_trial_of_a_changed_space_ends(self):
        self.spaced("  n: {grid: [1, 2]}\n", "import os, time\nwhile True:\n    print('{\"accuracy\": 1}', flush=True)\n    if os.path.exists('enough'): break\n    time.sleep(0.05)\n")
        process = self.start("run", "sweep.yaml", "--quiet")
        self.addCleanup(process.kill)
        wait_until(lambda: all((self.folder / f"runs/digits/trials/{n}/log").exists() for n in (0, 1)), "two trials")
        wait_until(lambda: len(self.results()) == 2, "their records")
        process.kill()
        process.communicate()
        self.assertEqual(len(self.results()), 2)
        self.spaced("  n: {grid: [1, 2]}\n  constraints: [n < 2]\n", (self.folder / "train.py").read_text())
        self.write("", "enough")
        _, err = self.resume()
        self.assertIn("1 of 2 trials do not fit it and teach nothing (the configuration n=2 violates the constraint 'n < 2')", err)
        self.assertEqual([(trial["state"], trial["cause"]) for trial in self.results()[:2]],
                         [("completed", None), ("stopped", "the search space has changed")])


if __name__ == "__main__":
    unittest.main()
