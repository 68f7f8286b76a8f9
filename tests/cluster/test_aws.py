"""The aws provider against moto, a server that plays EC2, by the real AWS command line."""
import fcntl
import sys
import urllib.request

from cluster_case import *
from test_scale import TRAINER


def tools():
    """Folders with `aws` and `moto_server`: those of this machine, or an environment made for the test."""
    if shutil.which("aws") and shutil.which("moto_server"):
        return os.environ["PATH"]
    venv = os.environ.get("HYPERTUNE_AWS_VENV") or tempfile.mkdtemp(prefix="hypertune-aws-")
    made = subprocess.run([ROOT / "scripts/python-venv", venv, "python3", "moto[server]==5.1.18", "awscli"], capture_output=True, text=True, timeout=280)
    if made.returncode != 0:
        raise unittest.SkipTest(f"moto and the AWS command line cannot be installed here: {made.stderr[-300:]}")
    return f"{venv}/bin:{os.environ['PATH']}"


class Moto(Case):
    @classmethod
    def setUpClass(cls):
        cls.path = tools()
        cls.port = free_port()
        cls.url = f"http://127.0.0.1:{cls.port}"
        cls.server = subprocess.Popen(["moto_server", "-H", "127.0.0.1", "-p", str(cls.port)], env=dict(os.environ, PATH=cls.path),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        cls.addClassCleanup(cls.end_server)

        def answers():
            try:
                return urllib.request.urlopen(cls.url + "/moto-api/", timeout=5).status == 200
            except OSError:
                return False
        wait_until(answers, "moto", 60)

    @classmethod
    def end_server(cls):
        os.killpg(cls.server.pid, signal.SIGKILL)
        cls.server.wait()

    def setUp(self):
        super().setUp()
        urllib.request.urlopen(urllib.request.Request(self.url + "/moto-api/reset", method="POST"), timeout=10)
        self.environment.update(PATH=self.path, AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="k3y-that-nobody-sees",
                                AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/dev/null")
        images = json.loads(self.aws("describe-images", "--owners", "amazon"))["Images"]
        self.image = images[0]["ImageId"]

    def aws(self, *arguments):
        return subprocess.run(["aws", "ec2", *arguments, "--endpoint-url", self.url, "--region", "us-east-1", "--output", "json"],
                              env=self.environment, check=True, capture_output=True, text=True, timeout=60).stdout

    def instances(self):
        found = []
        for reservation in json.loads(self.aws("describe-instances"))["Reservations"]:
            found += [i for i in reservation["Instances"] if i["State"]["Name"] not in ("terminated", "shutting-down")]
        return found

    def assert_secret_nowhere(self):
        for file in self.folder.rglob("*"):
            if file.is_file() and file.name != "environ":
                self.assertNotIn("k3y-that-nobody-sees", file.read_text(errors="replace"), file)


class Aws(Moto):
    def setUp(self):
        super().setUp()
        self.write("id.pub", "ssh-ed25519 AAAATESTKEY me\n")
        self.cluster()

    def cluster(self, provider="", worker=""):
        self.write("c.yaml", f"""
cluster_name: moto
min_workers: 2
max_workers: 2
provider: {{type: aws, region: us-east-1, availability_zone: us-east-1a, endpoint_url: "{self.url}", start_timeout: 3s{provider}}}
auth: {{ssh_user: ubuntu, ssh_public_key: id.pub}}
available_node_types:
  head: {{max_workers: 0, price: 0.1, node_config: {{InstanceType: m5.large, ImageId: {self.image}}}}}
  gpu:
    spot: true
    price: {{on_demand: 1.0, spot: 0.3}}
    node_config: {{InstanceType: m5.xlarge, ImageId: {self.image}, TagSpecifications: [{{ResourceType: instance, Tags: [{{Key: team, Value: ml}}]}}]{worker}}}
head_node_type: head
""")

    def up_without_ssh(self):
        """There is nobody at moto's addresses: up makes the machines and fails when it cannot log in."""
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: len(self.instances()) == 3, "three machines")
        process.send_signal(signal.SIGINT)
        return self.finish(process)

    def test_up_and_down(self):
        self.up_without_ssh()
        machines = self.instances()
        tags = [{t["Key"]: t["Value"] for t in m["Tags"]} for m in machines]
        self.assertEqual({t["hypertune-cluster"] for t in tags}, {"moto"})
        self.assertEqual(sorted(t["hypertune-role"] for t in tags), ["head", "worker", "worker"])
        self.assertEqual(len({t["hypertune-token"] for t in tags}), 3)
        self.assertEqual([t.get("team") for t in tags if t["hypertune-role"] == "worker"], ["ml", "ml"])
        spot = {t["hypertune-role"]: m.get("InstanceLifecycle") for m, t in zip(machines, tags)}
        self.assertEqual(spot, {"head": None, "worker": "spot"})
        self.assertEqual({m["Placement"]["AvailabilityZone"] for m in machines}, {"us-east-1a"})
        data = json.loads(self.aws("describe-instance-attribute", "--attribute", "userData", "--instance-id",
                                   machines[0]["InstanceId"]))["UserData"]["Value"]
        import base64
        self.assertIn("ssh-ed25519 AAAATESTKEY", base64.b64decode(data).decode())
        state = self.status()
        self.assertEqual(len(state["machines"]), 3)
        self.assertEqual(sum(m["spot"] for m in state["machines"]), 2)
        self.assertGreater(state["cost"]["saved"], 0)
        self.up_without_ssh()  # again: the same machines
        self.assertEqual({m["InstanceId"] for m in self.instances()}, {m["InstanceId"] for m in machines})
        out, _ = self.run_command("down", "c.yaml", "-y")
        self.assertIn("3 machines ended", out)
        self.assertEqual(self.instances(), [])
        self.assert_secret_nowhere()

    def test_killed_up_then_down(self):
        for delay in (1.0,):
            process = self.start("up", "c.yaml", "-y")
            time.sleep(delay)
            process.kill()
            process.communicate()
            self.run_command("down", "c.yaml", "-y")
            self.assertEqual(self.instances(), [])

    def test_stopped_machines_are_used_again(self):
        self.cluster(provider=", cache_stopped_nodes: true")
        self.write("c.yaml", (self.folder / "c.yaml").read_text().replace("spot: true", "spot: false"))
        self.up_without_ssh()
        before = {m["InstanceId"] for m in self.instances()}
        self.run_command("down", "c.yaml", "-y")
        self.assertEqual({m["State"]["Name"] for m in self.instances()}, {"stopped"})
        process = self.start("up", "c.yaml", "-y")
        wait_until(lambda: {m["State"]["Name"] for m in self.instances()} == {"running"}, "started machines")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertEqual({m["InstanceId"] for m in self.instances()}, before)

    def test_what_cannot_be_launched_is_refused_before_anything_is(self):
        text = (self.folder / "c.yaml").read_text()
        worker = f"InstanceType: m5.xlarge, ImageId: {self.image}"
        self.assertIn("is sound", self.run_command("check", "c.yaml")[0])
        for config, why in (("InstanceType: m5.xlarge", "node type 'gpu': node_config.ImageId must name an image"),
                            ("InstanceType: m5.xlarge, ImageId: latest_dlami", "node type 'gpu': node_config.ImageId must name"),
                            ("LaunchTemplate: {LaunchTemplateName: t, Version: 3}",
                             "node type 'gpu': node_config.LaunchTemplate.Version must be a text: write \"3\", in quotes"),
                            (worker + ", SecurityGroupIds: sg-1", "Invalid type for parameter SecurityGroupIds"),
                            (worker + ", SecurityGroupsIds: [sg-1]", "Unknown parameter in input: \"SecurityGroupsIds\"")):
            with self.subTest(config=config):
                self.write("c.yaml", text.replace(worker, config))
                _, err = self.run_command("check", "c.yaml", code=2)
                self.assertIn("c.yaml:12: ", err)
                self.assertIn(why, err)
        # Nor is the head launched, whose type is sound.
        self.assertIn(why, self.run_command("up", "c.yaml", "-y", code=2)[1])
        self.assertEqual(self.instances(), [])
        self.write("c.yaml", text.replace(worker, "LaunchTemplate: {LaunchTemplateName: t, Version: \"3\"}"))
        self.assertIn("is sound", self.run_command("check", "c.yaml")[0])
        # Where there is no command line, what is known without it.
        self.environment["PATH"] = "/nowhere"
        self.write("c.yaml", text)
        self.assertIn("is sound", self.run_command("check", "c.yaml")[0])
        self.write("c.yaml", text.replace(worker, "InstanceType: m5.xlarge"))
        self.assertIn("must name an image", self.run_command("check", "c.yaml", code=2)[1])

    def test_what_aws_refuses_is_said_in_a_line(self):
        text = (self.folder / "c.yaml").read_text()
        self.write("c.yaml", text.replace("m5.large,", "m5.large, SubnetId: subnet-0000000000000000f,"))
        _, err = self.run_command("up", "c.yaml", "-y", code=2)
        self.assertIn("InvalidSubnetID.NotFound", err)
        self.assertEqual(self.instances(), [])
        self.write("c.yaml", text.replace(f"m5.large, ImageId: {self.image}", "m5.large"))
        self.assertIn("ImageId must name an image", self.run_command("up", "c.yaml", "-y", code=2)[1])
        self.environment["PATH"] = "/nowhere"
        self.assertIn("needs the AWS command line", self.run_command("up", "c.yaml", "-y", code=2)[1])


# The real `aws`, but that each of moto's instances is a real host: made when it is first seen, taken away with it. On it,
# EC2's own address for metadata answers, which wants a token and has a notice where /tmp/notice is.
MACHINES_OF_EC2 = r'''#!@python@
import fcntl, json, pathlib, subprocess, sys
state, hosts = pathlib.Path("@state@"), "@hosts@"
METADATA = r"""
import http.server, os
class Metadata(http.server.BaseHTTPRequestHandler):
    def say(self, status, text=""):
        self.send_response(status), self.end_headers(), self.wfile.write(text.encode())
    def do_PUT(self):
        self.say(200 if self.path == "/latest/api/token" else 404, "t0ken")
    def do_GET(self):
        if self.headers["X-aws-ec2-metadata-token"] != "t0ken": self.say(401)
        elif self.path == "/latest/meta-data/spot/instance-action" and os.path.exists("/tmp/notice"):
            self.say(200, '{"action": "terminate", "time": "2030-01-01T00:00:00Z"}')
        else: self.say(404)
http.server.HTTPServer(("169.254.169.254", 80), Metadata).serve_forever()
"""

def testhosts(*words):
    return subprocess.run([hosts, state / "hosts", *words], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout

def instances(value):
    if isinstance(value, dict):
        if "InstanceId" in value and ("State" in value or "CurrentState" in value): yield value
        for each in value.values(): yield from instances(each)
    elif isinstance(value, list):
        for each in value: yield from instances(each)

done = subprocess.run(["@aws@", *sys.argv[1:]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
if done.returncode == 0 and done.stdout.strip():
    answer = json.loads(done.stdout)
    with open(state / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = state / "machines.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        for instance in instances(answer):
            ident, now = instance["InstanceId"], instance.get("State", instance.get("CurrentState"))["Name"]
            if now in ("pending", "running") and ident not in known:
                name = testhosts("add").split()[-1]
                address = next(line.split(" ")[0].split(",")[0] for line in
                               (state / "hosts/known_hosts").read_text().splitlines() if name in line.split(" ")[0].split(","))
                known[ident] = {"host": name, "address": address, "there": True}
                script = "ip addr add 169.254.169.254/32 dev lo; cat >/tmp/m.py <<'END'\n" + METADATA
                testhosts("exec", name[4:], "--", "sh", "-c", script + "END\nsetsid python3 /tmp/m.py >/dev/null 2>&1 </dev/null &")
            elif now in ("shutting-down", "terminated") and known.get(ident, {}).get("there"):
                testhosts("kill", known[ident]["host"][4:], "--wipe")
                known[ident]["there"] = False
            if ident in known and "State" in instance:
                instance.update(PublicDnsName="", PublicIpAddress=known[ident]["address"])
        file.with_suffix(".new").write_text(json.dumps(known))
        file.with_suffix(".new").replace(file)
    done.stdout = json.dumps(answer)
sys.stdout.write(done.stdout)
sys.stderr.write(done.stderr)
sys.exit(done.returncode)
'''


class Growth(Moto):
    def setUp(self):
        super().setUp()
        self.make_cloud()
        text = MACHINES_OF_EC2
        for name, value in {"python": sys.executable, "state": self.cloud, "hosts": HOSTS,
                            "aws": shutil.which("aws", path=self.path)}.items():
            text = text.replace(f"@{name}@", str(value))
        self.write("bin/aws", text, 0o755)
        self.environment["PATH"] = f"{self.folder}/bin:{self.path}"
        self.write("train.py", TRAINER)
        self.write("c.yaml", f"""
cluster_name: ec2-{os.getpid()}
max_workers: 2
idle_timeout_minutes: 0.05
provider: {{type: aws, region: us-east-1, endpoint_url: "{self.url}", start_timeout: 60s}}
auth: {{ssh_user: root, ssh_private_key: {self.cloud}/hosts/id}}
available_node_types:
  head: {{max_workers: 0, price: 0.1, resources: {{CPU: 1}}, node_config: {{InstanceType: m5.large, ImageId: {self.image}}}}}
  worker:
    spot: true
    resources: {{CPU: 2}}
    price: {{on_demand: 1.0, spot: 0.25}}
    node_config: {{InstanceType: m5.xlarge, ImageId: {self.image}}}
head_node_type: head
""")
        self.write("sweep.yaml", """
name: grown
trial: {command: [python3, train.py], environment: {PAUSE: "1.5", LAST: "6"}}
space: {rate: {uniform: [0, 1]}}
metric: loss
mode: min
samples: 20
executor: {type: ssh, cluster: c.yaml, file_mounts: {train.py: train.py}}
output: runs/grown
""")

    def hosts(self, *arguments):
        return subprocess.run([HOSTS, self.cloud / "hosts", *arguments], check=True, capture_output=True, text=True,
                              timeout=60).stdout

    def machines(self):
        with open(self.cloud / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            file = self.cloud / "machines.json"
            return json.loads(file.read_text()) if file.exists() else {}

    def reports(self):
        out, _ = self.finish(process := self.start("results", "runs/grown", "--format", "json"))
        return {trial["trial"]: trial["steps"] for trial in json.loads(out)} if process.returncode == 0 else {}

    def test_grows_over_spot_instances_that_are_interrupted_with_notice(self):
        process = self.start("run", "sweep.yaml", "--plain")
        self.addCleanup(process.kill)
        wait_until(lambda: sum(machine["there"] for machine in self.machines().values()) == 2, "two machines", 120)
        wait_until(lambda: sum(self.reports().values()) >= 6, "some reports", 120)
        self.assertEqual({i.get("InstanceLifecycle") for i in self.instances()}, {"spot"})
        victim, machine = next(iter(self.machines().items()))
        self.hosts("exec", machine["host"][4:], "--", "touch", "/tmp/notice")
        log = self.folder / "runs/grown/experiment.db"
        wait_until(lambda: b"a termination notice" in log.read_bytes() + pathlib.Path(f"{log}-wal").read_bytes(), "the notice")
        trainers = ["exec", machine["host"][4:], "--", "sh", "-c",
                    "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null; true"]
        wait_until(lambda: "python3 train.py" not in self.hosts(*trainers), "trials that have saved and left")
        self.aws("terminate-instances", "--instance-ids", victim)  # as EC2 does two minutes later
        out, err = self.finish(process, 240)
        self.assertEqual(process.returncode, 0, out + err)
        results = json.loads(self.run_command("results", "runs/grown", "--format", "json", "--cost")[0])
        self.assertEqual([(t["state"], t["steps"], t["failures"]) for t in results["trials"]], [("completed", 3, 0)] * 20)
        self.assertEqual(results["cost"]["repeated_steps"], 0)  # nothing was lost
        self.assertGreaterEqual(len(self.machines()), 3)  # another one came in its place
        self.assertEqual(results["cost"]["machines"], len(self.machines()))
        self.assertGreater(results["cost"]["saved"], 0)
        self.assertFalse(any(machine["there"] for machine in self.machines().values()))
        self.assertEqual(self.instances(), [])
        self.assertIn("idle", err)  # it shrank while the last trial ran
        self.assert_secret_nowhere()

    def test_killed_while_it_grows_nothing_is_forgotten(self):
        process = self.start("run", "sweep.yaml", "--plain")
        self.addCleanup(process.kill)
        wait_until(lambda: self.machines(), "an instance", 120)
        process.kill()
        process.communicate()
        self.run_command("down", "c.yaml", "-y")
        self.assertEqual(self.instances(), [])
        self.assertFalse(any(machine["there"] for machine in self.machines().values()))


if __name__ == "__main__":
    unittest.main()
