"""Measures hypertune and its peers in one run on this machine. Run by scripts/benchmark; see benchmarks/README.md."""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

from measuring import Failed, ask, kill_driver, kill_worker, spread

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PUBLISHED = os.path.join(HERE, "published.jsonl")
README = os.path.join(ROOT, "benchmarks", "README.md")
WORSE = 1.5  # --check names what has become worse by more than this


class Figures:
    """Rows of one figure each, printed as they come; a figure that cannot be had says why and is no end."""

    def __init__(self, file, peers=True, only=""):
        self.rows = []
        self.file = file
        self.peers = peers
        self.only = only

    def measure(self, row, who, unit, times, once):
        """`once()` gives a number, or a dict of them ({further row: number})."""
        self.in_turn(row, unit, times, {who: once})

    def in_turn(self, row, unit, times, sides):
        """The same of several systems ({who: once}), once each and then again: a load that comes or goes is everyone's."""
        sides = {who: once for who, once in sides.items() if self.peers or who.startswith("hypertune")}
        if not sides or self.only not in row:
            return
        load = os.getloadavg()[0]
        print(f"[load {load:.1f}] {row}: {', '.join(sides)}", file=sys.stderr, flush=True)
        values, why = {who: {} for who in sides}, {}
        for _ in range(times):
            for who, once in sides.items():
                if who in why:
                    continue
                try:
                    answer = once()
                    for name, value in (answer if isinstance(answer, dict) else {row: answer}).items():
                        values[who].setdefault(name, []).append(value)
                except Failed as e:
                    why[who] = str(e)
        for who in sides:
            self._enter(row, who, unit, load, values[who], why.get(who))

    def _enter(self, row, who, unit, load, values, why):
        for name, unit_of in unit.items() if isinstance(unit, dict) else [(row, unit)]:
            entry = {"row": name, "who": who, "unit": unit_of, "load": round(load, 2)}
            entry.update(spread(values[name]) if name in values else {"n": 0})
            if why:
                entry["failed"] = why
                print(f"  missing: {why}", file=sys.stderr)
            self.rows.append(entry)
            self.file.write(json.dumps(entry) + "\n")
        self.file.flush()


def show(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows):
    """Markdown; the last column says how many times better hypertune's median is than this one's. Where hypertune has
    two figures in a row (threads and processes), the first is the one compared with."""
    lines = ["| figure | system | median | min - max | n | load | hypertune is better by |", "|---|---|---:|---:|---:|---:|---:|"]
    for name in dict.fromkeys(r["row"] for r in rows):
        group = [r for r in rows if r["row"] == name]
        ours = next((r for r in group if r["who"].startswith("hypertune") and r["n"]), None)
        for r in group:
            if not r["n"]:
                lines.append(f"| {name} | {r['who']} | missing: {r.get('failed', '')[:80].replace('|', '/')} | | 0 | {r['load']} | |")
                continue
            ratio = ""
            if ours and not r["who"].startswith("hypertune"):
                up, down = (ours["median"], r["median"]) if r["unit"].endswith("/s") else (r["median"], ours["median"])
                ratio = f"{show(up / down)}x" if down > 0 else "-"
            lines.append(f"| {name}, {r['unit']} | {r['who']} | {show(r['median'])} | {show(r['min'])} - {show(r['max'])} "
                         f"| {r['n']} | {r['load']} | {ratio} |")
    return "\n".join(lines)


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    now = datetime.datetime.now(datetime.timezone.utc)
    return f"{now:%Y-%m-%d %H:%M} UTC, {model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def commit():
    """The commit that is measured; "+" where files differ from it."""
    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "include", "backends", "src", "benchmarks/peers/*.[ch]pp")
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + ("+" if changed else "")


def yardstick():
    """Seconds of two pieces of work that are not hypertune's: a loop of the interpreter and 100 synced writes. The best
    of five. They tell a slower machine from slower code."""
    def loop():
        begin, total = time.perf_counter(), 0
        for i in range(2_000_000):
            total += i * i % 7
        return time.perf_counter() - begin

    def disk():
        with tempfile.NamedTemporaryFile() as file:
            begin = time.perf_counter()
            for _ in range(100):
                file.write(b"x" * 4096)
                file.flush()
                os.fdatasync(file.fileno())
            return time.perf_counter() - begin
    return {"loop_s": min(loop() for _ in range(5)), "disk_s": min(disk() for _ in range(5))}


