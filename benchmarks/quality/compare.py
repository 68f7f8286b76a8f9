"""How good a configuration hypertune's searchers find beside Optuna's samplers, in one run. See benchmarks/README.md."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

OURS = ["random", "tpe", "gp", "cma_es", "auto"]
THEIRS = ["optuna random", "optuna tpe", "optuna tpe multivariate", "optuna cma-es", "optuna gp"]


def ours(program, searcher, problem, seed, evaluations):
    done = subprocess.run([program, "run", searcher, problem["name"], str(seed), str(evaluations)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    answer = json.loads(done.stdout)
    regret = answer["regret"]
    return regret + regret[-1:] * (evaluations - len(regret)), answer["seconds"]


def theirs(program, sampler, problem, seed, evaluations):
    import optuna
    warnings.filterwarnings("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = {"optuna random": lambda: optuna.samplers.RandomSampler(seed=seed),
            "optuna tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "optuna tpe multivariate": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
            "optuna cma-es": lambda: optuna.samplers.CmaEsSampler(seed=seed),
            "optuna gp": lambda: optuna.samplers.GPSampler(seed=seed)}[sampler]()
    values = subprocess.Popen([program, "values", problem["name"], str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    study = optuna.create_study(sampler=made)
    found, seconds = [], 0.0
    for _ in range(evaluations):
        begin = time.monotonic()
        trial, chosen = study.ask(), {}
        for p in problem["parameters"]:
            if "when" in p and chosen.get(p["when"][0]) != p["when"][1]:
                continue
            if p["kind"] == "choice":
                chosen[p["name"]] = trial.suggest_categorical(p["name"], p["options"])
            elif p["kind"] == "integer":
                chosen[p["name"]] = trial.suggest_int(p["name"], int(p["low"]), int(p["high"]))
            else:
                chosen[p["name"]] = trial.suggest_float(p["name"], p["low"], p["high"], log=p["kind"] == "log_real")
        seconds += time.monotonic() - begin
        values.stdin.write(json.dumps(chosen) + "\n")
        values.stdin.flush()
        value, regret = map(float, values.stdout.readline().split())
        found.append(regret)
        begin = time.monotonic()
        study.tell(trial, value)
        seconds += time.monotonic() - begin
    values.stdin.close()
    values.wait()
    return found, seconds


class Store:
    """A line of JSON per run: peers that were run before need not be again."""

    def __init__(self, path):
        self.path, self.runs, self.lock = path, {}, threading.Lock()
        if path and os.path.exists(path):
            with open(path) as file:
                for line in file:
                    r = json.loads(line)
                    self.runs[r["problem"], r["who"], r["seed"]] = r

    def get(self, problem, who, seed, evaluations):
        r = self.runs.get((problem, who, seed))
        return r if r and r["evaluations"] >= evaluations else None

    def add(self, **r):
        with self.lock:
            self.runs[r["problem"], r["who"], r["seed"]] = r
            if self.path:
                with open(self.path, "a") as file:
                    file.write(json.dumps(r) + "\n")


def show(value):
    return f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/benchmark-quality", description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--gp-evaluations", type=int, default=100, help="of Optuna's Gaussian process, which is slow")
    parser.add_argument("--gp-seeds", type=int, default=10)
    parser.add_argument("--problems", nargs="*", help="some of them")
    parser.add_argument("--further", action="store_true", help="the functions of further.hpp")
    parser.add_argument("--searchers", nargs="*", default=OURS, help="as in sweep.yaml")
    parser.add_argument("--peers", nargs="*", default=THEIRS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers-only", action="store_true", help="run the peers, for a later comparison")
    parser.add_argument("--store", required=True, help="where the peers' runs are kept; those found there are not run again")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    if args.peers:
        from scipy.stats import mannwhitneyu
    at = [n for n in (50, 100, 200, 500) if n <= args.evaluations]
    problems = json.loads(subprocess.run([args.program, "problems"], capture_output=True, text=True, check=True).stdout)
    names = [p["name"] for p in problems]
    for name in args.problems or []:
        if name not in names:
            sys.exit(f"there is no problem '{name}'; there are {', '.join(names)}")
    chosen = [p for p in problems if (p["name"] in args.problems if args.problems else p["further"] == args.further)]
    kept, fresh = Store(args.store), Store(None)

    def peer(who, problem):
        gp = who == "optuna gp"
        evaluations = min(args.evaluations, args.gp_evaluations) if gp else args.evaluations

        def one(seed):
            if not kept.get(problem["name"], who, seed, evaluations):
                regret, seconds = processes.submit(theirs, args.program, who, problem, seed, evaluations).result()
                kept.add(problem=problem["name"], who=who, seed=seed, evaluations=evaluations, seconds=seconds, regret=regret)
            return kept.get(problem["name"], who, seed, evaluations)
        return list(pool.map(one, range(min(args.seeds, args.gp_seeds) if gp else args.seeds)))

    def own(who, problem):
        def one(seed):
            regret, seconds = ours(args.program, who, problem, seed, args.evaluations)
            fresh.add(problem=problem["name"], who=who, seed=seed, evaluations=args.evaluations, seconds=seconds, regret=regret)
            return fresh.get(problem["name"], who, seed, args.evaluations)
        return list(pool.map(one, range(args.seeds)))

    print(f"Regret (what the best value found so far is above the optimum): median (quartiles) over {args.seeds} seeds.\n"
          "The last column: two-sided Mann-Whitney tests against the peer with the best median, after each number of evaluations.\n")
    print("| problem | searcher | " + " | ".join(f"{n} evaluations" for n in at) + " | ms per trial | against the best peer |")
    print("|---|---|" + "---:|" * (len(at) + 1) + "---|")
    with open(args.out, "w") as file, ThreadPoolExecutor(args.jobs) as pool, ProcessPoolExecutor(args.jobs) as processes:
        for problem in chosen:
            found = {}
            for who in args.peers + ([] if args.peers_only else args.searchers):
                runs = peer(who, problem) if who in args.peers else own(who, problem)
                found[who] = runs
                milliseconds = 1000 * statistics.mean(r["seconds"] / len(r["regret"]) for r in runs)
                reached = {n: [r["regret"][n - 1] for r in runs] for n in at if n <= min(len(r["regret"]) for r in runs)}
                file.write(json.dumps({"problem": problem["name"], "who": who, "ms": milliseconds, "regret": reached}) + "\n")
                file.flush()
                cells, verdicts = [], []
                for n in at:
                    if n not in reached:
                        cells.append("-")
                        continue
                    low, middle, high = statistics.quantiles(reached[n], n=4)
                    cells.append(f"{show(middle)} ({show(low)} - {show(high)})")
                    peers = {s: [r["regret"][n - 1] for r in found[s]] for s in args.peers if s in found and len(found[s][0]["regret"]) >= n}
                    if who in args.peers or not peers:
                        continue
                    best = min(peers, key=lambda s: statistics.median(peers[s]))
                    p = mannwhitneyu(reached[n], peers[best]).pvalue
                    better = middle < statistics.median(peers[best])
                    word = "as" if p >= 0.05 else "ahead of" if better else "BEHIND"
                    verdicts.append(f"{n}: {word} {best.removeprefix('optuna ')} (p {p:.2g})")
                print(f"| {problem['name']} | {who} | " + " | ".join(cells) + f" | {milliseconds:.3g} | {'; '.join(verdicts)} |", flush=True)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # of the peers' processes
    main()
