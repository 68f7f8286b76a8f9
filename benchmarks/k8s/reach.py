#!/usr/bin/env python3
"""How soon a trial starts on a pod: reach.py PROGRAM [--rounds N] [--in-cluster-only | --outside-only]

Starts a Kubernetes of its own with one node (tests/support/k8s/testk8s) and a host with sshd (tests/support/hosts), makes
an image of PROGRAM (benchmark_reach), and runs it twice: outside of the cluster, where agents are reached by exec, and as
a pod, where workers connect to it. Each time it measures its own starts in turn with the starts of bare pods of the same
image and, outside, with starts over ssh; it prints a table.

Needs what testk8s and testhosts need.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support/k8s"))
import api  # noqa: E402

IMAGE = "hypertune.test/reach:1"


def tell(tool, *words):
    done = subprocess.run([sys.executable, ROOT / "tests/support" / tool, *map(str, words)], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{tool} {words[1]}: {done.stderr.strip()}")
    return done.stdout.strip()


def driver_in_pod(config, rounds):
    """Runs the program as a pod, and returns what it said. It may do what deploy/kubernetes/driver.yaml lets it."""
    session = api.Session(config, timeout=30)
    pods = "/api/v1/namespaces/default/pods"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "driver"},
           "spec": {"restartPolicy": "Never", "serviceAccountName": "hypertune-driver",
                    "containers": [{"name": "driver", "image": IMAGE, "imagePullPolicy": "Never",
                                    "resources": {"requests": {"cpu": "500m"}},  # else it is the last one to get any
                                    "command": ["/bin/benchmark_reach", "--rounds", str(rounds)]}]}}
    answer = session.ask(pods, "POST", json.dumps(pod))
    if not answer or answer[0] != 201:
        sys.exit(f"the driver's pod cannot be made: {answer}")
    phase, end = None, time.monotonic() + 1800
    while phase not in ("Succeeded", "Failed") and time.monotonic() < end:
        time.sleep(2)
        answer = session.ask(f"{pods}/driver")
        phase = json.loads(answer[1])["status"].get("phase") if answer and answer[0] == 200 else None
    said = session.ask(f"{pods}/driver/log")[1].decode()
    if phase != "Succeeded":
        sys.exit(f"the driver's pod: {phase}: {said}")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=24)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--in-cluster-only", action="store_true")
    which.add_argument("--outside-only", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reach-", dir="/tmp") as folder:
        state, hosts = pathlib.Path(folder) / "k", pathlib.Path(folder) / "h"
        k8s = lambda *words: tell("k8s/testk8s", state, *words)
        try:
            config = k8s("up", 1, "--owner", os.getpid())
            tar = state / "reach.tar"
            k8s("image", tar, IMAGE, f"{arguments.program}:/bin/benchmark_reach", "--", "/bin/benchmark_reach")
            k8s("load", tar)
            words = ["--rounds", str(arguments.rounds)]
            if not arguments.in_cluster_only:
                ssh = tell("hosts/testhosts", hosts, "up", 1, "--owner", os.getpid())
                print(f"driver outside, load {os.getloadavg()[0]:.1f}", flush=True)
                subprocess.run([arguments.program, *words, "--ssh", ssh], check=True,
                               env={**os.environ, "KUBECONFIG": config})
            if not arguments.outside_only:
                k8s("apply", ROOT / "deploy/kubernetes/driver.yaml")
                print(f"\ndriver in the cluster, load {os.getloadavg()[0]:.1f}", flush=True)
                print(driver_in_pod(config, arguments.rounds), end="")
            print(f"\nload at the end {os.getloadavg()[0]:.1f}")
        finally:
            if hosts.exists():
                tell("hosts/testhosts", hosts, "down")
            k8s("down")


main()