def described(head):
    return f"{head['machine']}, commit {head['commit']}{', --quick' if head['quick'] else ''}"


def render(lines):
    """The published run as the README shows it."""
    return f"{described(lines[0])}\n\n{table(lines[1:])}\n"


MARKS = "<!-- published.jsonl, as scripts/benchmark --publish writes it -->\n", "<!-- end of published.jsonl -->\n"


def read_published():
    with open(PUBLISHED) as file:
        return [json.loads(line) for line in file]


def show_in_readme(write):
    """Whether the README shows the published run; makes it so where `write` says so."""
    with open(README) as file:
        text = file.read()
    before, rest = text.split(MARKS[0])
    shown, after = rest.split(MARKS[1])
    due = "\n" + render(read_published()) + "\n"
    if shown != due and write:
        with open(README, "w") as file:
            file.write(before + MARKS[0] + due + MARKS[1] + after)
    return shown == due or write


def check(head, rows):
    """Which of hypertune's published rows are worse by more than WORSE now; the exit status."""
    published = read_published()
    before = published[0]
    print(f"published: {described(before)}\nnow:       {described(head)}")
    # How much slower this machine is: rates and times of the driver depend on either, and the larger one excuses.
    slower = max([1.0, *(head["yardstick"][k] / seconds for k, seconds in before["yardstick"].items())])
    if slower > 1.05:
        print(f"this machine is {slower:.2f} times slower by the yardsticks, which is allowed for")
    worse = missing = 0
    for old in published[1:]:
        if not old["who"].startswith("hypertune") or not old["n"]:
            continue
        new = next((r for r in rows if (r["row"], r["who"]) == (old["row"], old["who"])), None)
        if new is None or not new["n"]:
            missing += 1
            print(f"MISSING {old['row']}: {old['who']}: {(new or {}).get('failed', 'not measured any more')}")
            continue
        a, b = old["median"], new["median"]
        if old["unit"] == "steps":  # counts of few: one more is chance
            factor = (b + 1) / (a + 1) / 2
        elif old["unit"].endswith("/s"):
            factor = a / b / slower
        elif old["unit"] == "s":
            factor = b / a / slower
        else:
            factor = b / a if a > 1 else b / max(a, 1)
        bad = factor > WORSE
        worse += bad
        print(f"{'WORSE  ' if bad else 'ok     '} {old['row']}: {old['who']}: {show(a)} -> {show(b)} {old['unit']}"
              + (f", worse by {factor:.2f}" if bad else ""))
    print(f"{worse} worse by more than {WORSE}, {missing} missing")
    return 1 if worse or missing else 0


def added_percent(answer):
    """Over all saves but the first: what came on top of the trial's own writes, in percent of them."""
    own = answer["own_s"][1:]
    return 100 * (sum(answer["whole_s"][1:]) - sum(own)) / sum(own)


