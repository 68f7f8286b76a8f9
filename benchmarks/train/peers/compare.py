#!/usr/bin/env python3
"""torchrun's elastic training beside benchmark_elastic, in one go: compare.py BENCHMARK_ELASTIC [--times N] [--own-times N]

Makes build/peers-torch at first (a venv; with PyPI's wheel of torch, which has CUDA, some GB: PyTorch's own index has a
wheel for processors alone). Each worker computes in one thread, as torchrun has it by default. Between a kill and the
next, and before workers are added, torchrun trains as long as hypertune does. Prints one table.
"""
import argparse
import collections
import glob
import json
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


def install():
    if not os.path.exists(os.path.join(place, "bin", "torchrun")):
        venv.create(place, with_pip=True)
        subprocess.run([os.path.join(place, "bin", "pip"), "install", "-q", "-r", os.path.join(here, "requirements.txt")],
                       check=True)


class Torchrun:
    """Agents of torchrun, each of some workers, that train in a folder of their own."""

    def __init__(self, nodes, workers_each, batch):
        self.folder = tempfile.mkdtemp(prefix="hypertune-benchmark-")
        self.nodes, self.each, self.batch = nodes, workers_each, batch
        self.port = random.randrange(20000, 50000)
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

    def add(self, count=1):
        # Else the store of the workers outlives them, and the next ones find the addresses of the dead in it: torchrun's
        # workers then do not connect ("Gloo connectFullMesh failed"; torch 2.15.0).
        environment = dict(os.environ, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
        for _ in range(count):
            self.agents.append(subprocess.Popen(
                [os.path.join(place, "bin", "torchrun"), "--nnodes", self.nodes, "--nproc-per-node", str(self.each),
                 "--max-restarts", "100", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{self.port}",
                 "--rdzv-id", "benchmark", os.path.join(here, "torch_training.py"), self.folder, str(self.batch), "10"],
                env=environment, stdout=subprocess.DEVNULL, stderr=open(os.path.join(self.folder, "said"), "a")))

    def events(self):
        events = []
        for name in glob.glob(os.path.join(self.folder, "events-*")):
            with open(name) as file:
                for line in file:
                    if line.endswith("\n"):
                        when, what, _, rank, size = line.split()
                        events.append(Event(float(when), what, int(rank), int(size), int(name.rsplit("-", 1)[1])))
        return sorted(events)

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


def usual(events):
    """From a commit to the next, of rank 0, at most a second apart, in ms."""
    last, gaps = {}, []
    for e in events:
        if e.what == "committed":
            if e.pid in last:
                gaps.append(1e3 * (e.time - last[e.pid]))
            last[e.pid] = e.time
    return [statistics.median(gaps)]


def killed_and_replaced(times, batch):
    """One of the four workers of an agent: torchrun ends all and begins four others."""
    figures, gap = [], []
    with Torchrun("1", 4, batch) as run:
        run.add()
        after = 0.0
        for i in range(times):
            workers = run.trains(4, after)
            time.sleep(random.random() * 0.04)
            killed = time.monotonic()
            os.kill(workers[i % 4][0], signal.SIGKILL)
            old = {pid for pid, _ in workers.values()}
            again = run.wait(lambda events: [e for e in events if e.what == "committed" and e.pid not in old and
                                             e.time > killed], "a step after a kill")
            figures.append(1e3 * (again[0].time - killed))
            after = again[0].time
        gap = usual(run.events())
    return figures, gap


def killed_and_three_go_on(times, batch):
    """One of four agents of a worker each goes with its worker: the others form a group of three."""
    figures = []
    for i in range(times):
        with Torchrun("3:4", 1, batch) as run:
            run.add(4)
            workers = run.trains(4)
            hosts = {int(agent.pid): agent for agent in run.agents}
            # The first agent has the store of the rendezvous: without it all would be lost.
            agent = run.agents[1 + i % 3]
            killed = time.monotonic()
            family = run.family(agent.pid)
            for pid in family:
                run.end(pid)
            old = {pid for pid, _ in workers.values()}
            again = run.wait(lambda events: [e for e in events if e.what == "committed" and e.pid not in old],
                             "a step after a kill")
            figures.append(1e3 * (again[0].time - killed))
    return figures, []


def grown(times, batch):
    """Two agents of a worker each join four of them."""
    figures, slowest = [], []
    for _ in range(times):
        with Torchrun("4:6", 1, batch) as run:
            run.add(4)
            run.trains(4)
            run.add(2)
            run.trains(6)
            events = run.events()
            step = usual([e for e in events if e.size == 4])[0]
            first = min(e.time for e in events if e.what == "committed" and e.size == 6)
            # Processes are others: by rank, from the last commit of four.
            for rank in range(4):
                last = max(e.time for e in events if e.what == "committed" and e.size == 4 and e.rank == rank)
                figures.append(1e3 * (first - last) - step)
    return figures, []


def show(figure, system, values, best=None):
    if not values:
        print(f"| {figure} | {system} | - | | 0 | |")
        return
    ratio = f"{statistics.median(values) / best:.0f}x" if best else ""
    print(f"| {figure} | {system} | {statistics.median(values):.1f} | {min(values):.1f} - {max(values):.1f} | {len(values)} | "
          f"{ratio} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--own-times", type=int, default=11)
    parser.add_argument("--batch", type=int, default=1024, help="samples of a step of torchrun's, of all workers")
    arguments = parser.parse_args()
    install()
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([arguments.benchmark, "kill", "grow", "--times", str(arguments.own_times), "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        own = collections.defaultdict(list)
        for line in file:
            row = json.loads(line)
            own[row["figure"]].append(row["values"])
    steps = own["(usual: from a commit to the next)"]
    print("| figure, ms | system | median | min - max | n | hypertune is better by |\n|---|---|--:|--:|--:|--:|")
    three, replaced = own["the first commit in it"]
    lost = own["lost by each of the four, beyond a usual step"][0]
    for figure, ours, theirs in (
            ("SIGKILL of one of 4, another one replaces it: to the first step", replaced, killed_and_replaced),
            ("SIGKILL of one of 4, the others go on: to the first step", three, killed_and_three_go_on),
            ("from 4 to 6: training time lost by each of the four", lost, grown)):
        show(figure, "hypertune", ours)
        try:
            values, gap = theirs(arguments.times, arguments.batch)
        except RuntimeError as error:
            print(f"| {figure} | torchrun: {error} | | | | |")
            continue
        show(figure, "torchrun", values, statistics.median(ours))
        if gap:
            show("(usual: from a commit to the next)", "torchrun", gap)
    show("(usual: from a commit to the next)", "hypertune", steps[1])


if __name__ == "__main__":
    sys.exit(main())
