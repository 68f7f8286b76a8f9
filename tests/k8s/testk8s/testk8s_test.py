#!/usr/bin/env python3
"""testk8s itself, and the manifests of deploy/kubernetes on it.

    testk8s_test.py STATE     exit code 3, and why, where there can be no Kubernetes
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tests/support/k8s"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import api  # noqa: E402
from common import is_alive, processes_with, wait_until  # noqa: E402

STATE = pathlib.Path(sys.argv.pop(1)).absolute() if len(sys.argv) > 1 else None
IMAGE = "hypertune.test/sleep:1"
SECONDS = str(200000 + os.getpid())  # what the pods of this run sleep: their processes are known by it


def run(*words):
    return subprocess.run([sys.executable, TOOLS / "testk8s", *map(str, words)], text=True, capture_output=True, timeout=400)


def testk8s(*words, state=None):
    done = run(state or STATE, *words)
    if done.returncode != 0:
        raise AssertionError(f"testk8s {' '.join(map(str, words))}: {done.returncode} {done.stderr}")
    return done.stdout.strip()


def admin():
    return STATE / "admin.kubeconfig"


def ask(path, method="GET", body=None, config=None):
    """Status and what the answer says."""
    answer = api.ask(config or admin(), path, method, json.dumps(body) if body is not None else None)
    if answer is None:
        raise AssertionError(f"{method} {path}: no answer")
    return answer[0], json.loads(answer[1])


def pods_of(namespace="default"):
    return f"/api/v1/namespaces/{namespace}/pods"


def facts():
    return json.loads((STATE / "facts.json").read_text())


def node_name(number):
    return f"{facts()['ip'].rsplit('.', 1)[0]}.{10 + number}"


def make_pod(name, **spec):
    status, said = ask(pods_of(), "POST", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"dnsPolicy": "Default", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                 "containers": [{"name": "it", "image": IMAGE, "imagePullPolicy": "Never"}], **spec}})
    assert status == 201, said


def phase(name):
    status, pod = ask(f"{pods_of()}/{name}")
    return pod.get("status", {}).get("phase") if status == 200 else None


def sleepers():
    """Processes of this run's pods."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and SECONDS.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                if is_alive(int(entry.name)) and b"sleep" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        except OSError:
            pass
    return found


def delete_pods(*names):
    for name in names:
        ask(f"{pods_of()}/{name}", "DELETE", {"gracePeriodSeconds": 0})
    wait_until(lambda: all(phase(name) is None for name in names) and not sleepers(), f"the end of {names}")


def setUpModule():
    testk8s("down")
    place = testk8s("up", 2, "--audit", "--owner", os.getpid())
    assert place == str(admin()), place
    testk8s("image", STATE / "sleep.tar", IMAGE, "/bin/sleep:/bin/sleep", "--", "/bin/sleep", SECONDS)
    testk8s("load", STATE / "sleep.tar")


class Nodes(unittest.TestCase):
    def test_a_pod_runs_with_the_libraries_of_its_program(self):
        make_pod("first", nodeName=node_name(1))
        wait_until(lambda: phase("first") == "Running", "that the pod runs")
        self.assertEqual(len(sleepers()), 1)
        self.assertIn("node1", testk8s("exec", 1, "hostname"))
        self.assertIn(f"node 1 ({node_name(1)}): pid", testk8s("list"))
        delete_pods("first")

    def test_a_node_dies_with_its_pods_and_comes_back(self):
        make_pod("there", nodeName=node_name(2))
        make_pod("elsewhere", nodeName=node_name(1))
        wait_until(lambda: phase("there") == phase("elsewhere") == "Running", "that the pods run")
        testk8s("kill-node", 2)
        self.assertEqual(len(sleepers()), 1)
        self.assertEqual(phase("there"), "Running")  # nobody knows yet
        self.assertIn(f"node 2 ({node_name(2)}): dead", testk8s("list"))
        self.assertEqual(run(STATE, "exec", 2, "true").returncode, 3)
        testk8s("start-node", 2)
        wait_until(lambda: phase("there") == "Failed", "that the pod is called failed")
        make_pod("again", nodeName=node_name(2))
        wait_until(lambda: phase("again") == "Running", "that a pod runs on the node that is back")
        delete_pods("there", "elsewhere", "again")

    def test_a_frozen_node_keeps_its_pods(self):
        make_pod("kept", nodeName=node_name(1))
        wait_until(lambda: phase("kept") == "Running", "that the pod runs")
        testk8s("freeze-node", 1)
        self.assertIsNone(api.ask(admin(), "/healthz", at=(node_name(1), 10250)))
        self.assertEqual(len(sleepers()), 1)
        testk8s("thaw-node", 1)
        wait_until(lambda: api.ask(admin(), "/healthz", at=(node_name(1), 10250)), "that the kubelet answers")
        delete_pods("kept")

    def test_the_api_server_dies_and_comes_back_with_what_it_knew(self):
        make_pod("known", nodeName=node_name(1))
        wait_until(lambda: phase("known") == "Running", "that the pod runs")
        testk8s("kill-apiserver")
        try:
            self.assertIsNone(api.ask(admin(), "/readyz"))
            self.assertEqual(len(sleepers()), 1)
        finally:
            testk8s("start-apiserver")
        self.assertEqual(phase("known"), "Running")
        delete_pods("known")

    def test_there_are_no_other_nodes(self):
        done = run(STATE, "start-node", 6)
        self.assertEqual((done.returncode, done.stderr.strip()), (3, "nodes are numbered 1 to 5"))


