"""Whether there can be a Kubernetes of testk8s on this machine."""
import os
import shutil

import binaries
from common import PATH, CannotBeHad, call


def check():
    if os.geteuid() != 0:
        raise CannotBeHad("Kubernetes: pods need root")
    for name, package in (("containerd", "containerd"), ("runc", "runc"), ("ctr", "containerd"), ("openssl", "openssl"),
                          ("iptables", "iptables"), ("ip", "iproute2"), ("gcc", "gcc"), ("unshare", "util-linux")):
        if not shutil.which(name, path=PATH):
            raise CannotBeHad(f"Kubernetes: there is no '{name}' (Debian's package {package})")
    if not os.access("/usr/lib/cni/bridge", os.X_OK):
        raise CannotBeHad("Kubernetes: there is no /usr/lib/cni/bridge (Debian's package containernetworking-plugins)")
    for command in (["unshare", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "true"],
                    ["ip", "link", "add", f"tk8s{os.getpid()}", "type", "bridge"],
                    ["ip", "link", "del", f"tk8s{os.getpid()}"]):
        tried = call(*command, check=False, seconds=20)
        if tried.returncode != 0:
            raise CannotBeHad(f"Kubernetes: {' '.join(command[:3])} is not allowed here: {tried.stderr.strip()[-200:]}")
    if not os.access("/sys/fs/cgroup", os.W_OK):
        raise CannotBeHad("Kubernetes: /sys/fs/cgroup cannot be written to")
    if binaries.missing():
        raise CannotBeHad(f"Kubernetes: {', '.join(binaries.missing())} are not built yet: tests/support/k8s/testk8s build")
