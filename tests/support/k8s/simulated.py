"""Nodes of testk8s that are not there: kwok says that they are ready, and that pods run on them which nobody runs."""
import concurrent.futures
import json
import pathlib

import binaries
from accounts import done, is_there
from common import CannotBeHad, wait_until

LABEL = "hypertune.test/simulated"  # of the nodes; a taint of the same name keeps all pods off that do not tolerate it
ANNOTATION = "kwok.x-k8s.io/node"
PODS_OF_A_NODE = 100


def start(cluster, count):
    """`count` nodes simulated-1, …; those that are there already are kept."""
    if binaries.missing(kwok=True):
        raise CannotBeHad("kwok is not built yet: tests/support/k8s/testk8s build --kwok")
    if not cluster.pid("kwok"):
        cluster.spawn("kwok", binaries.folder() / "kwok", "--kubeconfig", cluster.config("admin"),
                      "--manage-all-nodes=false", f"--manage-nodes-with-annotation-selector={ANNOTATION}=simulated",
                      "--node-lease-duration-seconds", 40, "--server-address", f"{cluster.facts['ip']}:10247",
                      "--config", pathlib.Path(__file__).resolve().parent / "simulated.yaml",
                      environment={"KWOK_WORKDIR": str(cluster.state / "kwok")}.items())
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: make_node(cluster, f"simulated-{i}"), range(1, count + 1)))

    def ready():
        if not cluster.pid("kwok"):
            raise CannotBeHad(f"kwok ended: see {cluster.state}/log/kwok")
        return ready_count(cluster) >= count

    wait_until(ready, f"that {count} simulated nodes are ready", 120)


def make_node(cluster, name):
    if is_there(cluster, f"/api/v1/nodes/{name}"):
        return
    room = {"cpu": "1000", "memory": "4000Gi", "pods": str(PODS_OF_A_NODE)}
    done(cluster, name, "/api/v1/nodes", "POST", json.dumps({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "true", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
                     "annotations": {ANNOTATION: "simulated"}},
        "spec": {"taints": [{"key": LABEL, "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room}}))


def ready_count(cluster):
    answer = cluster.ask(f"/api/v1/nodes?labelSelector={LABEL}")
    if not answer or answer[0] != 200:
        return 0
    return sum(any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))
               for node in json.loads(answer[1])["items"])
