"""What anybody else on these machines can see while hypertune works: process lists, files, ports; and what is left of it
when any part is killed. All processes of the test's hosts are in this machine's /proc, too."""
import stat
import threading

from cluster_case import *

SECRETS = (b"s3cr3t-setup-%d" % os.getpid(), b"s3cr3t-trial-%d" % os.getpid())  # no other test's


class Watch:
    """Looks at every process of this machine and its hosts again and again until the end of a `with`."""

    def __init__(self, text, networks=None):
        self.text = text  # what is in the command line or the folder of a process of the test's
        self.networks = networks  # the namespaces of the test's hosts, if other tests' processes have the text as well
        self.secrets, self.listening, self.looks, self.seen = set(), set(), 0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def run(self):
        while not self.over.is_set():
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    line = (process / "cmdline").read_bytes()
                    if any(secret in line for secret in SECRETS):
                        self.secrets.add(line)
                    if self.looks % 10 == 0 and self.text in line and self.is_ours(process):
                        self.ports(process, line)
                        self.seen += 1
                except OSError:
                    pass  # it has ended meanwhile
            self.looks += 1

    def is_ours(self, process):
        return self.networks is None or os.readlink(process / "ns/net") in self.networks

    def ports(self, process, line):
        sockets = set()
        for descriptor in (process / "fd").iterdir():
            target = os.readlink(descriptor)
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for entry in (process / "net" / table).read_text().splitlines()[1:]:
                fields = entry.split()
                waits = fields[3] == ("0A" if table.startswith("tcp") else "07")
                if waits and fields[9] in sockets:
                    self.listening.add((table, fields[1].split(":")[0], line.split(b"\0")[0]))


