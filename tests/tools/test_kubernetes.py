"""Sweeps on Kubernetes: pods as workers from outside, and the driver as a Job that outlives its pod."""
import ssl
import tempfile
import urllib.request

from support import *

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TESTK8S = REPOSITORY / "tests/support/k8s/testk8s"
IMAGE = "hypertune.test/hypertune:1"

TRAINER = r'''#!/bin/sh
step=${HYPERTUNE_STEP:-0}
while [ "$step" -lt "$STEPS" ]; do
  sleep "$PAUSE"
  mkdir -p "$HYPERTUNE_CHECKPOINT/step-$step"
  echo "$step" >"$HYPERTUNE_CHECKPOINT/step-$step/done"
  echo "{\"step\": $step, \"loss\": $(awk "BEGIN {print $1 + 1 / ($step + 1)}"), \"checkpoint\": \"step-$step\"}"
  step=$((step + 1))
done
'''

SWEEP = """\
name: away
trial:
  command: [./train.sh, "{{rate}}"]
  environment: {{STEPS: "{steps}", PAUSE: "{pause}"}}
space: {{rate: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: {samples}
seed: 1
failures: {{max: 0}}
executor:
  type: kubernetes
  kubeconfig: {kubeconfig}
  image: {image}
  workers: 1..2
  cpus: 0.2
  notice: 20s
  {more}
  pod: {{spec: {{dnsPolicy: Default, containers: [{{name: worker, imagePullPolicy: Never}}]}}}}
output: runs/away
"""

class Kubernetes(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = tempfile.TemporaryDirectory(prefix="ht")
        cls.addClassCleanup(cls.place.cleanup)
        cls.state = pathlib.Path(cls.place.name) / "k"
        cls.addClassCleanup(lambda: cls.kubernetes("down"))
        done = cls.kubernetes("up", 2, "--owner", os.getpid())
        if done.returncode == 3:
            raise unittest.SkipTest(done.stderr.strip())
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        busybox = shutil.which("busybox")
        if not busybox:
            raise unittest.SkipTest("Kubernetes: there is no busybox (Debian's package busybox-static)")
        names = subprocess.run([busybox, "--list"], capture_output=True, text=True).stdout.split()
        program = pathlib.Path(cls.place.name) / "hypertune"
        subprocess.run(["strip", "-o", program, os.environ["HYPERTUNE"]], check=True)
        tar = pathlib.Path(cls.place.name) / "image.tar"
        for words in (("image", tar, IMAGE, f"{busybox}:/bin/busybox", f"{program}:/usr/bin/hypertune",
                       *[f"/bin/busybox@/bin/{name}" for name in names if name != "busybox"], "--", "/bin/sh"),
                      ("load", tar), ("apply", REPOSITORY / "deploy/kubernetes/driver.yaml")):
            done = cls.kubernetes(*words)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        # A volume that all nodes reach, as they are on one machine.
        record = pathlib.Path(cls.place.name) / "record"
        record.mkdir()
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        cls.ask("api/v1/persistentvolumes", "POST", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "record"},
            "spec": {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(record)}}})
        cls.ask("api/v1/namespaces/default/persistentvolumeclaims", "POST", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "record"},
            "spec": {**spec, "volumeName": "record", "resources": {"requests": {"storage": "1Gi"}}}})

    @classmethod
    def kubernetes(cls, *words):
        return subprocess.run([str(TESTK8S), str(cls.state), *map(str, words)], capture_output=True, text=True)

    def setUp(self):
        super().setUp()
        train = self.folder / "train.sh"
        train.write_text(TRAINER)
        train.chmod(0o755)

    @classmethod
    def ask(cls, path, method="GET", body=None):
        facts, pki = json.loads((cls.state / "facts.json").read_text()), cls.state / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        request = urllib.request.Request(f"https://{facts['ip']}:6443/{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.load(answer)

    def objects(self, kind, group="api/v1"):
        return self.ask(f"{group}/namespaces/default/{kind}")["items"]

    def delete(self, pod, grace):
        self.ask(f"api/v1/namespaces/default/pods/{pod}?gracePeriodSeconds={grace}", "DELETE")

    def running(self, role):
        return [pod["metadata"]["name"] for pod in self.objects("pods")
                if pod["metadata"]["labels"].get("hypertune/role") == role and pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]]

    def sweep(self, samples=4, steps=4, pause=0, more=""):
        return self.write(SWEEP.format(kubeconfig=self.state / "admin.kubeconfig", image=IMAGE, samples=samples,
                                       steps=steps, pause=pause, more=more))

    def check_gone(self):
        """Nothing of an experiment is left, but what finished Jobs and claims are there for."""
        wait_until(lambda: not self.objects("pods") and not self.objects("jobs", "apis/batch/v1"), "the end of all objects", 60)

    def test_a_sweep_from_outside(self):
        sweep = self.sweep()
        self.run_command("run", sweep)
        self.assertEqual([(t["state"], t["steps"]) for t in self.results("runs/away")], [("completed", 4)] * 4)
        self.check_gone()

    def test_the_driver_in_the_cluster_outlives_its_pod(self):
        sweep = self.sweep(samples=4, steps=30, pause=0.4, more="program: /usr/bin/hypertune")
        driver = self.start("submit", "--kubernetes", sweep, "--volume", "record")
        wait_until(lambda: len(self.running("worker")) == 2, "two workers", 60)
        workers = sorted(self.running("worker"))
        _, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", code=2)
        self.assertIn("under way", error)

        def steps():
            done = self.start("status", "--kubernetes", sweep, "--format", "json")
            out, _ = done.communicate(timeout=120)
            return json.loads(out)["reports"] if done.returncode == 0 else 0

        wait_until(lambda: steps() > 4, "some steps", 60)
        for grace in (0, 30):  # killed, and told to leave
            [pod] = self.running("driver")
            self.delete(pod, grace)
            wait_until(lambda: self.running("driver") not in ([], [pod]), "another driver", 120)
            before = steps()
            wait_until(lambda: steps() > before, "further steps", 60)
        self.assertEqual(sorted(self.running("worker")), workers)  # they waited
        out, error = driver.communicate(timeout=200)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("4/4 trials", out)
        out, _ = self.run_command("results", "--kubernetes", sweep, "--format", "json")
        self.assertEqual([(t["state"], t["steps"], t["failures"]) for t in json.loads(out)],
                         [("completed", 30, 0)] * 4)
        self.run_command("down", "--kubernetes", sweep)
        self.check_gone()
        self.assertEqual([s["metadata"]["name"] for s in self.objects("secrets")], [])

    def test_a_sweep_that_cannot_run_makes_no_job(self):
        sweep = self.sweep(more="program: /usr/bin/hypertune")
        # Here, before anything is made.
        self.run_command("submit", "--kubernetes", sweep, "--volume", "record", "--set", "schedule.type=nothing", code=2)
        self.assertEqual(self.objects("jobs", "apis/batch/v1"), [])

    def test_what_is_not_there_is_said(self):
        _, error = self.run_command("attach", "--kubernetes", self.sweep(), code=2)
        self.assertIn("there is no job 'away' in namespace 'default'", error)
        local = self.write("name: a\ntrial: {command: [x]}\nspace: {x: {uniform: [0, 1]}}\nmetric: l\nmode: min\nsamples: 1\n")
        _, error = self.run_command("submit", "--kubernetes", local, code=2)
        self.assertIn("executor: {type: kubernetes", error)


if __name__ == "__main__":
    unittest.main()
