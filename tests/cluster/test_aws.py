"""The aws provider against moto, a server that plays EC2, by the real AWS command line."""
import socket
import urllib.request

from cluster_case import *


def tools():
    """Folders with `aws` and `moto_server`: those of this machine, or an environment made for the test."""
    if shutil.which("aws") and shutil.which("moto_server"):
        return os.environ["PATH"]
    venv = os.environ.get("HYPERTUNE_AWS_VENV") or tempfile.mkdtemp(prefix="hypertune-aws-")
    made = subprocess.run([ROOT / "scripts/aws-venv", venv], capture_output=True, text=True, timeout=280)
    if made.returncode != 0:
        raise unittest.SkipTest(f"moto and the AWS command line cannot be installed here: {made.stderr[-300:]}")
    return f"{venv}/bin:{os.environ['PATH']}"


class Aws(Case):
    @classmethod
    def setUpClass(cls):
        cls.path = tools()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            cls.port = probe.getsockname()[1]
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
        self.write("id.pub", "ssh-ed25519 AAAATESTKEY me\n")
        self.cluster()

    def aws(self, *arguments):
        return subprocess.run(["aws", "ec2", *arguments, "--endpoint-url", self.url, "--region", "us-east-1", "--output", "json"],
                              env=self.environment, check=True, capture_output=True, text=True, timeout=60).stdout

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

    def instances(self):
        found = []
        for reservation in json.loads(self.aws("describe-instances"))["Reservations"]:
            found += [i for i in reservation["Instances"] if i["State"]["Name"] not in ("terminated", "shutting-down")]
        return found

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
        for file in (self.folder / "state").rglob("*"):
            if file.is_file():
                self.assertNotIn("k3y-that-nobody-sees", file.read_text(errors="replace"))

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


if __name__ == "__main__":
    unittest.main()
