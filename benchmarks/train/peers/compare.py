#!/usr/bin/env python3
"""torchrun's elastic training and Elastic Horovod beside benchmark_elastic, in one go: compare.py BENCHMARK_ELASTIC

Makes build/peers-torch at first (a venv; with PyPI's wheel of torch, which has CUDA, some GB: PyTorch's own index has a
wheel for processors alone), and compiles Horovod there (ten minutes). Each worker computes in one thread, as torchrun has
it by default. Between a kill and the next, and before workers are added, all train as long as hypertune does. Prints one
table.
"""
import argparse
import collections
import glob
import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
place = os.path.join(root, "build", "peers-torch")
Event = collections.namedtuple("Event", "time what rank size pid")


def program(name):
    return os.path.join(place, "bin", name)


def install(horovod):
    pip = [program("pip"), "install", "-q"]
    if not os.path.exists(program("torchrun")):
        venv.create(place, with_pip=True)
        subprocess.run(pip + ["-r", os.path.join(here, "requirements.txt")], check=True)
    if horovod and not os.path.exists(program("horovodrun")):
        subprocess.run(pip + ["-r", os.path.join(here, "requirements-horovod.txt")], check=True)
        # Horovod asks for C++14, and the headers of this torch for C++20; Horovod's Gloo for <cstdint>. What comes last
        # on the compiler's command line counts.
        compiler = os.path.join(place, "c++20")
        with open(compiler, "w") as file:
            file.write('#!/bin/sh\nexec c++ "$@" -std=gnu++20 -include cstdint -w\n')
        os.chmod(compiler, 0o755)
        without = {f"HOROVOD_WITHOUT_{name}": "1" for name in ("MPI", "TENSORFLOW", "MXNET")}
        subprocess.run(pip + ["--no-build-isolation", "--no-deps", "horovod==0.28.1"], check=True,
                       env=dict(os.environ, CXX=compiler, HOROVOD_WITH_GLOO="1", HOROVOD_WITH_PYTORCH="1", **without))


class Peer:
    """A training in a folder of its own, by the processes that `agents` are."""

    def __init__(self, batch):
        self.folder = tempfile.mkdtemp(prefix="hypertune-benchmark-")
        self.batch = batch
        self.agents = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        open(os.path.join(self.folder, "stop"), "w").close()
        deadline = time.monotonic() + 10
        for agent in self.agents:
            try:
                agent.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                for pid in self.family(agent.pid):
                    self.end(pid)
                agent.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def family(self, pid):
        family = [pid]
        for children in glob.glob(f"/proc/{pid}/task/*/children"):
            try:
                with open(children) as file:
                    family += [p for child in file.read().split() for p in self.family(int(child))]
            except OSError:
                pass
        return family

    def start(self, command, environment):
        # In the venv's PATH, as Horovod starts "python".
        path = os.path.join(place, "bin") + os.pathsep + os.environ["PATH"]
        self.agents.append(subprocess.Popen(command, env=dict(os.environ, PATH=path, **environment), cwd=self.folder,
                                            stdout=subprocess.DEVNULL,
                                            stderr=open(os.path.join(self.folder, "said"), "a")))

    def events(self):
        events = []
        for name in glob.glob(os.path.join(self.folder, "events-*")):
            with open(name) as file:
                for line in file:
                    if line.endswith("\n"):
                        when, what, rank, size = line.split()
                        events.append(Event(float(when), what, int(rank), int(size), int(name.rsplit("-", 1)[1])))
        return sorted(events)

    limit = 150  # seconds that are waited for the next step after a loss

    def wait(self, found, what, limit=150):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            result = found(self.events())
            if result:
                return result
            time.sleep(0.2)
        with open(os.path.join(self.folder, "said")) as file:
            raise RuntimeError(f"{what} has not come about within {limit} s: {file.read()[-1500:]}")

    def trains(self, size, after=0.0):
        """The processes of a training of so many that has done 15 steps, by rank."""
        def found(events):
            pids = collections.defaultdict(list)
            for e in events:
                if e.what == "committed" and e.size == size and e.time > after:
                    pids[e.pid].append(e)
            ready = {all[-1].rank: (pid, all) for pid, all in pids.items() if len(all) >= 15}
            return ready if len(ready) == size else None
        return self.wait(found, f"a training of {size}")


