#!/usr/bin/env python3
"""A trainer whose checkpoints can be served: a linear classifier of scikit-learn's handwritten digits.

    sklearn_train.py --alpha 1e-4 --eta 0.01         trains without hypertune, too
"""
import argparse
import json
import os
import pathlib

import joblib
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--eta", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    images, held_out, labels, held_out_labels = train_test_split(images / 16, labels, random_state=0)
    step = int(os.environ.get("HYPERTUNE_STEP", "0"))  # the step to run next
    restore = os.environ.get("HYPERTUNE_RESTORE")  # a folder that an earlier attempt of this trial saved
    if restore:
        model = joblib.load(pathlib.Path(restore) / "model.joblib")
    else:
        model = SGDClassifier(loss="log_loss", alpha=args.alpha, learning_rate="constant", eta0=args.eta, random_state=0)

    while step < args.epochs:
        model.partial_fit(images, labels, classes=range(10))
        report = {"step": step, "accuracy": model.score(held_out, held_out_labels)}
        folder = os.environ.get("HYPERTUNE_CHECKPOINT")
        if folder:
            target = pathlib.Path(folder) / f"step-{step}"
            target.mkdir(parents=True, exist_ok=True)
            joblib.dump(model, target / "model.joblib")
            report["checkpoint"] = target.name
        print(json.dumps(report), flush=True)
        step += 1


if __name__ == "__main__":
    main()
