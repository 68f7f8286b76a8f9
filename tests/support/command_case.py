"""What the tests of the command share: a folder, and runs of `hypertune` in it."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

HYPERTUNE = os.environ.get("HYPERTUNE", "hypertune")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def wait_until(condition, what, seconds=90):
    """Polls a condition of another process; a bound, not a delay."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetched(port):
    """What a server at this port of loopback answers; "" if there is none."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
            return answer.read().decode()
    except (OSError, http.client.HTTPException):
        return ""


class CommandCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ)

    def start(self, *arguments, **options):
        return subprocess.Popen([HYPERTUNE, *map(str, arguments)], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def finish(self, process, timeout=120):
        try:
            return process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"{process.args} hangs: {process.communicate()}")

    def run_command(self, *arguments, code=0, timeout=120):
        process = self.start(*arguments)
        out, err = self.finish(process, timeout)
        self.assertEqual(process.returncode, code, f"{arguments}\n{out}\n{err}")
        return out, err


__all__ = ["CommandCase", "HYPERTUNE", "ROOT", "fetched", "free_port", "json", "os", "pathlib", "shutil", "signal", "subprocess",
           "tempfile", "time", "unittest", "wait_until"]