class Simulated(unittest.TestCase):
    def test_pods_run_on_nodes_that_are_not_there(self):
        begun = run(STATE, "kwok", 3)
        if "is not built yet" in begun.stderr:
            self.skipTest(begun.stderr.strip())
        self.assertEqual(begun.returncode, 0, begun.stderr)
        testk8s("kwok", 5)
        label = "hypertune.test/simulated"
        names = [f"simulated-{i}" for i in range(1, 21)]
        for name in names:
            make_pod(name, nodeSelector={label: "true"}, tolerations=[{"key": label, "operator": "Exists"}])
        wait_until(lambda: all(phase(name) == "Running" for name in names), "that all run")
        self.assertFalse(sleepers())
        nodes = {ask(f"{pods_of()}/{name}")[1]["spec"]["nodeName"] for name in names}
        self.assertLessEqual(nodes, {f"simulated-{i}" for i in range(1, 6)})
        delete_pods(*names)


class Accounts(unittest.TestCase):
    def test_an_account_may_do_what_its_rules_say_alone(self):
        config = testk8s("user", "reader", "get,list:pods", "create:jobs@batch", "--namespace", "rules")
        self.assertEqual(ask(pods_of("rules"), config=config)[0], 200)
        self.assertEqual(ask("/api/v1/namespaces/rules/secrets", config=config)[0], 403)
        self.assertEqual(ask(pods_of(), config=config)[0], 403)
        self.assertEqual(os.stat(config).st_mode & 0o077, 0)
        self.assertEqual(ask(f"{pods_of('rules')}/x", "DELETE", config=config)[0], 403)
        testk8s("user", "reader", "delete:pods", "--namespace", "rules")  # in place of the others
        wait_until(lambda: ask(pods_of("rules"), config=config)[0] == 403, "that the old rules are gone")
        self.assertEqual(ask(f"{pods_of('rules')}/x", "DELETE", config=config)[0], 404)

    def test_what_is_no_rule_is_named(self):
        done = run(STATE, "user", "wrong", "pods")
        self.assertEqual(done.returncode, 3)
        self.assertIn("'pods' is no rule", done.stderr)

    def test_calls_are_counted(self):
        config = testk8s("user", "counted", "get,list:pods", "--namespace", "counted")
        before = testk8s("calls", "testk8s")
        for _ in range(3):
            ask(f"{pods_of('counted')}/none", config=config)

        def count(text):
            return sum(int(line.split()[0]) for line in text.splitlines() if line.split()[1:] == ["testk8s", "get", "pods", "404"])

        wait_until(lambda: count(testk8s("calls", "testk8s")) == count(before) + 3, "the three calls in the audit log")


