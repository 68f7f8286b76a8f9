"""Measures hypertune and its peers in one run on this machine. Run by scripts/benchmark; see benchmarks/README.md."""
import argparse
import datetime
import json
import os
import platform
import sys

from measuring import Failed, ask, kill_driver, kill_worker, spread

HERE = os.path.dirname(os.path.abspath(__file__))


class Figures:
    """Rows of one figure each, printed as they come; a figure that cannot be had says why and is no end."""

    def __init__(self, file):
        self.rows = []
        self.file = file

    def measure(self, row, who, unit, times, once):
        """`once()` gives a number, or a dict of them ({further row: number})."""
        load = os.getloadavg()[0]
        print(f"[load {load:.1f}] {row}: {who}", file=sys.stderr, flush=True)
        values, why = {}, None
        for _ in range(times):
            try:
                answer = once()
                for name, value in (answer if isinstance(answer, dict) else {row: answer}).items():
                    values.setdefault(name, []).append(value)
            except Failed as e:
                why = str(e)
                break
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
    figures.measure(row, "hypertune, threads, Journal", "trials/s", some, own([*overhead, "noop", "threads", trials, "2", "bare"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "trials/s", some, own([*overhead, "noop", "threads", trials, "2", "csv"]))
    if ray:
        trials = 60 if quick else 500
        figures.measure(row, "Ray Tune, reuse_actors=True", "trials/s", few, rate([*ray, "noop", str(trials), "2", "1"]))
        figures.measure(row, "Ray Tune, reuse_actors=False", "trials/s", few, rate([*ray, "noop", str(8 if quick else 40), "2", "0"]))
    for kind, trials in (("memory", 2000), ("journal", 500), ("sqlite", 100 if quick else 300)):
        for jobs in ("1", "2"):
            figures.measure(row, f"Optuna, {kind}, n_jobs={jobs}", "trials/s", few, rate([*optuna, "noop", kind, str(trials), jobs]))

    row = "no-op trials, a process each or reused"
    trials = "1000" if quick else "5000"
    figures.measure(row, "hypertune, processes reused, Journal", "trials/s", some, own([*overhead, "noop", "processes", trials, "2", "bare"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "trials/s", some, own([*overhead, "noop", "processes", trials, "2", "csv"]))
    for r in [r for r in figures.rows if r["who"].startswith("Ray Tune, reuse")]:
        figures.rows.append({**r, "row": row})

    row = "reports through ASHA"
    trials = "1000" if quick else "20000"
    figures.measure(row, "hypertune, threads, Journal", "reports/s", some, own([*overhead, "asha", trials, "27", "2", "bare"]))
    figures.measure(row, "hypertune, the same and a progress.csv each", "reports/s", some, own([*overhead, "asha", trials, "27", "2", "csv"]))
    figures.measure(row, "hypertune, the same, 64 at once", "reports/s", some, own([*overhead, "asha", trials, "27", "64", "bare"]))
    if ray:
        figures.measure(row, "Ray Tune, reuse_actors=True", "reports/s", few, rate([*ray, "asha", "60" if quick else "200", "27", "2"]))
    for kind, trials in (("memory", 500), ("journal", 60), ("sqlite", 30)):
        figures.measure(row, f"Optuna, {kind}", "reports/s", few, rate([*optuna, "asha", kind, str(trials), "27"]))

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
                    lambda: ask([*overhead, "noop", "threads", "1000", "2", "bare", "{dir}/experiment"], 120)["peak_mib"])
    if ray:
        trials = "60" if quick else "1000"
        figures.measure(row, f"Ray Tune, {trials} trials (peak PSS)", "MiB", 1,
                        lambda: ask([*ray, "noop", trials, "2", "1", "{dir}"], 300, 0.5)["peak_pss_mib"])
    for kind in ("memory", "journal"):
        figures.measure(row, f"Optuna, {kind} (peak PSS)", "MiB", few,
                        lambda kind=kind: ask([*optuna, "noop", kind, "1000", "1", "{dir}"], 120, 0.05)["peak_pss_mib"])

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
    parser.add_argument("--programs", required=True, help="the folder of peer_overhead and peer_faults")
    parser.add_argument("--python", required=True, help="a Python that has the peers")
    parser.add_argument("--out", required=True, help="where the figures go, a line of JSON each")
    parser.add_argument("--no-ray", action="store_true", help="leave Ray Tune out")
    parser.add_argument("--quick", action="store_true", help="few repetitions and small counts")
    args = parser.parse_args()
    with open(args.out, "w") as file:
        figures = Figures(file)
        file.write(json.dumps({"machine": machine(), "quick": args.quick}) + "\n")
        try:
            measure(figures, args)
        except KeyboardInterrupt:
            print("interrupted: what follows is what was measured", file=sys.stderr)
        print(machine() + "\n\n" + table(figures.rows))


if __name__ == "__main__":
    main()
