"""Sweeps that are interrupted, killed, and sabotaged."""
import resource
import re

from support import *


class Faults(Case):
    sweep = SWEEP

    def go(self, more="", *arguments):
        self.environment.update(PAUSE="0.05", STEPS="9")
        process = self.start("run", self.write(self.sweep + more), *arguments)
        wait_until(lambda: len(self.steps_run()) >= 6 or process.poll() is not None, "some steps")
        self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
        return process

    def finish_sweep(self, total=6):
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml", "--resume")
        results = self.results()
        self.assertEqual(len(results), total)
        self.assertTrue(all(r["state"] in ("completed", "stopped") for r in results), results)
        self.assert_each_report_once()
        self.assert_nothing_left()

    def assert_no_step_redone_but_in_flight(self, allowed):
        steps = self.steps_run()
        self.assertLessEqual(len(steps) - len(set(steps)), allowed, steps)

    def test_interrupt_saves_and_resumes(self):
        process = self.go()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("--resume", err)
        self.assert_nothing_left()
        self.finish_sweep()
        self.assert_no_step_redone_but_in_flight(4)

    def test_ctrl_c_reaches_the_whole_process_group(self):
        process = self.go()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.finish_sweep()

    def test_kill_9_of_the_driver(self):
        for _ in range(3):
            if not (self.folder / "runs").exists():
                process = self.go()
            else:
                seen = len(self.steps_run())
                process = self.start("run", "sweep.yaml", "--resume")
                wait_until(lambda: len(self.steps_run()) >= seen + 3 or process.poll() is not None, "more steps")
            process.kill()
            process.communicate()
            self.assert_nothing_left()
        self.finish_sweep()
        self.assert_no_step_redone_but_in_flight(3 * 4)

    def test_a_resume_right_after_a_kill_9_finds_the_folder_free(self):
        self.environment.update(PAUSE="0.02", STEPS="1000000", EVERY="0")
        text = self.sweep.replace("type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3", "type: fifo")
        process = self.start("run", self.write(text))
        for i in range(20):
            seen = len(self.steps_run())
            wait_until(lambda: len(self.steps_run()) > seen + i or process.poll() is not None, "more steps")
            self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
            process.kill()
            process.wait()  # and no longer: its workers may still be there
            killed, process = process, self.start("run", "sweep.yaml", "--resume")
            killed.communicate()
        process.kill()
        process.communicate()
        self.assert_nothing_left()

    def test_kill_9_of_a_trial(self):
        process = self.go("failures: {max_retries: 3}\n")
        # Between two trials there may be none for a moment, or one that is just being started.
        trainers = lambda: [pid for pid, command in self.processes_in_folder() if re.match(r"(\S*/)?python3 train\.py", command)]
        victims = []
        wait_until(lambda: victims.extend(trainers()) or victims or process.poll() is not None, "a trainer that runs")
        self.assertTrue(victims, self.processes_in_folder())
        os.kill(victims[0], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        results = self.results()
        self.assertEqual(sum(r["failures"] for r in results), 1)
        self.assertTrue(all(r["state"] in ("completed", "stopped") for r in results))
        self.assert_each_report_once()
        self.assert_no_step_redone_but_in_flight(2)

    def test_a_driver_that_was_stopped_for_long_takes_no_trial_for_hung(self):
        process = self.go("hang_timeout: 10s\n")  # a step takes more than a second on a busy machine
        for _ in range(2):
            process.send_signal(signal.SIGSTOP)  # its trainers go on
            begin = time.monotonic()
            wait_until(lambda: time.monotonic() > begin + 10.5, "the hang limit")
            process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual([r["failures"] for r in self.results()], [0] * 6, err)

    def test_rules_on_the_log(self):
        self.write("import sys\nprint('invalid config', flush=True)\nsys.exit(1)\n", "bad.py")
        text = self.sweep.replace("train.py", "bad.py") + 'failures: {max_retries: 5, log: [{match: "invalid config", do: no_retry}]}\n'
        self.run_command("run", self.write(text), code=1)
        self.assertTrue(all(r["failures"] <= 1 for r in self.results()))

    def test_a_resumption_that_names_no_folder_goes_on_with_the_last_experiment_that_has_not_ended(self):
        self.sweep = re.sub("^output:.*\n", "", self.sweep, flags=re.M)
        process = self.go()
        process.kill()
        process.communicate()
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml")
        self.assertIn("go on with --resume --output runs/digits", self.run_command("status", "runs/digits")[0])
        _, err = self.run_command("run", "sweep.yaml", "--resume")
        self.assertIn("goes on with 'runs/digits', the last experiment of that name that has not ended;", err)
        for folder in ("runs/digits", "runs/digits-2"):
            self.assertTrue(all(r["state"] in ("completed", "stopped") for r in self.results(folder)), folder)
        _, err = self.run_command("run", "sweep.yaml", "--resume", "--samples", "+1")
        self.assertIn("goes on with 'runs/digits-2', the last experiment of that name;", err)
        self.assertEqual(len(self.results("runs/digits-2")), len(self.results("runs/digits")) + 1)

    def test_drivers_of_one_name_that_start_together_have_a_folder_each(self):
        self.sweep = re.sub("^output:.*\n", "", self.sweep, flags=re.M)
        self.write(self.sweep)
        self.environment.update(PAUSE="0", STEPS="3")
        drivers = [self.start("run", "sweep.yaml", "--samples", "2") for _ in range(5)]
        for driver in drivers:
            _, err = driver.communicate(timeout=60)
            self.assertEqual(driver.returncode, 0, err)
        self.assertEqual(sorted(path.name for path in (self.folder / "runs").iterdir()),
                         ["digits", "digits-2", "digits-3", "digits-4", "digits-5"])

    def test_a_checkpoint_whose_name_is_reported_again_before_it_is_taken_is_not_used(self):
        self.write("""
import json, os, pathlib
folder = pathlib.Path(os.environ["HYPERTUNE_CHECKPOINT"]) / "last"
folder.mkdir()
lines = []
for step in range(3):
    (folder / "state").write_text(str(step))
    lines.append(json.dumps({"step": step, "accuracy": step / 30, "checkpoint": "last"}) + "\\n")
os.write(1, "".join(lines).encode())  # hypertune sees the first of them when the state is of the last
""", "again.py")
        text = re.sub("schedule:.*", "schedule: fifo\ncheckpoint: {keep: 1000}", self.sweep.replace("train.py", "again.py"))
        _, err = self.run_command("run", self.write(text), "--samples", "1")
        self.assertIn("use a new name each time", err)
        kept, = self.folder.glob("runs/digits/trials/0/checkpoints/*/state")
        self.assertEqual((kept.parent.name, kept.read_text()), ("step-3", "2"))

    def test_an_output_folder_that_the_system_refuses(self):
        _, err = self.run_command("run", self.write(self.sweep), "--output", "/sys/none/experiment", code=1)
        self.assertRegex(err, "cannot make the folder '/sys/none/experiment': .*([Pp]ermi|[Rr]ead-only)")

    def test_without_standard_descriptors(self):
        self.environment.update(PAUSE="0", STEPS="3")
        self.write(self.sweep)
        for closed in "2>&-", "<&- >&- 2>&-":
            shutil.rmtree(self.folder / "runs", ignore_errors=True)
            done = subprocess.run(["sh", "-c", f'exec "$0" run sweep.yaml {closed}', HYPERTUNE], cwd=self.folder,
                                  env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)
            self.assertEqual(done.returncode, 0)
            self.assertEqual([r["failures"] for r in self.results()], [0] * 6)

    def test_a_second_driver_is_refused(self):
        process = self.go()
        _, err = self.run_command("run", "sweep.yaml", "--resume", code=2)
        self.assertIn(str(process.pid), err)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.finish_sweep()

    def test_a_folder_that_is_moved_away_is_said_at_once_and_goes_on_there(self):
        process = self.go()
        (self.folder / "runs/digits").rename(self.folder / "elsewhere")
        out, err = process.communicate(timeout=30)  # by itself
        self.assertEqual(process.returncode, 1, out + err)
        self.assertIn(f"was moved to '{self.folder}/elsewhere'", err)
        self.assertNotIn("all is saved", err)
        self.assert_nothing_left()
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml", "--resume", "--output", "elsewhere")
        self.assertTrue(all(r["state"] in ("completed", "stopped") for r in self.results("elsewhere")))
        self.assert_each_report_once("elsewhere")

    def test_a_journal_that_is_removed_is_written_anew(self):
        process = self.go()
        # The database last: the driver notices that at once, and then removes or writes the others itself.
        for file in sorted((self.folder / "runs/digits").glob("experiment.db*"), reverse=True):
            file.unlink()
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("was removed while it ran: all that was recorded was written to", err)
        self.finish_sweep()

    def test_a_folder_that_is_removed_is_said_at_once(self):
        process = self.go()
        shutil.rmtree(self.folder / "runs", ignore_errors=True)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("was removed while it ran", err)
        self.assert_nothing_left()
        self.results()

    def test_a_trainer_that_leaves_children_behind(self):
        self.write("import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('{\"accuracy\": 1}', flush=True)\n", "leaves.py")
        self.run_command("run", self.write(self.sweep.replace("train.py", "leaves.py")))
        self.assert_nothing_left()

    def test_a_trainer_that_hangs(self):
        self.write("import time\nprint('{\"accuracy\": 1}', flush=True)\ntime.sleep(1000)\n", "hangs.py")
        self.run_command("run", self.write(self.sweep.replace("train.py", "hangs.py") + "hang_timeout: 1s\n"), "--set", "samples=2", code=1, timeout=60)
        self.assertIn("hung", str(self.results()[0]["cause"]))
        self.assert_nothing_left()


class FaultsUnderThreads(Faults):
    """The same, with the commands started by threads of the driver."""
    sweep = SWEEP + THREADS


class LastWord(Case):
    def test_a_driver_that_failed_is_not_said_to_be_killed(self):
        # A disk that takes no more, for the driver alone: SIGXFSZ is ignored, so that a longer file is an error.
        def full_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.write("import json, os\nfor step in range(2000):\n    print(json.dumps({'step': step, 'accuracy': step, "
                   "**{f'm{i}': i / 7 for i in range(20)}}), flush=True)\n", "long.py")
        text = SWEEP.replace("train.py", "long.py").replace("max_steps: 9", "max_steps: 5000")
        process = self.start("run", self.write(text), restore_signals=False, preexec_fn=full_disk)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, err)
        status = self.run_command("status", "runs/digits")[0]
        self.assertIn("digits: failed: ", status)
        self.assertIn("its driver ended with that error: go on with --resume", status)
        self.assertNotIn("killed", status)
        said = json.loads(self.run_command("status", "runs/digits", "--format", "json")[0])
        self.assertEqual(said["state"], "failed")
        self.assertIn(said["why"], err)
        # One that is killed says nothing, also after one that did.
        process = self.start("run", "sweep.yaml", "--resume", "--set", "trial.command=[sleep, '100']")
        wait_until(lambda: "running" in self.run_command("status", "runs/digits")[0], "the driver")
        process.kill()
        process.communicate()
        self.assertIn("its driver was killed", self.run_command("status", "runs/digits")[0])


if __name__ == "__main__":
    unittest.main()
