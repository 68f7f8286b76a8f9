"""What the tests of the cluster commands share: a folder with a state of its own, and runs of `hypertune` in it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from command_case import *  # noqa: E402

HOSTS = ROOT / "tests/support/hosts/testhosts"
MACHINES = ROOT / "examples/cluster/machines.py"


def make_hosts(state, count, at_end):
    """Returns the ssh_config of `count` hosts, which end with the test."""
    up = subprocess.run([HOSTS, state, "up", str(count), "--owner", str(os.getpid())], text=True, capture_output=True,
                        timeout=120)
    if up.returncode != 0:
        raise unittest.SkipTest(f"no hosts can be made here: {up.stderr or up.stdout}")
    at_end(subprocess.run, [HOSTS, state, "down"], capture_output=True, timeout=60)
    return up.stdout.split()[-1]


class Case(CommandCase):
    def setUp(self):
        super().setUp()
        self.environment["HYPERTUNE_STATE"] = str(self.folder / "state")

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


__all__ = ["Case", "HostsCase", "HOSTS", "HYPERTUNE", "MACHINES", "ROOT", "fetched", "free_port", "json", "os", "pathlib", "shutil", "signal",
           "subprocess", "tempfile", "time", "unittest", "wait_until"]