class Manifests(unittest.TestCase):
    """deploy/kubernetes: what the accounts may do is exactly this."""

    @staticmethod
    def rules(text):
        """Of the Role in a manifest. tests/k8s/permissions_test.cpp compares them with what hypertune uses."""
        found = re.findall(r'^- \{apiGroups: \["?([\w.]*)"?\], resources: \[([\w/]+)\], verbs: \[([\w, ]+)\]\}$', text, re.M)
        assert len(found) == text.count("apiGroups:") > 4, found
        return {(group, resource): set(verbs.split(", ")) for group, resource, verbs in found}

    def allowed(self, config, namespace):
        """What the API server says that the account may do, but for what everybody may."""
        def rules(of):
            status, said = ask("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "POST", {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                "spec": {"namespace": namespace}}, of)
            self.assertEqual(status, 201, said)
            self.assertFalse(said["status"]["incomplete"])
            return {(group, resource, verb) for rule in said["status"]["resourceRules"] for group in rule["apiGroups"]
                    for resource in rule["resources"] for verb in rule["verbs"]}

        nobody = testk8s("user", "nobody", "--namespace", namespace)
        found = {}
        for group, resource, verb in rules(config) - rules(nobody):
            found.setdefault((group, resource), set()).add(verb)
        return found

    def may(self, config, namespace, group, resource, verb):
        status, said = ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"namespace": namespace, "group": group, "verb": verb,
                                            "resource": resource.split("/")[0], "subresource": "".join(resource.split("/")[1:])}}},
            config)
        self.assertEqual(status, 201, said)
        return said["status"]["allowed"]

    def check(self, config, namespace, expected):
        self.assertEqual(self.allowed(config, namespace), expected)
        for (group, resource), verbs in expected.items():
            for verb in ("create", "get", "list", "watch", "patch", "delete", "update", "deletecollection"):
                self.assertEqual(self.may(config, namespace, group, resource, verb), verb in verbs, (resource, verb))
                self.assertFalse(self.may(config, "kube-system", group, resource, verb), (resource, verb))
        self.assertFalse(self.may(config, namespace, "", "nodes", "list"))
        self.assertFalse(self.may(config, namespace, "rbac.authorization.k8s.io", "rolebindings", "create"))

    def test_a_driver_in_the_cluster(self):
        text = (ROOT / "deploy/kubernetes/driver.yaml").read_text()
        changed = STATE / "driver.yaml"
        changed.write_text(text.replace("namespace: default", "namespace: inside"))
        testk8s("apply", changed, "--namespace", "inside")
        testk8s("apply", changed, "--namespace", "inside")  # a second time changes nothing
        config = testk8s("user", "hypertune-driver", "--namespace", "inside")
        self.check(config, "inside", self.rules(text))

    def test_a_user_outside(self):
        text = (ROOT / "deploy/kubernetes/user.yaml").read_text()
        self.assertEqual(text.count("{kind: User, apiGroup: rbac.authorization.k8s.io, name: somebody@example.org}"), 1)
        changed = STATE / "user.yaml"
        changed.write_text(text.replace("{kind: User, apiGroup: rbac.authorization.k8s.io, name: somebody@example.org}",
                                        "{kind: ServiceAccount, name: somebody, namespace: outside}"))
        config = testk8s("user", "somebody", "--namespace", "outside")
        self.assertEqual(self.allowed(config, "outside"), {})
        testk8s("apply", changed, "--namespace", "outside")
        wait_until(lambda: self.may(config, "outside", "", "pods", "create"), "that the rules hold", 10)
        self.check(config, "outside", self.rules(text))

    def test_who_reaches_whom(self):
        """That the API server takes it; the network of testk8s has nobody who enforces it."""
        testk8s("apply", ROOT / "deploy/kubernetes/network-policy.yaml", "--namespace", "walls")
        _, said = ask("/apis/networking.k8s.io/v1/namespaces/walls/networkpolicies")
        self.assertEqual({each["spec"]["podSelector"]["matchLabels"]["hypertune/role"] for each in said["items"]},
                         {"worker", "driver"})
        for each in said["items"]:
            self.assertEqual(each["spec"]["policyTypes"], ["Ingress"])


class SideBySide(unittest.TestCase):
    def test_another_one_comes_and_goes_with_its_owner(self):
        other = pathlib.Path(f"{STATE}-2")
        testk8s("down", state=other)
        owner = subprocess.Popen(["sleep", "1000"])
        try:
            testk8s("up", 0, "--owner", owner.pid, state=other)
            theirs = json.loads((other / "facts.json").read_text())
            self.assertFalse({theirs[key] for key in ("ip", "net", "bridge")} & {facts()[key] for key in ("ip", "net", "bridge")})
            self.assertEqual(api.ask(other / "admin.kubeconfig", "/readyz")[0], 200)
            self.assertEqual(run(other, "up", 0).returncode, 3)  # it is there already
        finally:
            owner.kill()
            owner.wait()
        wait_until(lambda: not other.exists() and not processes_with(f"TESTK8S={other}"), "that it has gone")
        self.assertFalse(pathlib.Path("/sys/class/net", theirs["bridge"]).exists())
        self.assertEqual(ask("/api/v1/namespaces/default")[0], 200)

    def test_a_folder_of_somebody_else_is_left_alone(self):
        other = pathlib.Path(f"{STATE}-3")
        other.mkdir(exist_ok=True)
        (other / "theirs").write_text("kept")
        try:
            self.assertEqual(run(other, "up", 0).returncode, 3)
            testk8s("down", state=other)
            self.assertEqual((other / "theirs").read_text(), "kept")
        finally:
            (other / "theirs").unlink()
            other.rmdir()


def tearDownModule():
    """Nothing is left."""
    try:
        make_pod("last", nodeName=node_name(1))
        wait_until(lambda: phase("last") == "Running", "that the last pod runs")
        bridge = facts()["bridge"]
        groups = [group for each in STATE.glob("node*/containerd/io.containerd.grpc.v1.cri/*/*") if len(each.name) == 64
                  for group in pathlib.Path("/sys/fs/cgroup").glob(f"**/{each.name}")]
        assert groups, "the pod has no control group"
    finally:
        testk8s("down")
    left = processes_with(f"TESTK8S={STATE}") + sleepers()
    assert not left, f"processes: {left}"
    assert not STATE.exists(), list(STATE.rglob("*"))[:20]
    assert str(STATE) not in pathlib.Path("/proc/mounts").read_text()
    assert not pathlib.Path("/sys/class/net", bridge).exists()
    assert not [group for group in groups if group.exists()], [group for group in groups if group.exists()]


if __name__ == "__main__":
    if STATE is None:
        sys.exit(__doc__)
    why = run("check")
    if why.returncode != 0:
        print(why.stderr.strip())
        sys.exit(why.returncode)
    unittest.main(verbosity=2)
