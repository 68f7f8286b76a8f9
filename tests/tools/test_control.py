"""hypertune stop, pause, continue, add, list."""
import re

from support import *


class Control(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(PAUSE="0.05", STEPS="100000")
        self.write(SWEEP.replace("{type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3}", "fifo"))

    def started(self, *arguments):
        process = self.start("run", "sweep.yaml", *arguments)
        self.addCleanup(process.kill)
        wait_until(lambda: (self.folder / "runs/digits/experiment.db").exists() and len(self.steps_run()) > 4, "steps")
        return process

    def states(self):
        return [trial["state"] for trial in self.results()]

    def test_trials_are_stopped_paused_continued_and_added(self):
        process = self.started()
        out, _ = self.run_command("stop", "runs/digits", "0")
        self.assertEqual(out, "trial 0 is told to stop\n")
        wait_until(lambda: self.states()[0] == "stopped", "the end of trial 0")
        self.run_command("pause", "runs/digits", "1")
        wait_until(lambda: self.states()[1] == "paused", "the pause of trial 1")
        self.assertIn("trial 1 is paused by hand: it waits for `hypertune continue`\n",
                      self.run_command("status", "runs/digits")[0])
        out, _ = self.run_command("add", "runs/digits", "lr=0.01", "hidden=32")
        number = int(re.match(r"trial (\d+) is to try", out).group(1))
        self.assertEqual(self.results()[number]["params"], {"lr": 0.01, "hidden": 32})
        self.run_command("continue", "runs/digits", "1")
        _, err = self.run_command("stop", "runs/digits", "0", code=2)
        self.assertIn("trial 0 has ended already: it is stopped", err)
        _, err = self.run_command("add", "runs/digits", "lr=5", "hidden=32", code=2)
        self.assertIn("lr", err)
        _, err = self.run_command("add", "runs/digits", "lr", code=2)
        self.assertIn("NAME=VALUE", err)
        self.assertIn("running", self.run_command("list")[0])
        out, _ = self.run_command("stop", "runs/digits")
        self.assertIn("each trial leaves", out)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("stopped by the user", str(self.results()[0]["cause"]))
        for command in ("stop", "pause", "continue"):
            _, err = self.run_command(command, "runs/digits", code=2)
            self.assertIn("nobody runs the experiment", err)
        self.assert_nothing_left()

    def test_trials_added_beyond_the_samples_are_counted_as_planned(self):
        process = self.started("--set", "samples=2")
        wait_until(lambda: len(self.states()) == 2, "all samples")
        for lr in ("0.01", "0.02"):
            self.run_command("add", "runs/digits", "lr=" + lr, "hidden=32")
        for trial in range(4):
            self.run_command("stop", "runs/digits", str(trial))
        _, err = process.communicate(timeout=60)
        self.assertIn("done after", err)
        self.assertIn(": 4/4 trials: 4 stopped", err)
        status = json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])
        self.assertEqual((status["samples"], status["planned"]), (2, 4))
        one, = json.loads(self.run_command("list", "--format", "json")[0])
        self.assertEqual((one["samples"], one["planned"], one["ended"]), (2, 4, 4))
        self.assertIn("4/4", self.run_command("list")[0])

    def test_notes_are_taken_while_it_runs_and_after(self):
        process = self.started()
        out, _ = self.run_command("note", "runs/digits", "0", "note=rate too high", "keep", "layers=3")
        self.assertEqual(out, "trial 0: note=rate too high keep=true layers=3\n")
        self.run_command("note", "runs/digits", "dataset=v3")
        _, err = self.run_command("note", "runs/digits", "99", "keep", code=2)
        self.assertIn("there is no trial 99", err)
        _, err = self.run_command("note", "runs/digits", "0", code=2)
        self.assertIn("what is to be noted", err)
        self.run_command("stop", "--now", "runs/digits")
        process.communicate(timeout=60)
        before = json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])
        self.run_command("note", "runs/digits", "1", "note=later")
        self.run_command("note", "runs/digits", "1", "77", "good", code=2)  # all or none
        for none in "99999999999999999999", "-1", "+2":
            _, err = self.run_command("note", "runs/digits", "--", none, "t", code=2)
            self.assertEqual(err, f"hypertune: a trial's number is a whole number from 0, not '{none}'\n")
        for name in "stop", "pause", "continue":
            for none in "abc", "2x", "-1":
                _, err = self.run_command(name, "runs/digits", none, code=2)
                self.assertEqual(err, f"hypertune: a trial's number is a whole number from 0, not '{none}'\n")
        _, err = self.run_command("note", "runs/digits", "99", "keep", code=2)
        self.assertIn("there is no trial 99", err)
        after = json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])
        self.assertEqual(after["state"], before["state"])
        self.assertEqual(after["attributes"], {"dataset": "v3"})
        self.assertIn("dataset: v3", self.run_command("status", "runs/digits")[0])
        results = {trial["trial"]: trial for trial in self.results()}
        self.assertEqual(results[0]["attributes"], {"note": "rate too high", "keep": True, "layers": 3})
        self.assertEqual(results[1]["attributes"], {"note": "later"})
        header, first, *_ = self.run_command("results", "runs/digits", "--format", "csv")[0].splitlines()
        self.assertIn(",attributes_note,attributes_keep,attributes_layers,", header)
        self.assertIn(",rate too high,true,3,", first)
        self.run_command("note", "runs/nowhere", "keep", code=2)

    def test_the_whole_is_paused_and_continued(self):
        process = self.started()
        self.run_command("pause", "runs/digits")
        wait_until(lambda: self.states() == ["paused", "paused"], "the pause of all")
        self.assertIsNone(process.poll())
        out, _ = self.run_command("status", "runs/digits")
        self.assertIn("digits: paused (process", out)
        self.assertEqual(json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])["state"], "paused")
        self.assertRegex(self.run_command("list")[0], r"runs/digits +paused ")
        self.assertIn("trial 0 is paused by hand: it waits for `hypertune continue`\n", out)
        self.run_command("add", "runs/digits", "lr=0.01", "hidden=32")
        pending = "trial 2 is pending: the whole experiment is paused by hand: it waits for `hypertune continue`\n"
        wait_until(lambda: pending in self.run_command("status", "runs/digits")[0], pending)  # when its record is written
        waiting = json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])["waiting"]
        self.assertEqual([trial["trial"] for trial in waiting], [0, 1, 2])
        self.assertEqual(waiting[2]["why"], "the whole experiment is paused by hand: it waits for `hypertune continue`")
        before = len(self.steps_run())
        self.run_command("continue", "runs/digits")
        self.assertIn("digits: running (process", self.run_command("status", "runs/digits")[0])
        wait_until(lambda: len(self.steps_run()) > before + 2, "more steps")
        self.run_command("stop", "--now", "runs/digits")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assert_each_report_once()

    def test_a_driver_that_is_stopped_answers_later(self):
        """Whoever asks is told so, and what was asked is done when it goes on."""
        process = self.started()
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "the stop")
        try:
            _, err = self.run_command("pause", "runs/digits", code=3)
            self.assertRegex(err, rf"hypertune: the driver of 'runs/digits' \(process {process.pid} on .*\) is stopped: what was asked is done once it goes on \(kill -CONT {process.pid}\)\n")
            out, _ = self.run_command("status", "runs/digits")
            self.assertIn(f"digits: running (process {process.pid}): the driver's process is stopped: kill -CONT {process.pid} lets it go on\n", out)
            self.assertIn("is stopped", json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])["why"])
        finally:
            process.send_signal(signal.SIGCONT)
        wait_until(lambda: self.states() and all(state != "running" for state in self.states()), "the pause")
        self.assertNotIn("process is stopped", self.run_command("status", "runs/digits")[0])
        self.run_command("stop", "runs/digits", "--now")
        process.communicate(timeout=60)
        self.assert_nothing_left()

    def test_a_driver_that_was_killed_is_not_asked(self):
        process = self.started()
        self.run_command("pause", "runs/digits")
        wait_until(lambda: self.states() == ["paused", "paused"], "the pause of all")
        process.kill()
        process.communicate()
        self.assertIn("trial 0 is paused: no driver runs: go on with --resume --output runs/digits\n",
                      self.run_command("status", "runs/digits")[0])
        _, err = self.run_command("stop", "runs/digits", code=2)
        self.assertIn("nobody runs the experiment", err)
        _, err = self.run_command("stop", "runs/nowhere", code=2)
        self.assertIn("there is no experiment", err)

    def test_list(self):
        self.environment.update(PAUSE="0", STEPS="2")
        self.assertIn("no experiment", (self.folder / "runs").mkdir() or self.run_command("list")[0])
        self.run_command("run", "sweep.yaml")
        self.run_command("run", "sweep.yaml", "--output", "runs/group/second", "--set", "samples=2")
        (self.folder / "runs/third").mkdir()
        (self.folder / "runs/third/experiment.db").write_text("no database")
        out, _ = self.run_command("list")
        lines = out.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[1], r"runs/digits +ended +6/6 +accuracy=")
        self.assertRegex(lines[2], r"runs/group/second +ended +2/2 +accuracy=")
        self.assertRegex(lines[3], r"runs/third +unreadable")
        found = json.loads(self.run_command("list", "runs", "--format", "json")[0])
        self.assertEqual([e["folder"] for e in found], ["runs/digits", "runs/group/second", "runs/third"])
        self.assertEqual(found[1]["trials"], 2)
        self.assertIn("error", found[2])
        self.run_command("list", "nowhere", code=2)


if __name__ == "__main__":
    unittest.main()
