#!/usr/bin/env python3
"""Answers requests with the model of sklearn_train.py: one line of JSON in, one line out. For hypertune serve:

    hypertune serve runs/sklearn -- python3 examples/serving/sklearn_answer.py
"""
import json
import os
import pathlib
import sys

import joblib
import numpy as np


def main():
    model = joblib.load(pathlib.Path(os.environ["HYPERTUNE_RESTORE"]) / "model.joblib")
    # The first line says what the model takes and gives, and that it is ready. As all first extents are -1, several
    # requests may come as one.
    print(json.dumps({"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [-1, 64]}],
                      "outputs": [{"name": "digit", "datatype": "INT64", "shape": [-1]},
                                  {"name": "probability", "datatype": "FP64", "shape": [-1, 10]}]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            pixels = request["inputs"][0]
            images = np.array(pixels["data"], dtype=np.float32).reshape(pixels["shape"])
            probability = model.predict_proba(images)
            digit = model.classes_[probability.argmax(axis=1)]
            answer = {"outputs": [{"name": "digit", "datatype": "INT64", "shape": [len(digit)], "data": digit.tolist()},
                                  {"name": "probability", "datatype": "FP64", "shape": list(probability.shape),
                                   "data": probability.ravel().tolist()}]}
        except ValueError as error:  # the request is wrong: scikit-learn refuses values such as NaN
            answer = {"error": str(error)}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
