"""Clusters whose machines are pods: every command of the launcher, on a real Kubernetes."""
import fcntl
import random
import struct
import termios
import urllib.error

from kubernetes_case import *
from support import *
from terminal_case import TerminalCase

CLUSTER = """\
cluster_name: {name}
provider: {{type: kubernetes, kubeconfig: {kubeconfig}, service_account: hypertune-driver, start_timeout: {timeout}}}
min_workers: {workers}
max_workers: 3
available_node_types:
  head:
    max_workers: 0
    resources: {{CPU: 0.2}}
    node_config: &pod
      spec:
        dnsPolicy: Default
        terminationGracePeriodSeconds: 5
        containers: [{{name: worker, image: "{image}", imagePullPolicy: {pull}}}]
  worker: {{resources: {{CPU: 0.2}}, node_config: *pod}}
head_node_type: head
idle_timeout_minutes: 0.1
file_mounts: {{~/{name}-data: ./data}}
initialization_commands: ["echo i >>~/phases"]
setup_commands: ["echo s >>~/phases"{slow}]
head_setup_commands: ["echo h >>~/phases"]
worker_setup_commands: ["echo w >>~/phases"]
"""

TRAIN = "#!/bin/sh\necho \"on $(hostname)\" >&2\nsleep 1\necho '{\"step\": 0, \"loss\": 1}'\n"

SWEEP = """\
name: s
trial: {{command: [./train.sh]}}
space: {{x: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: {samples}
resources: {{cpus: 0.2}}
{executor}
output: runs/s
"""


