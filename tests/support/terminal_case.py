"""A command at a terminal of its own, for test cases that have a `folder` and an `environment`."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class TerminalCase:
    ROWS, COLUMNS = 33, 101

    def at_a_terminal(self, *command):
        """The process, and the terminal's other end."""
        ours, its = pty.openpty()

        def take_it():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", self.ROWS, self.COLUMNS, 0, 0))
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=its, stdout=its, stderr=its,
                                   preexec_fn=take_it)
        os.close(its)
        self.addCleanup(os.close, ours)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, ours

    def read_until(self, terminal, text, seconds=60):
        seen, end = "", time.monotonic() + seconds
        while text not in seen:
            self.assertTrue(select.select([terminal], [], [], max(0, end - time.monotonic()))[0], f"no {text!r} in {seen!r}")
            try:
                seen += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                self.fail(f"the terminal was closed before {text!r}: {seen!r}")
        return seen
