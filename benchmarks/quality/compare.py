"""How good a configuration hypertune's searchers find beside Optuna's samplers, in one run. See benchmarks/README.md."""
import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

OURS = ["random", "tpe", "gp", "cma_es", "auto"]
THEIRS = ["optuna random", "optuna tpe", "optuna tpe multivariate", "optuna cma-es"]


def ours(program, searcher, problem, seed, evaluations):
    done = subprocess.run([program, "run", searcher, problem["name"], str(seed), str(evaluations)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    answer = json.loads(done.stdout)
    regret = answer["regret"]
    return regret + regret[-1:] * (evaluations - len(regret)), answer["seconds"]


def theirs(program, sampler, problem, seed, evaluations):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = {"optuna random": lambda: optuna.samplers.RandomSampler(seed=seed),
            "optuna tpe": lambda: optuna.samplers.TPESampler(seed=seed),
            "optuna tpe multivariate": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
            "optuna cma-es": lambda: optuna.samplers.CmaEsSampler(seed=seed)}[sampler]()
    values = subprocess.Popen([program, "values", problem["name"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    study = optuna.create_study(sampler=made)
    best, regret, seconds = float("inf"), [], 0.0
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
        value = float(values.stdout.readline())
        best = min(best, value)
        regret.append(best - problem["optimum"])
        begin = time.monotonic()
        study.tell(trial, value)
        seconds += time.monotonic() - begin
    values.stdin.close()
    values.wait()
    return regret, seconds


def show(value):
    return f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/benchmark-quality", description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--problems", nargs="*", help="some of them")
    parser.add_argument("--searchers", nargs="*", default=OURS, help="as in sweep.yaml")
    parser.add_argument("--peers", nargs="*", default=THEIRS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    if args.peers:
        from scipy.stats import mannwhitneyu
    at = [n for n in (50, 100, 200, 500) if n <= args.evaluations]
    problems = json.loads(subprocess.run([args.program, "problems"], capture_output=True, text=True, check=True).stdout)
    names = [p["name"] for p in problems]
    for name in args.problems or []:
        if name not in names:
            sys.exit(f"there is no problem '{name}'; there are {', '.join(names)}")
    print(f"Regret (what the best value found so far is above the optimum): median (quartiles) over {args.seeds} seeds.\n"
          "p: of a two-sided Mann-Whitney test against the best peer after the last number of evaluations.\n")
    print("| problem | searcher | " + " | ".join(f"{n} evaluations" for n in at) + " | ms per trial | against the best peer |")
    print("|---|---|" + "---:|" * (len(at) + 1) + "---|")
    with open(args.out, "w") as file, ThreadPoolExecutor(args.jobs) as pool:
        for problem in problems:
            if args.problems and problem["name"] not in args.problems:
                continue
            found = {}
            for who, run in [(s, theirs) for s in args.peers] + [(s, ours) for s in args.searchers]:
                answers = list(pool.map(lambda seed: run(args.program, who, problem, seed, args.evaluations), range(args.seeds)))
                found[who] = [a[0] for a in answers]
                milliseconds = 1000 * statistics.mean(a[1] for a in answers) / args.evaluations
                file.write(json.dumps({"problem": problem["name"], "who": who, "ms": milliseconds,
                                       "regret": {n: [r[n - 1] for r in found[who]] for n in at}}) + "\n")
                file.flush()
                cells, verdict = [], ""
                for n in at:
                    low, middle, high = statistics.quantiles([r[n - 1] for r in found[who]], n=4)
                    cells.append(f"{show(middle)} ({show(low)} - {show(high)})")
                if run is ours and args.peers:
                    last = at[-1] - 1
                    best = min(args.peers, key=lambda s: statistics.median(r[last] for r in found[s]))
                    a, b = [r[last] for r in found[who]], [r[last] for r in found[best]]
                    p = mannwhitneyu(a, b).pvalue
                    better = statistics.median(a) < statistics.median(b)
                    verdict = f"{'ahead of' if better else 'behind'} {best}, p = {p:.2g}" if p < 0.05 else f"as {best}, p = {p:.2g}"
                print(f"| {problem['name']} | {who} | " + " | ".join(cells) + f" | {milliseconds:.3g} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