class Pods(TerminalCase, KubernetesCase):
    def setUp(self):
        super().setUp()
        self.environment["HYPERTUNE_STATE"] = str(self.folder / "state")
        self.write("one\n", self.folder / "data/one.txt")
        self.name = self._testMethodName.removeprefix("test_").split("_")[0]
        self.cluster()
        self.addCleanup(self.remove_all)

    def write(self, text, name="sweep.yaml", mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return name

    def cluster(self, workers=2, image=IMAGE, pull="Never", kubeconfig=None, timeout="60s", slow=""):
        self.write(CLUSTER.format(name=self.name, kubeconfig=kubeconfig or self.state / "admin.kubeconfig", workers=workers,
                                  image=image, pull=pull, timeout=timeout, slow=slow), "c.yaml")

    def ours(self):
        """Pods with the cluster's label, those that have ended as well."""
        return self.ask(f"api/v1/namespaces/default/pods?labelSelector=hypertune/cluster={self.name}")["items"]

    def remove_all(self):
        for pod in self.ours():
            try:
                self.delete(pod["metadata"]["name"], 0)
            except urllib.error.HTTPError:
                pass  # it has gone

    def status(self):
        return json.loads(self.run_command("status", "c.yaml", "--format", "json")[0])

    def names(self, role=None):
        return sorted(m["id"] for m in self.status()["machines"] if role in (None, m["role"]))

    def down(self):
        """All pods of the cluster go, and nothing else is there of it."""
        self.run_command("down", "c.yaml", "-y")
        self.assertEqual(self.ours(), [])
        for kind in ("secrets", "configmaps", "services", "persistentvolumeclaims"):
            self.assertEqual([o for o in self.objects(kind) if self.name in json.dumps(o["metadata"].get("labels", {}))], [])

    def exec(self, command, **more):
        return self.run_command("exec", "c.yaml", command, **more)[0]

    def test_life_of_a_cluster(self):
        self.run_command("up", "c.yaml", "-y")
        machines = self.status()["machines"]
        self.assertEqual([m["role"] for m in machines], ["head", "worker", "worker"])
        self.assertTrue(all(m["ready"] and m["state"] == "running" for m in machines))
        self.assertEqual(self.exec("cat ~/phases"), "i\ns\nh\n")
        before = self.names()
        self.run_command("up", "c.yaml", "-y")  # nothing is done twice
        self.assertEqual((self.exec("cat ~/phases"), self.names()), ("i\ns\nh\n", before))
        self.assertEqual(self.exec("hostname").strip(), self.names("head")[0])
        self.run_command("exec", "c.yaml", "exit 7", code=7)
        done = subprocess.run([HYPERTUNE, "exec", "c.yaml", "cat; echo err >&2"], cwd=self.folder, env=self.environment,
                              input=b"x" * 300000 + b"\0end", capture_output=True, timeout=60)
        self.assertIn(b"err", done.stderr)
        # Files both ways; a changed mount is brought again.
        big = os.urandom(3_000_000)
        (self.folder / "big.bin").write_bytes(big)
        for i in range(200):
            self.write(f"{i}\n", f"many/deep/{i}.txt")
        self.run_command("rsync-up", "c.yaml", "big.bin", "there/")
        self.run_command("rsync-up", "-A", "c.yaml", "many", "~/many")
        self.run_command("rsync-down", "c.yaml", "there/big.bin", "back.bin")
        self.assertEqual((self.folder / "back.bin").read_bytes(), big)
        self.run_command("rsync-down", "c.yaml", "~/many", "got")
        self.assertEqual(len(list((self.folder / "got/deep").iterdir())), 200)
        self.assertIn("no file or folder", self.run_command("rsync-down", "c.yaml", "~/nowhere", "x", code=2)[1])
        self.write("two\n", "data/two.txt")
        self.run_command("up", "c.yaml", "-y")
        self.assertEqual(self.exec(f"cat ~/{self.name}-data/*"), "one\ntwo\n")
        # A pod that somebody deletes, and one that ends by itself, make way for others.
        [first, second] = self.names("worker")
        self.delete(first, 0)
        wait_until(lambda: self.names("worker") == [second], "the end of a worker")
        self.run_command("up", "c.yaml", "-y")
        self.assertEqual(len(self.names("worker")), 2)
        self.run_command("get-head-ip", "c.yaml")
        self.assertEqual(len(self.run_command("get-worker-ips", "c.yaml")[0].split()), 2)
        self.down()
        self.assertEqual(self.status()["machines"], [])
        self.assertIn("is not up", self.run_command("exec", "c.yaml", "true", code=2)[1])

    def test_terminals_and_ports(self):
        self.cluster(workers=1)
        self.run_command("up", "c.yaml", "-y")
        [head], [worker] = self.names("head"), self.names("worker")
        process, terminal = self.at_a_terminal(HYPERTUNE, "attach", "c.yaml")
        os.write(terminal, b"stty -echo; echo it is $((40 + 2)) on $(hostname), $(stty size), $(tty)\n")
        self.assertIn(f"it is 42 on {head}, 33 101, /dev/pts/", self.read_until(terminal, "/dev/pts/"))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
        os.write(terminal, b"until [ \"$(stty size)\" = '40 90' ]; do sleep 0.1; done; echo now $(stty size)\n")
        self.read_until(terminal, "now 40 90")
        os.write(terminal, b"PS1='sto''pped> '; sleep 1000\n")
        wait_until(lambda: "sleep 1000" in self.exec("ps"), "a program in the foreground")
        os.write(terminal, b"\x03")  # Ctrl-C is the shell's
        self.read_until(terminal, "stopped> ")
        os.write(terminal, b"exit 7\n")
        self.assertEqual(process.wait(60), 7)
        process, terminal = self.at_a_terminal(HYPERTUNE, "attach", "c.yaml", "--worker", "0")
        os.write(terminal, b"echo this is $(hostname)\n")
        self.read_until(terminal, f"this is {worker}")
        os.write(terminal, b"exit\n")
        self.assertEqual(process.wait(60), 0)
        # A port of the pod's own loopback.
        serve = "mkdir -p ~/www && hostname >~/www/index.html && cd ~/www && {} httpd -f -p 127.0.0.1:8123"
        self.exec(serve.format("setsid") + " </dev/null >/dev/null 2>&1 &")
        port = free_port()
        process = self.start("forward", "c.yaml", f"{port}:8123")
        self.addCleanup(process.kill)
        wait_until(lambda: fetched(port).strip() == head, "the server through forward")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual((process.returncode, fetched(port)), (0, ""))
        process = self.start("exec", "c.yaml", "-p", f"{port}:8123", "sleep 1000")
        self.addCleanup(process.kill)
        wait_until(lambda: fetched(port).strip() == head, "the server through exec")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertIn("no port to forward", self.run_command("forward", "c.yaml", "x", code=2)[1])
        self.down()

    def test_programs_and_their_logs(self):
        self.write("#!/bin/sh\necho begun $*\nuntil [ -e ~/go ]; do sleep 0.1; done\necho over >&2\nmkdir out\n"
                   "echo result >out/r.txt\nexit 5\n", "program.sh", 0o755)
        self.run_command("up", "c.yaml", "-y", "--max-workers", "0")
        self.assertIn("nothing was submitted", self.run_command("logs", "c.yaml", code=2)[1])
        self.run_command("submit", "c.yaml", "--detach", "./program.sh", "--", "--lr", "a b")
        wait_until(lambda: "begun --lr a b" in self.run_command("logs", "c.yaml")[0], "its first line")
        out, _ = self.run_command("status", "c.yaml")
        self.assertIn("(program.sh): running", out)
        [row] = [line.split() for line in out.splitlines() if line.split()[:1] == ["head"]]
        self.assertEqual(row[1:4], [self.names("head")[0], row[2], "head"])  # whatever the length of a name
        follower = self.start("logs", "-f", "c.yaml", "program.sh")
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), "begun --lr a b\n")
        left = self.start("logs", "-f", "c.yaml")
        left.stdout.readline()
        left.send_signal(signal.SIGINT)  # leaves it running
        left.communicate(timeout=30)
        self.assertEqual(left.returncode, 0)
        self.assertIn("there is no job 'x'", self.run_command("logs", "c.yaml", "x", code=2)[1])
        # What would be lost is said, and is lost by nobody who was not asked.
        _, err = self.run_command("down", "c.yaml", code=2)
        self.assertRegex(err, r"job \w+ \(program.sh\) is running and is ended")
        self.assertIn("`hypertune down c.yaml -y`", err)
        self.assertIn("options of the command that it runs stand after --", self.run_command("exec", "c.yaml", "ls", "-la", code=2)[1])
        self.exec("touch ~/go")
        out, _ = follower.communicate(timeout=60)
        self.assertEqual((out, follower.returncode), ("over\n", 0))
        self.assertIn("have not been fetched", self.run_command("down", "c.yaml", code=2)[1])
        out, _ = self.run_command("submit", "c.yaml", "-o", "out", "./program.sh", "--", "--lr", "a b", code=5)
        self.assertEqual((self.folder / "out/out/r.txt").read_text(), "result\n")
        self.assertEqual((self.folder / "out/submit.log").read_text(), "begun --lr a b\nover\n")
        # Results that were fetched before stay what they are.
        for number in range(2):
            self.run_command("submit", "c.yaml", "./program.sh", code=5)
            self.write("kept", f"results/programs/mark{number}")
        folders = sorted(f.name for f in (self.folder / "results/programs").iterdir() if f.is_dir())
        self.assertEqual([name.removeprefix(folders[0]) for name in folders], ["", "-2"])
        # A follower whose head is taken away learns that the job is lost.
        self.exec("rm ~/go")
        follower = self.start("submit", "c.yaml", "./program.sh", "--", "again")
        self.addCleanup(follower.kill)
        self.assertEqual(follower.stdout.readline(), "begun again\n")
        self.delete(self.names("head")[0], 0)
        _, err = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 1)
        self.assertIn("is lost: its machine, the head", err)
        self.down()

    def hosts_of(self, experiment):
        trials = json.loads(self.run_command("results", experiment, "--format", "json")[0])
        self.assertEqual([t["state"] for t in trials], ["completed"] * len(trials))
        said = "".join(f.read_text(errors="replace") for f in (self.folder / experiment / "trials").rglob("*") if f.is_file())
        return {line.removeprefix("on ") for line in said.splitlines() if line.startswith("on ")}

    def test_sweeps_on_all_pods(self):
        self.write(TRAIN, "train.sh", 0o755)
        self.write(SWEEP.format(samples=9, executor=""))
        self.run_command("up", "c.yaml", "-y")
        self.run_command("submit", "c.yaml", "sweep.yaml", "--sync", "train.sh", "-o", "out", timeout=200)
        self.assertEqual(self.hosts_of("out/runs/s"), set(self.names()))
        self.assertEqual(len(self.names()), 3)  # none was launched or ended for it
        self.write(SWEEP.format(samples=9, executor="").replace("cpus: 0.2", "cpus: 1"))
        _, err = self.run_command("submit", "c.yaml", "sweep.yaml", "--sync", "train.sh", "-o", "no", code=2)
        said = err + (self.folder / "no/submit.log").read_text()
        self.assertIn("has room for a trial: it needs 1 cpus, which no host has", said)
        self.assertIn("has 0.2 cpus", said)
        self.down()

    def test_grown_with_the_queue(self):
        self.write(TRAIN, "train.sh", 0o755)
        self.cluster(workers=0)
        self.write(SWEEP.format(samples=9, executor="executor: {type: ssh, cluster: c.yaml}"))
        self.run_command("run", "sweep.yaml", timeout=200)
        hosts = self.hosts_of("runs/s")
        self.assertGreater(len(hosts), 1)
        self.assertEqual([host for host in hosts if not host.startswith("grown-worker-")], [])
        self.assertEqual(self.ours(), [])  # they ended with the run

    def test_interrupted_and_killed_at_any_moment(self):
        self.cluster(slow=', "sleep 0.5; echo s2 >>~/phases"')
        rounds = random.Random(7)
        for ending in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
            process = self.start("up", "c.yaml", "-y")
            try:
                process.communicate(timeout=rounds.uniform(0.05, 2.5))
            except subprocess.TimeoutExpired:
                process.send_signal(ending)
                process.communicate(timeout=60)
        self.run_command("up", "c.yaml", "-y")
        self.assertEqual([m["role"] for m in self.status()["machines"]], ["head", "worker", "worker"])
        self.assertEqual(len(self.ours()), 3)
        # What a command that is killed has begun is ended by the next one.
        self.cluster(slow=', "echo a >>~/begun; sleep 1000"')
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: self.run_command("exec", "c.yaml", "cat ~/begun || :")[0] == "a\n", "the command")
        process.kill()
        process.communicate()
        self.cluster(slow=', "true"')
        self.run_command("up", "c.yaml", "-y")
        self.assertNotIn("sleep 1000", self.exec("ps"))
        process = self.start("down", "c.yaml", "-y")
        try:
            process.communicate(timeout=0.3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        self.down()

    def test_rights_that_are_missing(self):
        done = self.kubernetes("user", "narrow", "get,list,delete:pods", "get:pods/exec,pods/log")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.cluster(kubeconfig=done.stdout.strip())
        _, err = self.run_command("up", "c.yaml", "-y", code=2)
        self.assertIn("create pods (to make machines), create pods/exec (to reach into them)", err)
        self.assertIn('[{apiGroups: [""], resources: [pods], verbs: [create]}, {apiGroups: [""], resources: [pods/exec], verbs: [create]}]', err)
        self.assertEqual(self.ours(), [])
        done = self.kubernetes("user", "none")
        self.cluster(kubeconfig=done.stdout.strip())
        self.assertIn("list pods (to find those of the cluster)", self.run_command("up", "c.yaml", "-y", code=2)[1])

    def test_images_that_cannot_be_had(self):
        self.cluster(workers=0, image="hypertune.test/none:1")
        _, err = self.run_command("up", "c.yaml", "-y", code=1)
        [last] = [line for line in err.splitlines() if line.startswith("hypertune: ")]
        self.assertIn("the head is not up", last)
        self.assertIn("its image cannot be used", last)
        self.assertIn("is ended, as it cannot come up as it is", err)
        self.assertEqual(self.ours(), [])
        self.cluster(workers=0, image="127.0.0.1:9/none:1", pull="Always", timeout="5s")
        _, err = self.run_command("up", "c.yaml", "-y", code=1)
        self.assertIn("waits for its image, which cannot be pulled", err.splitlines()[-1])
        self.assertEqual(self.ours(), [])
        self.cluster(workers=0)
        self.run_command("up", "c.yaml", "-y")  # mended
        self.down()

    def test_quota_and_refusals(self):
        self.write('apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {pods: "2"}}\n', "quota.yaml")
        done = self.kubernetes("apply", self.folder / "quota.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(self.ask, "api/v1/namespaces/default/resourcequotas/few", "DELETE")
        self.cluster(workers=2, timeout="4s")
        _, err = self.run_command("up", "c.yaml", "-y", code=1)
        self.assertIn("exceeded quota: few", err)
        self.assertLess(len(self.ours()), 3)
        self.down()
        # What the API server does not take is said with its place in the file.
        text = (self.folder / "c.yaml").read_text()
        self.write(text.replace("dnsPolicy: Default", "dnsPolicy: Nowhere"), "c.yaml")
        _, err = self.run_command("up", "c.yaml", "-y", code=2)
        self.assertIn("c.yaml:9: 'available_node_types.head.node_config'", err)
        self.assertIn("dnsPolicy", err)
        self.write(text.replace("start_timeout", "namespace: nowhere, start_timeout"), "c.yaml")
        _, err = self.run_command("up", "c.yaml", "-y", code=2)
        self.assertIn("c.yaml:2: 'provider.namespace': ", err)
        self.assertNotIn("node_config", err)
        self.write(text.replace("dnsPolicy", "dnsPolcy"), "c.yaml")
        self.assertIn("unknown key 'dnsPolcy'", self.run_command("up", "c.yaml", "-y", code=2)[1])


if __name__ == "__main__":
    unittest.main()
