"""Kubernetes and etcd, built from their published Go modules: kept in a folder for all who test on this machine.

HYPERTUNE_K8S_CACHE says which (~/.cache/hypertune-k8s). Six minutes on two cores; afterwards nothing.
"""
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from common import CannotBeHad

KUBERNETES, ETCD, KWOK = "1.37.2", "3.7.3", "0.8.0"
PARTS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]


def cache():
    return pathlib.Path(os.environ.get("HYPERTUNE_K8S_CACHE") or pathlib.Path.home() / ".cache/hypertune-k8s")


def folder():
    return cache() / f"bin-{KUBERNETES}"


def missing(kwok=False):
    return [name for name in [*PARTS, "etcd", *(["kwok"] if kwok else [])] if not (folder() / name).is_file()]


def _go(directory, *words):
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    done = subprocess.run(["go", *words], cwd=directory, env=environment, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise CannotBeHad(f"go {words[0]}: {done.stderr.strip()[-800:]}")
    return done.stdout


def _kubernetes():
    source = cache() / f"src-{KUBERNETES}"
    source.mkdir(parents=True, exist_ok=True)
    if not (source / "go.mod").exists():
        # The published module takes its own parts from folders beside it, which are not published with it: each is also
        # published by itself, as v0 of the same minor version.
        first = source / "first"
        first.mkdir(exist_ok=True)
        (first / "go.mod").write_text("module first\n")
        told = json.loads(_go(first, "mod", "download", "-json", f"k8s.io/kubernetes@v{KUBERNETES}"))
        text = pathlib.Path(told["GoMod"]).read_text()
        parts = re.findall(r"(k8s\.io/\S+) => \./staging/", text)
        go = re.search(r"^go (\S+)", text, re.M).group(1)
        version = "v0." + KUBERNETES.split(".", 1)[1]
        lines = ["module hypertune.test/kubernetes", f"go {go}", f"require k8s.io/kubernetes v{KUBERNETES}"]
        lines += [f"replace {part} => {part} {version}" for part in parts]
        (source / "go.mod.part").write_text("\n".join(lines) + "\n")
        (source / "go.mod.part").rename(source / "go.mod")
    version = "k8s.io/component-base/version"
    major, minor = KUBERNETES.split(".")[:2]
    flags = f"-s -w -X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    part = folder().with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    _go(source, "build", "-trimpath", "-ldflags", flags, "-o", f"{part}/", *(f"k8s.io/kubernetes/cmd/{p}" for p in PARTS))
    for name in PARTS:  # one that was interrupted leaves no half program behind
        (part / name).rename(folder() / name)
    part.rmdir()


def _single(name, package, module, version):
    source = cache() / f"src-{name}-{version}"
    source.mkdir(parents=True, exist_ok=True)
    (source / "go.mod").write_text(f"module hypertune.test/{name}\n\ngo 1.26.0\n")
    _go(source, "get", f"{module}@v{version}")
    _go(source, "build", "-trimpath", "-ldflags", "-s -w", "-o", folder() / f"{name}.part", package)
    (folder() / f"{name}.part").rename(folder() / name)


def build(kwok=False):
    """Builds what is missing; says so on standard error."""
    folder().mkdir(parents=True, exist_ok=True)
    with open(cache() / "build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds the work done
        absent = missing(kwok)
        if not absent:
            return
        if not shutil.which("go"):
            raise CannotBeHad(f"there is no Go to build {', '.join(absent)} with, and {folder()} has none")
        print(f"testk8s: building {', '.join(absent)} (some minutes, once)", file=sys.stderr, flush=True)
        if set(absent) & set(PARTS):
            _kubernetes()
        if "etcd" in absent:
            _single("etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3", ETCD)
        if "kwok" in absent:
            _single("kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok", KWOK)