class Torchrun(Peer):
    """Agents of torchrun, each of some workers."""

    def __init__(self, batch, nodes="1", workers_each=4):
        super().__init__(batch)
        self.nodes, self.each = nodes, workers_each
        self.port = random.randrange(20000, 50000)

    def add(self, count=1):
        # Else the store of the workers outlives them, and the next ones find the addresses of the dead in it: torchrun's
        # workers then do not connect ("Gloo connectFullMesh failed"; torch 2.15.0).
        for _ in range(count):
            self.start([program("torchrun"), "--nnodes", self.nodes, "--nproc-per-node", str(self.each), "--max-restarts",
                        "100", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{self.port}", "--rdzv-id",
                        "benchmark", os.path.join(here, "torch_training.py"), self.folder, str(self.batch), "10"],
                       {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})


class Horovod(Peer):
    """Elastic Horovod with a worker on each of its hosts, all of which are this machine.

    A host whose worker fails is not used again: so each worker has a host. They are this machine's by other ways to write
    127.0.0.1, for which Horovod needs no ssh."""

    def __init__(self, batch, least, most, hosts, options=(), arguments=()):
        super().__init__(batch)
        self.least, self.most, self.options, self.arguments = least, most, options, arguments
        self.list = os.path.join(self.folder, "hosts")
        self.use(hosts)

    def use(self, hosts):
        # As a whole: Horovod may read it at any time.
        with open(self.list + ".new", "w") as file:
            file.writelines(f"127.0.0.{'0' * i}1:1\n" for i in range(hosts))
        os.replace(self.list + ".new", self.list)

    def add(self, count=1):
        script = os.path.join(self.folder, "discover")
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\ncat {self.list}\n")
        os.chmod(script, 0o755)
        self.start([program("horovodrun"), "--gloo", "--network-interfaces", "lo", "-np", str(self.least), "--min-np",
                    str(self.least), "--max-np", str(self.most), "--host-discovery-script", script, *self.options,
                    program("python"), os.path.join(here, "horovod_training.py"), self.folder, str(self.batch),
                    *self.arguments], {})


def usual(events, what="committed"):
    """From a commit to the next, in ms."""
    last, gaps = {}, []
    for e in events:
        if e.what == what and last.get(e.pid, e).what == what and e.pid in last:
            gaps.append(1e3 * (e.time - last[e.pid].time))
        last[e.pid] = e
    return [statistics.median(gaps)]


def next_step(run, killed):
    """When the first of those did a step that formed a group after that."""
    def found(events):
        formed = {e.pid: e.time for e in reversed(events) if e.what == "formed" and e.time > killed}
        return [e.time for e in events if e.what == "committed" and e.time > formed.get(e.pid, math.inf)]
    return run.wait(found, "a step after a kill", run.limit)[0]


def kill_one(make, times, count=1):
    """One of four workers is lost; of `count` agents of torchrun, one with its worker. None: no step within the limit."""
    figures, gaps = [], []
    for i in range(times):
        with make() as run:
            run.add(count)
            workers = run.trains(4)
            gaps += usual(run.events())
            time.sleep(random.random() * 0.04)
            killed = time.monotonic()
            # The first agent has the store of torchrun's rendezvous: without it all would be lost.
            for pid in run.family(run.agents[1 + i % 3].pid) if count > 1 else [workers[i % 4][0]]:
                run.end(pid)
            try:
                figures.append(1e3 * (next_step(run, killed) - killed))
            except RuntimeError as error:
                print(error, file=sys.stderr)
                figures.append(None)
    return figures, gaps


def grown(make, more, times, count=1):
    """Two workers join four: torchrun's processes are others then, so they are told apart by rank."""
    figures = []
    for _ in range(times):
        with make() as run:
            run.add(count)
            run.trains(4)
            more(run)
            run.trains(6)
            events = run.events()
            step = usual([e for e in events if e.size == 4])[0]
            first = min(e.time for e in events if e.what == "committed" and e.size == 6)
            for rank in range(4):
                last = max(e.time for e in events if e.what == "committed" and e.size == 4 and e.rank == rank)
                figures.append(1e3 * (first - last) - step)
    return figures, []


