"""Sweeps on Kubernetes: pods as workers from outside, and the driver as a Job that outlives its pod."""
import base64
import http.server
import re
import shlex
import signal
import threading

from kubernetes_case import *
from serving_in_cluster import *
from support import *

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
name: {name}
trial:
  command: [./train.sh, "{{rate}}"]
  environment: {{STEPS: "{steps}", PAUSE: "{pause}"}}
space: {{rate: {{uniform: [0, 1]}}}}
metric: loss
mode: min
samples: {samples}
seed: 1
failures: {{max_retries: 0}}
executor:
  type: kubernetes
  kubeconfig: {kubeconfig}
  image: {image}
  pool: 1..2
  cpus: 0.2
  save_grace: 20s
  {more}
  pod: {{spec: {{dnsPolicy: Default, containers: [{{name: worker, imagePullPolicy: Never}}]}}}}
output: runs/{name}
"""

# Rank 1 tells rank 0 how many ranks its host has, at the address that it was given.
GANG = r'''#!/bin/sh
if [ "$RANK" = 0 ]; then
  nc -l -p "$MASTER_PORT" -e sh -c 'read -r line; echo "$line" >heard'
  echo "{\"loss\": $(cat heard)}"
else
  until echo "$LOCAL_WORLD_SIZE" | nc -w 5 "$MASTER_ADDR" "$MASTER_PORT"; do sleep 0.2; done
fi
'''

class SuspendAtBirth:
    """An admission controller that suspends each Job that is made, as Kueue does it with manageJobsWithoutQueueName."""
    PLACE = "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    NAME = "suspend-at-birth"

    def __init__(self, tests):
        self.tests = tests
        pki, key = tests.state / "pki", pathlib.Path(tests.place.name) / "webhook"
        if not key.exists():
            subject = ["-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1", "-nodes", "-days", "2"]
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key",
                            "-keyout", key, "-out", f"{key}.crt", *subject], check=True, capture_output=True)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                patch = json.dumps([{"op": "add", "path": "/spec/suspend", "value": True}]).encode()
                review["response"] = {"uid": review.pop("request")["uid"], "allowed": True, "patchType": "JSONPatch",
                                      "patch": base64.b64encode(patch).decode()}
                body = json.dumps(review).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{key}.crt", key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.authority = base64.b64encode((pki / "ca.crt").read_bytes()).decode()

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        url = f"https://127.0.0.1:{self.server.server_address[1]}/"
        rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
        self.tests.ask(self.PLACE, "POST", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.NAME},
            "webhooks": [{"name": "suspend.hypertune.test", "clientConfig": {"url": url, "caBundle": self.authority},
                          "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}]})
        # The API server learns of it in a moment: what it does with a Job is asked without making one.
        job = {"metadata": {"name": "asked"}, "spec": {"parallelism": 0, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "none", "image": "none"}]}}}}
        asked = "apis/batch/v1/namespaces/default/jobs?dryRun=All"
        wait_until(lambda: self.tests.ask(asked, "POST", job)["spec"].get("suspend"), "the admission controller")
        return self

    def __exit__(self, *_):
        self.tests.ask(f"{self.PLACE}/{self.NAME}", "DELETE")
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Kubernetes(ServingInCluster, KubernetesCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        record = pathlib.Path(cls.place.name) / "record"
        record.mkdir()
        cls.make_volume("record", record)

    def setUp(self):
        super().setUp()
        train = self.folder / "train.sh"
        train.write_text(TRAINER)
        train.chmod(0o755)

    def pods_of(self, role):
        return [pod for pod in self.objects("pods") if pod["metadata"]["labels"].get("hypertune/role") == role]

    def suspend(self, job, value):
        self.ask(f"apis/batch/v1/namespaces/default/jobs/{job}", "PATCH", {"spec": {"suspend": value}},
                 "application/merge-patch+json")

    def steps(self, sweep):
        """That the experiment has recorded; 0 also where nothing can be read."""
        done = self.start("status", "--kubernetes", sweep, "--format", "json")
        out, _ = done.communicate(timeout=120)
        return json.loads(out)["reports"] if done.returncode == 0 else 0

    def check_done(self, sweep, trials, steps):
        out, _ = self.run_command("results", "--kubernetes", sweep, "--format", "json")
        self.assertEqual([(t["state"], t["steps"], t["failures"]) for t in json.loads(out)],
                         [("completed", steps, 0)] * trials)
        self.run_command("down", "--kubernetes", sweep)
        self.check_gone()

    def running(self, role):
        return [pod["metadata"]["name"] for pod in self.objects("pods")
                if pod["metadata"]["labels"].get("hypertune/role") == role and pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]]

    def sweep(self, samples=4, steps=4, pause=0, more="", name="away"):
        return self.write(SWEEP.format(name=name, kubeconfig=self.state / "admin.kubeconfig", image=IMAGE, samples=samples,
                                       steps=steps, pause=pause, more=more))

    def check_gone(self):
        """Nothing of an experiment is left, but what finished Jobs and claims are there for."""
        wait_until(lambda: not self.objects("pods") and not self.objects("jobs", "apis/batch/v1"), "the end of all objects", 60)

    def test_a_sweep_from_outside(self):
        sweep = self.sweep()
        self.run_command("run", sweep)
        self.assertEqual([(t["state"], t["steps"]) for t in self.results("runs/away")], [("completed", 4)] * 4)
        self.check_gone()

    def test_a_trial_of_two_pods_needs_no_network(self):
        (self.folder / "train.sh").write_text(GANG)
        sweep = self.sweep(samples=2, more="")
        sweep_file = self.folder / sweep
        sweep_file.write_text(sweep_file.read_text() + "workers: {min: 2, placement: strict_spread}\n")
        self.assertIn("is sound", self.run_command("check", sweep)[0])
        self.run_command("run", sweep)
        self.assertEqual([(t["state"], t["metrics"]["loss"], t["failures"]) for t in self.results("runs/away")],
                         [("completed", 1, 0)] * 2)
        self.check_gone()

    def test_what_ordered_trials_wait_for_is_said(self):
        """Pods that find no node: nothing comes back, and status says what is waited for."""
        sweep = self.sweep(samples=2, more="node_selector: {hypertune.test/nowhere: here}")
        (self.folder / sweep).write_text((self.folder / sweep).read_text() + "ordered: true\n")
        run = self.start("run", sweep)
        said = lambda: self.start("status", "runs/away").communicate(timeout=30)[0]
        wait_until(lambda: "trial 0 has not begun: waits for worker-1: waits for a node (" in said(), "the reason", 60)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
        self.assertNotIn("come back", err)
        self.check_gone()

    def test_a_quota_for_which_ordered_trials_stand_still_is_said_with_what_mends_it(self):
        quotas = "api/v1/namespaces/default/resourcequotas"
        self.ask(quotas, "POST", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"},
                                  "spec": {"hard": {"pods": "1"}}})
        try:
            wait_until(lambda: "hard" in self.ask(f"{quotas}/one")["status"], "the quota")
            sweep = self.sweep(samples=2, name="few")
            (self.folder / sweep).write_text((self.folder / sweep).read_text() + "ordered: true\n")
            log = self.folder / "said"
            with log.open("w") as out:
                run = subprocess.Popen([HYPERTUNE, "run", sweep, "--plain"], cwd=self.folder, env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
            self.addCleanup(lambda: (run.kill(), run.wait()))
            wait_until(lambda: "decided in order" in log.read_text(), "what is said of it", 120)
            said = log.read_text()
            self.assertIn("trials are decided in order, so that all wait until each of the 2 workers is there, and 1 of them "
                          "finds no room (waits for quota (", said)
            self.assertIn("set pool to 1, make room (a larger quota, more nodes), or write ordered: false", said)
        finally:
            self.ask(f"{quotas}/one", "DELETE")
        # Once there is room it goes on, as it would have.
        self.assertEqual(run.wait(timeout=120), 0, log.read_text())
        self.assertEqual([(t["state"], t["steps"]) for t in self.results("runs/few")], [("completed", 4)] * 2)
        self.check_gone()

    def test_the_driver_in_the_cluster_outlives_its_pod(self):
        sweep = self.sweep(samples=4, steps=30, pause=0.4, more="program: /usr/bin/hypertune")
        driver = self.start("submit", "--kubernetes", sweep, "--volume", "record")
        wait_until(lambda: len(self.running("worker")) == 2, "two workers", 60)
        workers = sorted(self.running("worker"))
        _, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", code=2)
        self.assertIn("under way", error)
        wait_until(lambda: self.steps(sweep) > 4, "some steps", 60)
        for grace in (0, 30):  # killed, and told to leave
            [pod] = self.running("driver")
            self.delete(pod, grace)
            wait_until(lambda: self.running("driver") not in ([], [pod]), "another driver", 120)
            before = self.steps(sweep)
            wait_until(lambda: self.steps(sweep) > before, "further steps", 60)
        self.assertEqual(sorted(self.running("worker")), workers)  # they waited
        out, error = driver.communicate(timeout=200)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("4/4 trials", out)
        self.check_done(sweep, 4, 30)
        self.assertEqual([s["metadata"]["name"] for s in self.objects("secrets")], [])

    def test_workers_wait_for_the_next_driver_where_no_trial_waits(self):
        sweep, driver = self.submitted("calm", samples=2, steps=80)
        workers = sorted(self.running("worker"))
        for _ in range(2):  # told to leave: its trials have ended when it goes
            [pod] = self.running("driver")
            self.delete(pod, 30)
            wait_until(lambda: self.running("driver") not in ([], [pod]), "another driver", 120)
            before = self.steps(sweep)
            wait_until(lambda: self.steps(sweep) > before, "further steps", 60)
            self.assertEqual(sorted(self.running("worker")), workers)
        out, error = driver.communicate(timeout=200)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("2/2 trials", out)
        wait_until(lambda: not self.pods_of("worker"), "the end of the workers with the sweep", 60)
        self.check_done(sweep, 2, 80)

    def submitted(self, name, more="", samples=4, steps=30, pause=0.4):
        """A sweep whose driver is in the cluster, once its workers work: its file, and the command that follows it."""
        sweep = self.sweep(samples, steps, pause, "program: /usr/bin/hypertune\n  " + more, name)
        driver = self.start("submit", "--kubernetes", sweep, "--volume", "record")
        self.addCleanup(lambda: (driver.kill(), driver.communicate()))
        wait_until(lambda: len(self.running("worker")) == 2 and self.steps(sweep) > 4, "some steps of two workers", 90)
        return sweep, driver

    def test_the_node_of_the_driver_dies(self):
        sweep, driver = self.submitted("node")
        [pod] = [pod for pod in self.pods_of("driver") if pod["metadata"]["name"] in self.running("driver")]
        first, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        number = int(node.rsplit(".", 1)[1]) - 10
        self.assertEqual(self.kubernetes("kill-node", number).returncode, 0)
        try:
            def another():
                return [pod for pod in self.pods_of("driver") if pod["metadata"]["name"] != first
                        and pod["spec"].get("nodeName") not in (None, node) and pod["status"].get("phase") == "Running"]
            wait_until(another, "a driver on another node", 180)
            out, error = driver.communicate(timeout=150)
        finally:
            self.assertEqual(self.kubernetes("start-node", number).returncode, 0)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("4/4 trials", out)
        self.check_done(sweep, 4, 30)

    def test_the_node_of_the_driver_does_not_answer_and_its_pod_goes_on(self):
        """Nobody can tell the pod that another one takes its place, but that it is deleted it can read itself."""
        sweep, driver = self.submitted("frozen", steps=120, pause=0.5)
        [pod] = [pod for pod in self.pods_of("driver") if pod["metadata"]["name"] in self.running("driver")]
        first, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        number = int(node.rsplit(".", 1)[1]) - 10

        def drives(name):
            """Whether a driver runs in the pod: containers are processes of this machine."""
            mark = f"HYPERTUNE_POD_NAME={name}".encode()
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if (process / "comm").read_text().strip() == "hypertune" and mark in (process / "environ").read_bytes():
                        return True
                except OSError:
                    pass
            return False

        self.assertTrue(drives(first))
        self.assertEqual(self.kubernetes("freeze-node", number).returncode, 0)
        try:
            wait_until(lambda: [name for name in self.running("driver") if name != first], "another driver", 180)
            [second] = [name for name in self.running("driver") if name != first]
            wait_until(lambda: drives(second) and not drives(first), "that the first one has left", 60)
            before = self.steps(sweep)
            wait_until(lambda: self.steps(sweep) > before + 4, "further steps", 90)
            self.assertFalse(drives(first))
        finally:
            self.assertEqual(self.kubernetes("thaw-node", number).returncode, 0)
        out, error = driver.communicate(timeout=250)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("4/4 trials", out)
        self.assertEqual([name for name in self.running("driver")], [])
        self.check_done(sweep, 4, 120)

    def test_the_driver_is_suspended_and_resumed(self):
        sweep, driver = self.submitted("rest")
        self.suspend("rest", True)
        wait_until(lambda: not self.objects("pods"), "the end of all pods", 90)
        saved = self.steps(sweep)  # by a pod that only reads
        self.assertGreater(saved, 4)
        self.assertIsNone(driver.poll())
        self.suspend("rest", False)
        out, error = driver.communicate(timeout=200)
        self.assertEqual(driver.returncode, 0, error)
        self.assertIn("is suspended", error)
        self.assertIn("4/4 trials", out)
        self.check_done(sweep, 4, 30)

    def test_jobs_that_are_suspended_at_their_birth(self):
        with SuspendAtBirth(self):
            sweep = self.sweep(name="born", more="program: /usr/bin/hypertune")
            driver = self.start("submit", "--kubernetes", sweep, "--volume", "record")
            self.addCleanup(lambda: (driver.kill(), driver.communicate()))
            jobs = wait_until(lambda: self.objects("jobs", "apis/batch/v1"), "the job")
            self.assertTrue(jobs[0]["spec"]["suspend"])
            said = driver.stderr.readline()
            self.assertIn("the driver's pod waits until its job is resumed, which is suspended", said)
            self.suspend("born", False)  # as its queue does when there is room
            out, error = driver.communicate(timeout=200)
            self.assertEqual(driver.returncode, 0, error)
            self.assertIn("4/4 trials", out)
            self.check_done(sweep, 4, 4)
            # A driver outside has a Job without pods, for which no queue's controller has anything to admit.
            self.run_command("run", self.sweep(name="outside"))
            self.assertEqual([(t["state"], t["steps"]) for t in self.results("runs/outside")], [("completed", 4)] * 4)
            self.check_gone()

    def test_checkpoints_on_a_claim_are_not_copied(self):
        sweep = self.sweep(2, more="program: /usr/bin/hypertune\n  volume: record", name="claimed")
        out, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", timeout=200)
        self.assertNotIn("does not share", out + error)
        volume = pathlib.Path(self.place.name) / "record"
        [shared] = volume.glob("experiment-*")
        for trial in range(2):
            part = pathlib.Path("trials") / str(trial) / "checkpoints"
            self.assertEqual(os.readlink(volume / "claimed/experiment" / part), f"/hypertune-checkpoints/{shared.name}/{part}")
            self.assertTrue(list((shared / part).iterdir()))
        self.check_done(sweep, 2, 4)

    def test_a_worker_that_is_evicted_is_announced_once(self):
        sweep = self.sweep(2, 20, 0.3, name="evicted")
        run = self.start("run", sweep)
        self.addCleanup(lambda: (run.kill(), run.communicate()))
        wait_until(lambda: len(self.running("worker")) == 2, "two workers", 60)
        pod = self.running("worker")[0]
        self.ask(f"api/v1/namespaces/default/pods/{pod}/eviction", "POST",
                 {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
        out, error = run.communicate(timeout=200)
        self.assertEqual(run.returncode, 0, error)
        about = [line for line in (out + error).splitlines() if "was evicted" in line]
        self.assertEqual(len(about), 1, out + error)
        self.assertEqual([(t["state"], t["steps"]) for t in self.results("runs/evicted")], [("completed", 20)] * 2)
        self.check_gone()

    def test_a_sweep_that_cannot_run_makes_no_job(self):
        sweep = self.sweep(more="program: /usr/bin/hypertune")
        # Here, before anything is made.
        self.run_command("submit", "--kubernetes", sweep, "--volume", "record", "--set", "schedule.type=nothing", code=2)
        self.assertEqual(self.objects("jobs", "apis/batch/v1"), [])

    def printed(self, text, command):
        """The words of a command that was printed as `hypertune COMMAND …`, to be run as they are."""
        return shlex.split(re.search(f"`hypertune ({command} [^`]*)`", text).group(1))

    def test_a_sweep_that_has_ended_is_submitted_again_for_more_trials(self):
        sweep = self.sweep(2, more="program: /usr/bin/hypertune", name="other")
        named = ("submit", "--kubernetes", sweep, "--volume", "record", "--set", "name=grown")

        def check(words, trials):
            results, _ = self.run_command(*words, "--format", "json")
            self.assertEqual([(t["state"], t["steps"]) for t in json.loads(results)], [("completed", 4)] * trials)

        _, said = self.run_command(*named)
        check(self.printed(said, "results"), 2)
        other = [word for word in named if word not in ("--volume", "record")]
        _, error = self.run_command(*other, code=2)
        self.assertIn("has its record on the volume claim 'record', and a new record would begin on 'grown': submit with "
                      "--volume record to go on with that record", error)
        self.assertEqual([claim["metadata"]["name"] for claim in self.objects("persistentvolumeclaims")], ["record"])
        out, _ = self.run_command(*named, "--samples", "3")
        self.assertIn("3/3 trials", out)
        _, said = self.run_command(*self.printed(said, "down"))
        self.assertIn("its record stays on the volume claim 'record', which is yours", said)
        check(self.printed(said, "results"), 3)  # by a pod that only reads
        self.run_command(*named, "--samples", "4")
        check(("results", "--kubernetes", sweep, "--set", "name=grown"), 4)
        self.run_command("down", "--kubernetes", sweep, "--set", "name=grown")
        self.check_gone()

    def kill_a_submission(self, sweep):
        """Leaves a Job that is suspended, and to which nobody brings its files."""
        with SuspendAtBirth(self):
            killed = self.start("submit", "--kubernetes", sweep, "--volume", "record")
            self.assertIn("is suspended", killed.stderr.readline())
            killed.kill()
            killed.communicate()

    def test_a_job_to_which_nobody_brings_files_makes_way(self):
        sweep = self.sweep(2, more="program: /usr/bin/hypertune", name="alone")
        self.kill_a_submission(sweep)
        self.suspend("alone", False)
        wait_until(lambda: self.running("driver"), "the driver's pod", 60)
        out, error = self.run_command("status", "--kubernetes", sweep, code=2)
        self.assertEqual(out, "")
        self.assertIn("no files have come yet", error)
        out, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", timeout=200)
        self.assertIn("another job takes its place", error)
        self.assertIn("2/2 trials", out)
        self.check_done(sweep, 2, 4)

    def test_a_job_that_waits_for_its_files_in_vain_fails(self):
        sweep = self.sweep(2, more="program: /usr/bin/hypertune", name="vain")
        self.kill_a_submission(sweep)
        # The same Job, but for its patience: ten minutes are long for a test.
        jobs = "apis/batch/v1/namespaces/default/jobs"
        [job] = self.objects("jobs", "apis/batch/v1")
        self.ask(f"{jobs}/vain?propagationPolicy=Background", "DELETE")
        wait_until(lambda: not self.objects("jobs", "apis/batch/v1"), "the end of the job")
        template = job["spec"]["template"]
        for label in ("controller-uid", "job-name"):
            for name in (label, f"batch.kubernetes.io/{label}"):
                template["metadata"]["labels"].pop(name, None)
        command = template["spec"]["containers"][0]["command"]
        self.assertIn(" patience=600 ", command[2])
        command[2] = command[2].replace(" patience=600 ", " patience=2 ")
        self.ask(jobs, "POST", {"apiVersion": "batch/v1", "kind": "Job",
                                "metadata": {key: job["metadata"][key] for key in ("name", "labels", "annotations")},
                                "spec": {"backoffLimit": job["spec"]["backoffLimit"], "template": template}})
        out, error = self.run_command("attach", "--kubernetes", sweep, code=1)
        self.assertIn("nobody has brought its files: submit it again", out)
        self.assertIn("the job 'vain' has failed: nobody has brought its files: submit it again", error)
        self.assertEqual([c["type"] for c in self.ask(f"{jobs}/vain")["status"]["conditions"] if c["status"] == "True"
                          and c["type"] in ("Complete", "Failed")], ["Failed"])
        out, error = self.run_command("status", "--kubernetes", sweep, code=2)
        self.assertEqual(out, "")
        self.assertIn("the job 'vain' has failed: nobody has brought its files", error)
        out, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", timeout=200)
        self.assertIn("2/2 trials", out)
        self.check_done(sweep, 2, 4)

    def test_an_image_without_what_the_program_needs_fails_the_job_at_once(self):
        busybox = shutil.which("busybox")
        links = [f"/bin/busybox@/bin/{name}" for name in subprocess.run(
            [busybox, "--list"], capture_output=True, text=True).stdout.split() if name != "busybox"]
        # One with nothing but busybox, which needs no library, and one with libc, as `true` needs no other.
        for name, more, cause in (("bare", [], "has no dynamic loader for './hypertune'"),
                                  ("libc", ["/usr/bin/true:/usr/bin/true"], "lacks libraries of './hypertune': ")):
            image, tar = f"hypertune.test/{name}:1", pathlib.Path(self.place.name) / f"{name}.tar"
            for words in (("image", tar, image, f"{busybox}:/bin/busybox", *more, *links, "--", "/bin/sh"), ("load", tar)):
                done = self.kubernetes(*words)
                self.assertEqual(done.returncode, 0, done.stderr)
            sweep = self.sweep(2, name=name)
            out, error = self.run_command("submit", "--kubernetes", sweep, "--volume", "record", "--detach", "--set",
                                          f"executor.image={image}", code=1, timeout=200)
            self.assertIn(f"the job '{name}' has failed: the image '{image}' {cause}", error)
            self.assertNotIn("runs in namespace", error)
            if name == "libc":
                self.assertIn(" libfmt.so", error)
                self.assertIn(" libyaml-cpp.so", error)
            self.assertEqual(len(self.pods_of("driver")), 1)
            _, error = self.run_command("attach", "--kubernetes", sweep, code=1)
            self.assertIn(f"has failed: the image '{image}' {cause}", error)
            self.run_command("down", "--kubernetes", sweep)
            self.check_gone()

    def test_why_there_is_no_pod_of_the_driver_is_said(self):
        sweep = self.sweep(more="program: /usr/bin/hypertune", name="none")
        words = ("submit", "--kubernetes", sweep, "--volume", "record")
        _, error = self.run_command(*words, "--service-account", "nobody", code=2)
        self.assertIn("there is no service account 'nobody' in namespace 'default'", error)
        quotas = "api/v1/namespaces/default/resourcequotas"
        self.ask(quotas, "POST", {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
                                  "spec": {"hard": {"pods": "0"}}})
        try:
            wait_until(lambda: "hard" in self.ask(f"{quotas}/none")["status"], "the quota")
            driver = self.start(*words)
            self.addCleanup(lambda: (driver.kill(), driver.communicate()))
            said = ""
            while "exceeded quota" not in said:
                self.assertTrue(line := driver.stderr.readline(), said)
                said += line
            self.assertIn("the driver's pod cannot be made", said)
            driver.send_signal(signal.SIGINT)
            _, error = driver.communicate(timeout=60)
            self.assertIn("the job 'none' has not begun, and is gone", error)
        finally:
            self.ask(f"{quotas}/none", "DELETE")
        self.check_gone()

    def test_what_is_not_there_is_said(self):
        _, error = self.run_command("attach", "--kubernetes", self.sweep(), code=2)
        self.assertIn("there is no job 'away' in namespace 'default'", error)
        _, error = self.run_command("results", "--kubernetes", self.sweep(), code=2)
        self.assertIn("there is no job 'away' and no volume claim 'away' in namespace 'default'", error)
        self.assertEqual(self.objects("pods"), [])
        local = self.write("name: a\ntrial: {command: [x]}\nspace: {x: {uniform: [0, 1]}}\nmetric: l\nmode: min\nsamples: 1\n")
        _, error = self.run_command("submit", "--kubernetes", local, code=2)
        self.assertIn("executor: {type: kubernetes", error)


if __name__ == "__main__":
    unittest.main()
