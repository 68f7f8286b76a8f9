#!/usr/bin/env python3
"""Many pods on nodes that are simulated: scale.py [--nodes N] [--pods N] [--out FILE] [-- COMMAND…]

Starts a Kubernetes (tests/support/k8s/testk8s) whose nodes are kwok's: its API server, scheduler and controllers are real,
and pods run as soon as they have a node, but nothing runs in them. Measures how long it takes until all pods run, and how
many calls of the API server that takes for each pod (from its audit log), by who calls, without those of kwok itself:

    bare pods        a client makes the pods
    a Job each       a client makes a Job for each pod, as a design does that gives each trial a Job
    COMMAND          with KUBECONFIG, and PODS in its environment: also its memory every five seconds, and all calls to
                     its end. Its pods have to select nodes by the label hypertune.test/simulated and to tolerate the
                     taint of that name. benchmark_fleet does, which makes pods as hypertune's executor makes them.

With COMMAND only that is measured unless --all is given. Prints a table, and writes a line of JSON per row to FILE.
Needs what testk8s needs, and kwok: `testk8s build --kwok`.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tests/support/k8s"
sys.path.insert(0, str(TOOLS))
import api  # noqa: E402
import audit  # noqa: E402

LABEL = "hypertune.test/simulated"
SPEC = {"nodeSelector": {LABEL: "true"}, "tolerations": [{"key": LABEL, "operator": "Exists"}], "restartPolicy": "Never",
        "containers": [{"name": "none", "image": "none"}]}
OBSERVER = "observer"  # its calls are not counted


def testk8s(state, *words):
    done = subprocess.run([sys.executable, TOOLS / "testk8s", state, *map(str, words)], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"testk8s {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class Cluster:
    def __init__(self, state, nodes):
        self.state = state
        self.config = testk8s(state, "up", 0, "--audit", "--owner", os.getpid())
        testk8s(state, "kwok", nodes)
        self.observer = api.Session(self.config, agent=OBSERVER, timeout=120)
        self.clients = threading.local()

    def post(self, path, body):
        if not hasattr(self.clients, "session"):
            self.clients.session = api.Session(self.config, agent="client", timeout=60)
        answer = self.clients.session.ask(path, "POST", json.dumps(body))
        if not answer or answer[0] != 201:
            sys.exit(f"POST {path}: {answer}")

    def observe(self, path, method="GET"):
        answer = self.observer.ask(path, method)
        if not answer or answer[0] >= 300:
            sys.exit(f"{method} {path}: {answer}")
        return json.loads(answer[1])

    def pods(self, phase=None):
        """From the API server's memory: the question costs it little."""
        items = self.observe("/api/v1/namespaces/default/pods?resourceVersion=0")["items"]
        return sum(phase in (None, item["status"].get("phase")) for item in items)

    def calls(self):
        return audit.calls(pathlib.Path(self.state) / "audit.log")

    def clear(self):
        for path in ("/apis/batch/v1/namespaces/default/jobs?propagationPolicy=Background", "/api/v1/namespaces/default/pods"):
            self.observe(path, "DELETE")
        wait_until(lambda: self.pods() == 0, "the end of all pods")


def wait_until(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{what} has not come about within {seconds} s")
        time.sleep(0.2)


def row(cluster, name, pods, before, **more):
    """What was called since `before`, for each pod and by whom."""
    by = collections.Counter()
    for (agent, *_), count in (cluster.calls() - before).items():
        agent = agent.split("/")[0]
        if agent not in (OBSERVER, "kwok", "kube-apiserver"):
            by[agent] += count
    return {"name": name, "pods": pods, **more, "calls_per_pod": round(sum(by.values()) / pods, 2),
            "by": {agent: round(count / pods, 2) for agent, count in by.most_common() if count >= pods / 100}}


def made_by_client(cluster, name, pods, path, body):
    before, begin = cluster.calls(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cluster.post(path, {**body, "metadata": {"name": f"p{i}"}}), range(pods)))
    made = time.monotonic() - begin
    wait_until(lambda: cluster.pods("Running") >= pods, f"that {pods} pods run")
    run = time.monotonic() - begin
    result = row(cluster, name, pods, before, made_s=round(made, 1), all_run_s=round(run, 1))
    cluster.clear()
    return result


def resident_mib(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def made_by_command(cluster, pods, command):
    before, begin = cluster.calls(), time.monotonic()
    child = subprocess.Popen(command, env={**os.environ, "KUBECONFIG": cluster.config, "PODS": str(pods)})
    most, reached, ended, until_run, memory = 0, 0.0, None, None, []
    while ended is None:
        running = cluster.pods("Running")
        if running > most:
            most, reached = running, time.monotonic() - begin
        if until_run is None and running >= pods:
            until_run = row(cluster, "", pods, before)
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            ended = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() - begin >= 5 * len(memory):
            memory.append(resident_mib(child.pid))
        time.sleep(0.2)
    child.returncode = ended
    result = row(cluster, pathlib.Path(command[0]).name, pods, before, all_run_s=round(reached, 1), max_at_once=most,
                 until_run=until_run and {key: until_run[key] for key in ("calls_per_pod", "by")},
                 memory_mib_each_5_s=memory, exit_code=ended, whole_s=round(time.monotonic() - begin, 1), peak_memory_mib=round(used.ru_maxrss / 1024, 1),
                 left_behind=cluster.pods())
    cluster.clear()
    return result


def main():
    words, command = sys.argv[1:], []
    if "--" in words:
        words, command = words[:words.index("--")], words[words.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--out")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args(words)
    if arguments.pods > 100 * arguments.nodes:
        parser.error("a simulated node has room for 100 pods")
    with tempfile.TemporaryDirectory(prefix="k8s-", dir="/tmp") as folder:
        cluster = Cluster(pathlib.Path(folder) / "s", arguments.nodes)
        try:
            rows = []
            if arguments.all or not command:
                pod = {"apiVersion": "v1", "kind": "Pod", "spec": SPEC}
                job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": SPEC}}}
                rows.append(made_by_client(cluster, "bare pods", arguments.pods, "/api/v1/namespaces/default/pods", pod))
                rows.append(made_by_client(cluster, "a Job each", arguments.pods, "/apis/batch/v1/namespaces/default/jobs", job))
            if command:
                rows.append(made_by_command(cluster, arguments.pods, command))
        finally:
            testk8s(cluster.state, "down")
    for each in rows:
        print(", ".join(f"{key} {value}" for key, value in each.items()))
    if arguments.out:
        pathlib.Path(arguments.out).write_text("".join(json.dumps(each) + "\n" for each in rows))


main()