def steady(batch, seconds=60):
    """What a commit after each batch adds to Horovod's step, in %: with 2 workers, ten steps with and ten without."""
    with Horovod(batch, 2, 2, 2, arguments=("steady",)) as run:
        run.add()
        run.trains(2)
        time.sleep(seconds)
        events = run.events()
        with_it, without = usual(events)[0], usual(events, "trained")[0]
        return [100 * (with_it / without - 1)], [with_it, without]


def show(figure, system, values, best=None):
    """None among the values: it did not come about."""
    known = [value for value in values if value is not None]
    n = str(len(known)) + ("" if len(known) == len(values) else f" of {len(values)}")
    cells = ["none", "", n, ""]
    if known:
        median = statistics.median(known)
        cells = [f"{median:.1f}", f"{min(known):.1f} - {max(known):.1f}", n, f"{median / best:.0f}x" if best else ""]
    print(f"| {figure} | {system} | {' | '.join(cells)} | {os.getloadavg()[0]:.1f} |", flush=True)


def own_figures(benchmark, times):
    own = collections.defaultdict(list)
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([benchmark, "kill", "grow", "--times", str(times), "--json", file.name], check=True,
                       stdout=subprocess.DEVNULL)
        for line in file:
            row = json.loads(line)
            own[row["figure"]].append(row["values"])
    return own


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--own-times", type=int, default=11)
    parser.add_argument("--batch", type=int, default=1024, help="samples of a step of the peers', of all workers")
    parser.add_argument("--peers", default="torchrun,horovod,horovod-2s",
                        help="which, with commas between; horovod-2s: with --gloo-timeout-seconds 2 in place of 30")
    parser.add_argument("--limit", type=float, default=Peer.limit, help="seconds that are waited for a peer's next step")
    arguments = parser.parse_args()
    peers, batch, times = arguments.peers.split(","), arguments.batch, arguments.times
    Peer.limit = arguments.limit
    install("horovod" in arguments.peers)
    quick = ("--gloo-timeout-seconds", "2")
    own = own_figures(arguments.benchmark, arguments.own_times)
    steps = own["(usual: from a commit to the next)"]
    three, replaced = own["the first commit in it"]
    lost = own["lost by each of the four, beyond a usual step"][0]
    runs = {
        "SIGKILL of one of 4, another one replaces it: to the first step": (replaced, {
            "torchrun": lambda: kill_one(lambda: Torchrun(batch), times),
            "horovod": lambda: kill_one(lambda: Horovod(batch, 4, 4, 5), times),
            "horovod-2s": lambda: kill_one(lambda: Horovod(batch, 4, 4, 5, quick), times)}),
        "SIGKILL of one of 4, the others go on: to the first step": (three, {
            "torchrun": lambda: kill_one(lambda: Torchrun(batch, "3:4", 1), times, 4),
            "horovod": lambda: kill_one(lambda: Horovod(batch, 3, 4, 4), times),
            "horovod-2s": lambda: kill_one(lambda: Horovod(batch, 3, 4, 4, quick), times)}),
        "from 4 to 6: training time lost by each of the four": (lost, {
            "torchrun": lambda: grown(lambda: Torchrun(batch, "4:6", 1), lambda run: run.add(2), times, 4),
            "horovod": lambda: grown(lambda: Horovod(batch, 4, 6, 4), lambda run: run.use(6), times)})}
    print("| figure, ms | system | median | min - max | n | hypertune is better by | load |\n|---|---|--:|--:|--:|--:|--:|")
    for figure, (ours, theirs) in runs.items():
        show(figure, "hypertune", ours)
        for peer in peers:
            if peer not in theirs:
                continue
            values, gap = theirs[peer]()
            show(figure, peer, values, statistics.median(ours))
            if gap:
                show("(usual: from a commit to the next)", peer, gap)
    show("(usual: from a commit to the next)", "hypertune", steps[1])
    if "horovod" in peers:
        more, both = steady(batch)
        show(f"a commit after each batch, 2 workers: more time than {both[1]:.2f} ms, %", "horovod", more)


if __name__ == "__main__":
    sys.exit(main())
