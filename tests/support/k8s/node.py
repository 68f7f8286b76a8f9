"""A node of testk8s: a containerd and a kubelet in namespaces of their own, so that what dies with their first process is
what would die with the machine."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import api
import binaries
from common import CannotBeHad, call, is_alive, kill, wait_until

PAUSE_IMAGE = "hypertune.test/pause:1"
MOST = 5  # nodes: the addresses of pods are shared among them


def address(cluster, number):
    return f"{cluster.facts['ip'].rsplit('.', 1)[0]}.{10 + number}"


def numbers(cluster):
    """Of all nodes that were ever started."""
    return sorted(int(each.name[4:]) for each in cluster.state.glob("node*") if each.is_dir() and each.name[4:].isdigit())


def first(cluster, number):
    """The process that is the first of the node's namespaces; none: it is dead."""
    outer = cluster.pid(f"node{number}")
    return next(iter(children(outer)), None) if outer else None


def execute(cluster, number, command):
    """In place of this process."""
    pid = first(cluster, number)
    if not pid:
        raise CannotBeHad(f"node {number} does not run")
    os.execvp("nsenter", ["nsenter", "-t", str(pid), "--mount", "--pid", "--uts", "--", *command])


def boot(cluster, number):
    if not 1 <= number <= MOST:
        raise CannotBeHad(f"nodes are numbered 1 to {MOST}")
    name, state, net = address(cluster, number), cluster.state, cluster.facts["net"]
    folder = state / f"node{number}"
    for part in ("cni", "containerd", "kubelet", "log", "varcni"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    cluster.certificate(f"node{number}", f"/O=system:nodes/CN=system:node:{name}", f"IP:{name}")
    cluster.write_config(f"node{number}")
    (folder / "containerd.toml").write_text(f"""
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  stream_server_address = "{name}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
""")
    first = 16 + 40 * (number - 1)  # pods of this node: 40 addresses each, beyond those of services
    (folder / "cni/10-bridge.conflist").write_text(json.dumps({
        "cniVersion": "0.4.0", "name": f"node{number}",
        "plugins": [{"type": "bridge", "bridge": cluster.facts["bridge"], "ipMasq": False,
                     "ipam": {"type": "host-local", "ranges": [[{"subnet": f"{net}.0/24", "rangeStart": f"{net}.{first}",
                                                                 "rangeEnd": f"{net}.{first + 39}",
                                                                 "gateway": f"{net}.1"}]]}}]}))
    (folder / "kubelet.yaml").write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": name, "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{state}/pki/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{state}/pki/node{number}.crt", "tlsPrivateKeyFile": f"{state}/pki/node{number}.key",
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "cgroupDriver": "cgroupfs", "enforceNodeAllocatable": [], **groups_of_pods(cluster, number),
        "failSwapOn": False, "failCgroupV1": False, "localStorageCapacityIsolation": False,
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%"}, "imageGCHighThresholdPercent": 100,
        "resolvConf": "", "registerNode": True, "maxPods": 200, "syncFrequency": "10s", "nodeStatusUpdateFrequency": "4s"}))
    for path in ("/var/lib/kubelet", "/var/lib/cni"):
        os.makedirs(path, exist_ok=True)
    cluster.spawn(f"node{number}", "unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc",
                  sys.executable, pathlib.Path(__file__).resolve().parent / "testk8s", state, "node-init", number)


def run(cluster, number):
    """As the first process of the node's namespaces."""
    state = cluster.state
    folder = state / f"node{number}"
    call("mount", "-t", "tmpfs", "tmpfs", "/run")  # as after a boot
    for source, target in (("kubelet", "/var/lib/kubelet"), ("log", "/var/log"), ("varcni", "/var/lib/cni")):
        call("mount", "--bind", folder / source, target)
    call("hostname", f"node{number}")
    forget_groups(cluster, number)
    groups_of_pods(cluster, number)
    log = open(state / "log" / f"node{number}.containerd", "ab")
    subprocess.Popen(["containerd", "-c", str(folder / "containerd.toml")], stdout=log, stderr=log)
    ctr = ["ctr", "-a", folder / "containerd.sock"]
    wait_until(lambda: call(*ctr, "version", check=False).returncode == 0, "that containerd answers")
    for image in sorted((state / "images").glob("*.tar")):
        call(*ctr, "-n", "k8s.io", "image", "import", image)
    kubelet = [binaries.folder() / "kubelet", "--config", folder / "kubelet.yaml", "--kubeconfig",
               cluster.config(f"node{number}"), "--hostname-override", address(cluster, number), "--cert-dir",
               folder / "kubelet/pki"]
    log = open(state / "log" / f"node{number}.kubelet", "ab")
    while True:  # one that dies comes back, as under systemd
        child = subprocess.Popen([str(word) for word in kubelet], stdout=log, stderr=log)
        while os.waitpid(-1, 0)[0] != child.pid:  # all orphans are this process's, too
            pass
        time.sleep(0.5)