def measure(figures, args):
    quick = args.quick
    ray = None if args.no_ray else [args.python, os.path.join(HERE, "ray_peer.py")]
    optuna = [args.python, os.path.join(HERE, "optuna_peer.py")]
    overhead = [os.path.join(args.programs, "peer_overhead")]
    faults = [os.path.join(args.programs, "peer_faults")]
    few = 1 if quick else 3
    some = 3 if quick else 5

    def rate(command, limit=300, memory=0.0):
        return lambda: ask([*command, "{dir}"], limit, memory)["per_s"]

    def own(command):  # hypertune makes its folder itself
        return lambda: ask([*command, "{dir}/experiment"], 300)["per_s"]

    row = "no-op trials"
    trials = "2000" if quick else "20000"
    figures.measure(row, "hypertune, threads, Journal", "trials/s", some, own([*overhead, "noop", "threads", trials, "2", "bare", "random"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "trials/s", some, own([*overhead, "noop", "threads", trials, "2", "csv", "random"]))
    if ray:
        trials = 60 if quick else 500
        figures.measure(row, "Ray Tune, reuse_actors=True", "trials/s", few, rate([*ray, "noop", str(trials), "2", "1"]))
        figures.measure(row, "Ray Tune, reuse_actors=False", "trials/s", few, rate([*ray, "noop", str(8 if quick else 40), "2", "0"]))
    for kind, trials in (("memory", 2000), ("journal", 500), ("sqlite", 100 if quick else 300)):
        for jobs in ("1", "2"):
            figures.measure(row, f"Optuna, {kind}, n_jobs={jobs}", "trials/s", few, rate([*optuna, "noop", kind, str(trials), jobs, "random"]))

    row = "no-op trials, a process each or reused"
    trials = "1000" if quick else "5000"
    figures.measure(row, "hypertune, processes reused, Journal", "trials/s", some, own([*overhead, "noop", "processes", trials, "2", "bare", "random"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "trials/s", some, own([*overhead, "noop", "processes", trials, "2", "csv", "random"]))
    for r in [r for r in figures.rows if r["who"].startswith("Ray Tune, reuse")]:
        figures.rows.append({**r, "row": row})  # the same run of Ray Tune

    row = "reports through ASHA"
    trials = "1000" if quick else "20000"
    figures.measure(row, "hypertune, threads, Journal", "reports/s", some, own([*overhead, "asha", trials, "27", "2", "bare", "random"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "reports/s", some, own([*overhead, "asha", trials, "27", "2", "csv", "random"]))
    figures.measure(row, "hypertune, the same, 64 at once", "reports/s", some, own([*overhead, "asha", trials, "27", "64", "bare", "random"]))
    if ray:
        figures.measure(row, "Ray Tune, reuse_actors=True", "reports/s", few, rate([*ray, "asha", "60" if quick else "200", "27", "2"]))
    for kind, trials in (("memory", 500), ("journal", 60), ("sqlite", 30)):
        figures.measure(row, f"Optuna, {kind}", "reports/s", few, rate([*optuna, "asha", kind, str(trials), "27", "random"]))

    row = "no-op trials, each system with its default searcher"
    trials = "1000" if quick else "5000"
    figures.measure(row, "hypertune, threads, Journal (Auto)", "trials/s", some, own([*overhead, "noop", "threads", trials, "2", "bare", "default"]))
    for r in [r for r in figures.rows if r["row"] == "no-op trials" and r["who"] == "Ray Tune, reuse_actors=True"]:
        figures.rows.append({**r, "row": row, "who": r["who"] + " (random)"})  # what Ray has where nothing is named
    for kind, trials in (("memory", 1000), ("sqlite", 100 if quick else 300)):
        figures.measure(row, f"Optuna, {kind}, n_jobs=1 (TPE)", "trials/s", few, rate([*optuna, "noop", kind, str(trials), "1", "default"]))

    row = "reports through ASHA, each system with its default searcher"
    for trials, suffix in ((500, ""), (100, ", 100 trials"), (5000, ", 5,000 trials")):
        figures.in_turn(row + suffix, "reports/s", some if trials < 5000 else few, {
            "hypertune, threads, Journal (Auto)": own([*overhead, "asha", str(trials), "27", "2", "bare", "default"]),
            "Optuna, memory (TPE)": rate([*optuna, "asha", "memory", str(trials), "27", "default"], 900)})

    row = "process start to first report"

    def started(command):
        def once():
            answer = ask(command, 120)
            return answer["first_report"] - answer["began"]
        return once
    figures.measure(row, "hypertune, threads, Journal", "s", 2 * some, started([*overhead, "start", "{dir}/experiment"]))
    if ray:
        figures.measure(row, "Ray Tune", "s", few, started([*ray, "start", "{dir}"]))
    for kind in ("memory", "sqlite"):
        figures.measure(row, f"Optuna, {kind}", "s", some, started([*optuna, "start", kind, "{dir}"]))

    row = "peak memory, 1,000 trials"
    figures.measure(row, "hypertune, threads, Journal (peak RSS)", "MiB", few,
                    lambda: ask([*overhead, "noop", "threads", "1000", "2", "bare", "random", "{dir}/experiment"], 120)["peak_mib"])
    if ray:
        trials = "60" if quick else "1000"
        figures.measure(row, f"Ray Tune, {trials} trials (peak PSS)", "MiB", 1,
                        lambda: ask([*ray, "noop", trials, "2", "1", "{dir}"], 300, 0.5)["peak_pss_mib"])
    for kind in ("memory", "journal"):
        figures.measure(row, f"Optuna, {kind} (peak PSS)", "MiB", few,
                        lambda kind=kind: ask([*optuna, "noop", kind, "1000", "1", "random", "{dir}"], 120, 0.05)["peak_pss_mib"])

    row = "what a 100 MiB checkpoint adds to the trial's own write"
    saves = ["100", "6" if quick else "20", "500"]
    figures.measure(row, "hypertune, threads", "%", few, lambda: added_percent(ask([*overhead, "save", *saves, "{dir}/experiment"], 200)))
    if ray:
        figures.measure(row, "Ray Tune", "%", few, lambda: added_percent(ask([*ray, "save", *saves, "{dir}"], 200)))

    row, steps = "SIGKILL of a trial's process, to its next step", "steps run again after it"
    log = ["{dir}/steps"]

    def worker(command):
        def once():
            answer = kill_worker(command, 120)
            return {row: answer["again_s"], steps: answer["redone"]}
        return once
    figures.measure(row, "hypertune, processes", {row: "s", steps: "steps"}, some,
                    worker([*faults, "processes", "2", "2", "40", "50", "1", "{dir}/experiment", *log]))
    if ray:
        figures.measure(row, "Ray Tune", {row: "s", steps: "steps"}, few,
                        worker([*ray, "faults", "run", "0", "2", "2", "40", "50", "1", "{dir}", *log]))

    row2, steps2 = "SIGKILL of the driver, 40 trials: restart to the first step", "steps run again after that"

    def driver(command, restart, seconds):
        def once():
            answer = kill_driver(command, restart, seconds, 40 * 20, 240)
            return {row2: answer["again_s"], steps2: answer["redone"]}
        return once
    for kind in ("threads", "processes"):
        command = [*faults, kind, "40", "40", "20", "50", "1", "{dir}/experiment", *log]
        figures.measure(row2, f"hypertune, {kind}, all 40 under way", {row2: "s", steps2: "steps"}, few, driver(command, command, 0.5))
    if ray:
        command = ["1", "40", "2", "20", "50", "1", "{dir}", *log]
        figures.measure(row2, "Ray Tune, 2 at once, reuse_actors=True", {row2: "s", steps2: "steps"}, 1,
                        driver([*ray, "faults", "run", *command], [*ray, "faults", "restore", *command], 5 if quick else 8))


def main():
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description="hypertune beside its peers, in one run")
    parser.add_argument("--programs", help="the folder of peer_overhead and peer_faults")
    parser.add_argument("--python", help="a Python that has the peers")
    parser.add_argument("--out", help="where the figures go, a line of JSON each")
    parser.add_argument("--no-ray", action="store_true", help="leave Ray Tune out")
    parser.add_argument("--quick", action="store_true", help="few repetitions and small counts")
    parser.add_argument("--only", default="", metavar="TEXT", help="the figures whose names contain this, alone")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="hypertune's rows alone, beside the published ones")
    what.add_argument("--publish", action="store_true", help="make this run the published one")
    what.add_argument("--shown", action="store_true", help="measure nothing: does the README show the published run?")
    args = parser.parse_args()
    if args.shown:
        if show_in_readme(write=False):
            return 0
        print("benchmarks/README.md shows something else than benchmarks/peers/published.jsonl: run scripts/benchmark --publish")
        return 1
    if not (args.programs and args.python and args.out):
        parser.error("--programs, --python and --out are needed to measure")
    if args.only and (args.check or args.publish):
        parser.error("--only measures a part of the figures: --check and --publish are about all of them")
    if args.check:
        args.quick = read_published()[0]["quick"]  # like is compared with like
    with open(args.out, "w") as file:
        figures = Figures(file, peers=not args.check, only=args.only)
        head = {"machine": machine(), "commit": commit(), "quick": args.quick, "yardstick": yardstick()}
        file.write(json.dumps(head) + "\n")
        whole = True
        try:
            measure(figures, args)
        except KeyboardInterrupt:
            whole = False
            print("interrupted: what follows is what was measured", file=sys.stderr)
    if args.check:
        return check(head, figures.rows)
    print(render([head, *figures.rows]))
    if args.publish and whole:
        with open(PUBLISHED, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in [head, *figures.rows])
        show_in_readme(write=True)
    return 0 if whole else 130


if __name__ == "__main__":
    sys.exit(main())
