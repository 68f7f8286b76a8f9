#!/usr/bin/env python3
"""A trainer that uses only hypertune's protocol, not the library: parameters on the command line, reports as JSON lines
on standard output, checkpoints as folders. It trains logistic regression on the powers of a point's coordinates, to
tell whether the point lies in a ring. It needs only the standard library.

    train.py --lr 0.1 --power 3         trains without hypertune, too
"""
import argparse
import json
import math
import os
import pathlib
import random


def samples(seed, count, power):
    """Points inside and outside a ring, as polynomial features up to a power."""
    draw = random.Random(seed)
    result = []
    for _ in range(count):
        x, y = draw.uniform(-1, 1), draw.uniform(-1, 1)
        label = 1.0 if 0.3 < math.hypot(x, y) + draw.gauss(0, 0.05) < 0.8 else 0.0
        features = [x**i * y**j for i in range(power + 1) for j in range(power + 1 - i)]
        result.append((features, label))
    return result


def predict(weights, features):
    score = sum(w * f for w, f in zip(weights, features))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--power", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=27)
    args = parser.parse_args()

    train, held_out = samples(1, 400, args.power), samples(2, 200, args.power)
    weights = [0.0] * len(train[0][0])
    step = int(os.environ.get("HYPERTUNE_STEP", "0"))  # the step to run next

    restore = os.environ.get("HYPERTUNE_RESTORE")  # a folder that an earlier attempt of this trial saved
    if restore:
        weights = json.loads((pathlib.Path(restore) / "weights.json").read_text())

    order = list(range(len(train)))
    while step < args.epochs:
        random.Random(step).shuffle(order)
        for i in order:
            features, label = train[i]
            error = predict(weights, features) - label
            weights = [w - args.lr * error * f for w, f in zip(weights, features)]
        right = sum((predict(weights, f) > 0.5) == (label > 0.5) for f, label in held_out)
        report = {"step": step, "accuracy": right / len(held_out)}

        # To save: write a new folder under HYPERTUNE_CHECKPOINT and name it in the report.
        folder = os.environ.get("HYPERTUNE_CHECKPOINT")
        if folder and step % 9 == 8:
            name = f"step-{step}"
            target = pathlib.Path(folder) / name
            target.mkdir(parents=True, exist_ok=True)
            (target / "weights.json").write_text(json.dumps(weights))
            report["checkpoint"] = name

        print(json.dumps(report), flush=True)
        step += 1


if __name__ == "__main__":
    main()