class Hygiene(HostsCase):
    def setUp(self):
        super().setUp()
        self.name = f"clean{os.getpid()}"
        self.write("c.yaml", f"""
cluster_name: {self.name}
provider: {{type: local, head_ip: host1, worker_ips: [host2, host3]}}
auth: {{ssh_config: {self.config}}}
setup_commands: ["export TOKEN={SECRETS[0].decode()}; sleep 0.5; echo $((41 + 1)) >~/made"]
""")
        self.write("train.sh", '#!/bin/sh\n[ -n "$API_KEY" ] || exit 1\nsleep 1\necho \'{"step": 0, "loss": 1}\'\n', 0o755)
        self.sweep(hosts="")
        self.addCleanup(lambda: self.finish(self.start("down", "c.yaml", "-y")))

    def sweep(self, hosts, samples=6, name="sweep.yaml"):
        return self.write(name, f"""
name: s
trial: {{command: [sh, ./train.sh], environment: {{API_KEY: {SECRETS[1].decode()}}}}}
space: {{x: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: {samples}
executor: {{type: ssh, {hosts} file_mounts: {{train.sh: train.sh}}}}
output: runs/s
""", 0o600)

    def processes(self, text, host=None):
        """Command lines with `text` in them, of a host or of all."""
        found = []
        for number in (1, 2, 3) if host is None else (host,):
            done = subprocess.run([HOSTS, self.state, "exec", str(number), "--", "sh", "-c",
                                   "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null; true"],
                                  capture_output=True, text=True, timeout=60)
            found += [line for line in done.stdout.splitlines() if text in line and "/proc/[0-9]" not in line]
        return found

    def connections(self):
        """The ssh of this machine that goes to the test's hosts."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if line.startswith("ssh\0") and self.config in line:
                found.append(line)
        return found

    def assert_nothing_runs(self, *texts):
        wait_until(lambda: not self.connections(), f"the end of {self.connections()}", 30)
        for text in texts:
            wait_until(lambda: not self.processes(text), f"the end of '{text}': {self.processes(text)}", 30)

    def assert_kept(self, roots, own):
        """No file of anybody else's has a secret in it, and none that others could read."""
        for root in roots:
            for file in pathlib.Path(root).rglob("*"):
                if not file.is_file() or file.is_symlink() or file.name in own:
                    continue
                text = file.read_bytes()
                for secret in SECRETS:
                    self.assertNotIn(secret, text, f"{file}: {stat.filemode(file.stat().st_mode)}")

    def test_no_secret_shows_and_no_port_is_open(self):
        with Watch(self.name.encode()) as watch:
            self.run_command("up", "c.yaml", "-y")
            out, err = self.run_command("submit", "c.yaml", "sweep.yaml", "--sync", "train.sh", "-o", "out", timeout=200)
        said = out + err
        self.sweep(f"hosts: [host1, host2], ssh_config: {self.config},", name="direct.yaml")
        networks = {subprocess.run([HOSTS, self.state, "exec", str(number), "--", "readlink", "/proc/self/ns/net"],
                                   capture_output=True, text=True, timeout=60, check=True).stdout.strip() for number in (1, 2)}
        with Watch(b"direct.yaml") as direct, Watch(b"--hypertune-agent", networks) as agents:
            out, err = self.run_command("run", "direct.yaml", "--output", "runs/direct")
        with Watch(b"nothing") as proof:  # that it would have been seen
            subprocess.run(["sh", "-c", "sleep 1", SECRETS[0]], check=True)
        self.assertEqual(len(proof.secrets), 1)
        self.assertGreater(agents.seen, 0)
        for each in (watch, direct, agents):
            self.assertGreater(each.looks, 10)
            self.assertEqual(each.secrets, set())
            self.assertEqual({entry for entry in each.listening if entry[1] not in ("0100007F", "0" * 24 + "01000000")}, set())
        self.assertNotIn("s3cr3t", said + out + err)
        for folder in ("out/runs/s", "runs/direct"):
            trials = json.loads(self.run_command("results", folder, "--format", "json")[0])
            self.assertEqual([trial["state"] for trial in trials], ["completed"] * 6)
        homes = [pathlib.Path(self.state) / f"host{i}/home" for i in (1, 2, 3)]
        self.assertTrue(all(home.is_dir() for home in homes), list(pathlib.Path(self.state).iterdir()))
        self.assert_kept([self.folder, *homes], own={"c.yaml", "sweep.yaml", "direct.yaml", "train.sh"})
        # What is private: keys, the state of the cluster, what a job was started with.
        for root in (self.folder / "state", *(home / ".hypertune" for home in homes)):
            for file in root.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    folders = [each for each in file.parents if root in (each, *each.parents)]
                    closed = any(each.stat().st_mode & 0o077 == 0 for each in folders)
                    self.assertTrue(closed or file.stat().st_mode & 0o077 == 0, f"{file} {stat.filemode(file.stat().st_mode)}")

    def test_nothing_goes_on_when_the_launcher_is_killed(self):
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace("sleep 0.5", "sleep 4321"))
        process = self.start("up", "c.yaml", "-y")
        self.addCleanup(process.kill)
        wait_until(lambda: len(self.processes("sleep 4321")) >= 3, "set-up on all three")
        process.kill()
        process.communicate()
        self.assert_nothing_runs("sleep 4321")

    def test_nothing_goes_on_when_the_head_is_killed(self):
        self.write("train.sh", "#!/bin/sh\nexec sleep 5432\n", 0o755)
        self.run_command("up", "c.yaml", "-y")
        process = self.start("submit", "c.yaml", "sweep.yaml", "--sync", "train.sh")
        self.addCleanup(process.kill)
        wait_until(lambda: len(self.processes("sleep 5432")) >= 3, "trials", 90)
        process.kill()  # the job goes on without whoever submitted it
        process.communicate()
        self.assertGreaterEqual(len(self.processes("sleep 5432")), 3)
        self.addCleanup(self.hosts, "up", "3")
        self.hosts("kill", "1")
        self.assert_nothing_runs("sleep 5432", "--hypertune-agent")
        self.hosts("up", "3")
        self.assertIn("died with its machine", self.run_command("status", "c.yaml")[0])
        out, _ = self.run_command("down", "c.yaml", "-y")
        self.assertIn("3 machines ended", out)

    def test_nothing_goes_on_when_the_job_is_killed(self):
        self.write("train.sh", "#!/bin/sh\nexec sleep 6543\n", 0o755)
        self.run_command("up", "c.yaml", "-y")
        self.run_command("submit", "c.yaml", "sweep.yaml", "--sync", "train.sh", "--detach")
        wait_until(lambda: len(self.processes("sleep 6543")) >= 3, "trials", 90)
        self.hosts("exec", "1", "--", "sh", "-c", "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = hypertune ] && "
                   "tr '\\0' ' ' <$p/cmdline | grep -q ' run sweep.yaml' && kill -9 ${p#/proc/}; done; true")
        self.assert_nothing_runs("sleep 6543", "--hypertune-agent")
        status = self.run_command("status", "c.yaml")[0]
        self.assertIn("ended with exit code 137", status)


if __name__ == "__main__":
    unittest.main()
