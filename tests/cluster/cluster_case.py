"""What the tests of the cluster commands share: a folder with a state of its own, and runs of `hypertune` in it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HYPERTUNE = os.environ.get("HYPERTUNE", "hypertune")
ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests/support/hosts/testhosts"
MACHINES = ROOT / "examples/cluster/machines.py"


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def make_hosts(state, count, at_end):
    """Returns the ssh_config of `count` hosts, which end with the test."""
    up = subprocess.run([HOSTS, state, "up", str(count), "--owner", str(os.getpid())], text=True, capture_output=True,
                        timeout=120)
    if up.returncode != 0:
        raise unittest.SkipTest(f"no hosts can be made here: {up.stderr or up.stdout}")
    at_end(subprocess.run, [HOSTS, state, "down"], capture_output=True, timeout=60)
    return up.stdout.split()[-1]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hypertune-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = dict(os.environ, HYPERTUNE_STATE=str(self.folder / "state"))

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def make_cloud(self):
        """A folder for the machines that a test's provider makes, with the first of its hosts."""
        self.cloud = self.folder / "cloud"
        self.cloud.mkdir()
        make_hosts(self.cloud / "hosts", 1, self.addCleanup)

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

    def status(self, file="c.yaml"):
        return json.loads(self.run_command("status", file, "--format", "json")[0])


class HostsCase(Case):
    count = 3

    @classmethod
    def setUpClass(cls):
        cls.state = tempfile.mkdtemp(prefix="hypertune-hosts-")
        cls.addClassCleanup(shutil.rmtree, cls.state, ignore_errors=True)
        cls.config = make_hosts(cls.state, cls.count, cls.addClassCleanup)

    def ssh(self, host, command):
        done = subprocess.run(["ssh", "-F", self.config, host, command], capture_output=True, text=True, timeout=60)
        return done.stdout

    def hosts(self, *arguments):
        subprocess.run([HOSTS, self.state, *map(str, arguments)], check=True, capture_output=True, timeout=60)


__all__ = ["Case", "HostsCase", "HOSTS", "HYPERTUNE", "MACHINES", "ROOT", "json", "os", "pathlib", "shutil", "signal", "subprocess",
           "tempfile", "time", "unittest", "wait_until"]
