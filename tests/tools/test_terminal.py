"""Ctrl-C as a terminal sends it: to the whole foreground process group."""
import fcntl
import pty
import select
import shlex
import struct
import termios
import threading

from support import *

DEAF = r'''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("steps.log", "a").write(os.environ["HYPERTUNE_TRIAL"] + " 0\n")
time.sleep(1000)
'''


class Terminal:
    """A command in a terminal of its own; `shell`: with an interactive shell between them."""

    def __init__(self, case, *arguments, shell=False, columns=None):
        program = ["/bin/bash", "--norc", "--noprofile", "-i"] if shell else [HYPERTUNE, *arguments]
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            try:
                if columns:
                    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                os.chdir(case.folder)
                os.execve(program[0], program, case.environment)
            finally:
                os._exit(127)
        self.screen = b""
        self.end_reading, self.hung_up = os.pipe(), False
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        self.code = None
        case.addCleanup(self.close)
        if shell:
            os.write(self.descriptor, (shlex.join([HYPERTUNE, *arguments]) + "\n").encode())

    def read(self):
        while True:
            ready, _, _ = select.select([self.descriptor, self.end_reading[0]], [], [])
            if self.end_reading[0] in ready:
                return
            try:
                data = os.read(self.descriptor, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self.screen += data

    def press_ctrl_c(self):
        os.write(self.descriptor, b"\x03")

    def press_ctrl_c_twice(self):
        self.press_ctrl_c()
        wait_until(lambda: b"once more to leave now" in self.screen, "word of the first")  # at once, they are one signal
        self.press_ctrl_c()

    def hang_up(self):
        """Closes the terminal."""
        os.write(self.end_reading[1], b"x")
        self.reader.join(10)
        os.close(self.descriptor)
        self.hung_up = True

    def ended(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self, seconds=30):
        wait_until(self.ended, f"the end of the command; its screen: {self.screen[-2000:]}", seconds)
        self.reader.join(10)  # what it printed last may still be on its way
        return self.code

    def close(self):
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if not self.hung_up:
            self.hang_up()
        for end in self.end_reading:
            os.close(end)


class Narrow(Case):
    def test_lines_break_between_words_and_a_command_can_still_be_copied(self):
        self.environment.update(STEPS="2")
        self.write(SWEEP)
        self.run_command("run", "sweep.yaml", "--quiet")
        whole = self.run_command("best", "runs/digits")[0]
        terminal = Terminal(self, "best", "runs/digits", columns=40)
        self.assertEqual(terminal.wait(), 0)
        lines = terminal.screen.decode().splitlines()
        self.assertGreater(len(lines), 1)
        self.assertTrue(all(len(line) <= 40 for line in lines), lines)
        self.assertEqual(" ".join(lines).split(), whole.split())

        self.environment.update(PAUSE="0.05", STEPS="1000")
        terminal = Terminal(self, "run", "sweep.yaml", "--quiet", "--output", "runs/long", "--set", "schedule=fifo", "--set",
                            "stop={total_steps: 4000}", columns=60)
        wait_until(self.steps_run, "a step")
        before = len(self.steps_run())
        wait_until(lambda: len(self.steps_run()) > before, "a step")
        terminal.press_ctrl_c()
        self.assertEqual(terminal.wait(), 130)
        said = terminal.screen.decode().replace("\r", "")
        said = said[said.index("hypertune: interrupted, all"):]
        self.assertTrue(all(len(line) <= 60 for line in said.splitlines()), said)
        command = said[said.index("hypertune run"):]
        words = subprocess.run(["sh", "-c", "hypertune() { printf '%s\\n' \"$@\"; }\n" + command], capture_output=True, text=True).stdout
        self.assertEqual(words.splitlines(), ["run", "sweep.yaml", "--resume", "--output", "runs/long", "--set", "schedule=fifo",
                                              "--set", "stop={total_steps: 4000}"])


class CtrlC(Case):
    sweep = SWEEP

    def go(self, *arguments, text=None, steps=6):
        self.write(text or self.sweep)
        terminal = Terminal(self, "run", "sweep.yaml", *arguments)
        wait_until(lambda: len(self.steps_run()) >= steps or terminal.ended(), "some steps")
        self.assertFalse(terminal.ended(), terminal.screen)
        return terminal

    def assert_no_trial_heard_it(self):
        for log in (self.folder / "runs/digits/trials").glob("*/log"):
            self.assertNotIn("KeyboardInterrupt", log.read_text())

    def test_once_saves_all_and_a_resume_goes_on(self):
        self.environment.update(PAUSE="0.05")
        terminal = self.go()
        terminal.press_ctrl_c()
        self.assertEqual(terminal.wait(), 130)
        self.assertIn(b"--resume", terminal.screen)
        self.assert_nothing_left()
        self.assert_no_trial_heard_it()
        done = set(self.steps_run())
        self.assertEqual(len(done), len(self.steps_run()))
        saved = {r["trial"]: r["steps"] for r in self.results()}
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml", "--resume")
        results = self.results()
        self.assertEqual(len(results), 6)
        self.assertTrue(all(r["state"] in ("completed", "stopped") and r["failures"] == 0 for r in results), results)
        for trial, step in done:  # what was recorded when it left was not done again
            if step < saved[trial]:
                self.assertEqual(self.steps_run().count((trial, step)), 1, (trial, step))
        self.assert_each_report_once()

    def test_a_closed_terminal_saves_all_and_a_resume_goes_on(self):
        self.environment.update(PAUSE="0.05")
        terminal = self.go()
        terminal.hang_up()
        self.assertEqual(terminal.wait(), 130)
        self.assert_nothing_left()
        self.assertIn("interrupted", self.run_command("status", "runs/digits")[0])
        self.assertTrue(all(r["failures"] == 0 for r in self.results()), self.results())
        self.environment.update(PAUSE="0")
        self.run_command("run", "sweep.yaml", "--resume")
        self.assertTrue(all(r["state"] in ("completed", "stopped") and r["failures"] == 0 for r in self.results()), self.results())
        self.assert_each_report_once()

    def test_under_nohup_it_goes_on(self):
        self.environment.update(PAUSE="0.05")
        self.write(self.sweep)
        process = self.start("run", "sweep.yaml", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wait_until(lambda: len(self.steps_run()) >= 4, "some steps")
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertNotIn("interrupted", err)
        self.assertEqual(len(self.results()), 6)

    def test_twice_leaves_at_once(self):
        self.environment.update(PAUSE="0.05")
        self.write((self.folder / "train.py").read_text().replace("time.sleep(pause)", "time.sleep(pause if step < 2 else 1000)"), "train.py")
        terminal = self.go(text=self.sweep.replace("type: asha, grace_period: 1, max_steps: 9, reduction_factor: 3", "type: fifo"), steps=4)
        terminal.press_ctrl_c_twice()
        self.assertEqual(terminal.wait(), 130)   # its trials would take a thousand seconds
        self.assert_nothing_left()
        self.assert_no_trial_heard_it()
        self.assertTrue(all(r["state"] in ("pending", "running") and r["steps"] <= 2 for r in self.results()), self.results())

    def test_twice_leaves_even_trials_that_are_deaf(self):
        self.write(DEAF, "deaf.py")
        terminal = self.go(text=self.sweep.replace("[python3, train.py]", "[python3, deaf.py]\n  stop_grace: 1000s"), steps=2)
        terminal.press_ctrl_c_twice()
        began = time.monotonic()
        self.assertEqual(terminal.wait(), 130)
        self.assertLess(time.monotonic() - began, 100)   # the trial's grace is 1,000 s
        self.assertIn(b"resume", terminal.screen.split(b"once more to leave now")[-1])
        self.assert_nothing_left()
        self.assertIn("interrupted", self.run_command("status", "runs/digits")[0])
        self.assertTrue(all(r["state"] == "pending" and r["failures"] == 0 for r in self.results()), self.results())


class ClosedShell(Case):
    def test_the_steps_under_way_are_waited_for(self):
        """The kernel and an interactive shell both send a SIGHUP, and sooner than anything could be saved."""
        trainer = (self.folder / "train.py").read_text()
        step_begins = "    quality = "
        self.write(trainer.replace(step_begins, "    time.sleep(1)\n" + step_begins), "train.py")
        self.write(SWEEP)
        self.environment.pop("HISTFILE", None)
        terminal = Terminal(self, "run", "sweep.yaml", shell=True)
        wait_until(lambda: len(self.steps_run()) >= 2 or terminal.ended(), "a step of each of two")
        self.assertFalse(terminal.ended(), terminal.screen)
        begun = self.steps_run()
        terminal.hang_up()
        terminal.wait()
        self.assert_nothing_left()
        self.assertIn("interrupted", self.run_command("status", "runs/digits")[0])
        reported = {r["trial"]: r["steps"] for r in self.results()}
        self.assertTrue(all(step < reported[trial] for trial, step in begun), (reported, begun))


class CtrlCUnderThreads(CtrlC):
    """The same, with the commands started by threads of the driver."""
    sweep = SWEEP + THREADS


if __name__ == "__main__":
    unittest.main()