def wait_ready(cluster, number):
    """A node that was killed a moment ago is still called Ready: its kubelet itself is asked, too."""
    name = address(cluster, number)

    def ready():
        # Through the API server a frozen or new kubelet would be reported late.
        health = api.ask(cluster.config("admin"), "/healthz", at=(name, 10250))
        if not health or health[0] != 200:
            return False
        answer = cluster.ask(f"/api/v1/nodes/{name}")
        if not answer or answer[0] != 200:
            return False
        conditions = json.loads(answer[1]).get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    wait_until(ready, f"that node {number} is ready", 90)


def places_of_groups(cluster, number):
    """Where the control groups of the node's pods are: a place of its own in each hierarchy."""
    base = pathlib.Path("/sys/fs/cgroup")
    v1 = [each for each in base.iterdir() if each.is_dir() and not each.is_symlink()]
    return [each / "testk8s" / cluster.facts["bridge"] / f"node{number}"
            for each in ([base] if (base / "cgroup.controllers").exists() else v1)]


def groups_of_pods(cluster, number):
    """What kubelet is told of control groups. Pods have some of their own, without which none can be resized in place (kubelet
    1.37.2 dies of a null pointer in doPodResizeAction() where it is tried), unless this machine does not hand them on."""
    try:
        for place in places_of_groups(cluster, number):
            place.mkdir(parents=True, exist_ok=True)
            for above in reversed(place.parents):
                control = above / "cgroup.subtree_control"
                if control.exists():
                    control.write_text(" ".join(f"+{name}" for name in (above / "cgroup.controllers").read_text().split()))
        return {"cgroupsPerQOS": True, "cgroupRoot": f"/testk8s/{cluster.facts['bridge']}/node{number}"}
    except OSError:
        return {"cgroupsPerQOS": False}


def forget_groups(cluster, number):
    """Control groups of what died with the node."""
    folder = cluster.state / f"node{number}"
    places = places_of_groups(cluster, number)
    for _ in range(200):  # the kernel ends what was killed in a moment
        for place in places:
            for each, _, _ in os.walk(place, topdown=False):
                try:
                    os.rmdir(each)
                except OSError:
                    pass
        if not any(place.exists() for place in places):
            break
        time.sleep(0.05)
    for place in places:
        for above in (place.parent, place.parent.parent):
            try:
                above.rmdir()
            except OSError:  # of other nodes, and of other clusters
                pass
    for kind in ("sandboxes", "containers"):
        for each in (folder / "containerd/io.containerd.grpc.v1.cri" / kind).glob("*"):
            if re.fullmatch("[0-9a-f]{64}", each.name):
                for group in [pathlib.Path(f"/sys/fs/cgroup/k8s.io/{each.name}"),
                              *pathlib.Path("/sys/fs/cgroup").glob(f"*/k8s.io/{each.name}")]:
                    try:
                        group.rmdir()
                    except OSError:
                        pass


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_all(cluster, name):
    pid = cluster.pid(name)
    inside = children(pid) if pid else []
    kill(inside)  # the first process of the namespace: the kernel takes all the others
    if pid:
        kill([pid])
    wait_until(lambda: not any(is_alive(each) for each in [*inside, *([pid] if pid else [])]), f"the end of {name}", 30)
    (cluster.state / "pid" / name).unlink(missing_ok=True)
    forget_groups(cluster, int(name[4:]))


# What the command line has as NAME-node.


def kill_node(cluster, number):
    kill_all(cluster, f"node{number}")


def start(cluster, number):
    boot(cluster, number)
    wait_ready(cluster, number)


def _kubelet(cluster, number):
    for each in children(first(cluster, number) or 0):
        if pathlib.Path(f"/proc/{each}/comm").read_text().strip() == "kubelet":
            return [each]
    raise CannotBeHad(f"node {number} has no kubelet that runs")


def freeze(cluster, number):
    kill(_kubelet(cluster, number), signal.SIGSTOP)


def thaw(cluster, number):
    kill(_kubelet(cluster, number), signal.SIGCONT)
