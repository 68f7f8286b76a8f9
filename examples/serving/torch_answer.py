#!/usr/bin/env python3
"""Answers requests with the network that ../torch_ddp trains, on a GPU if there is one. For hypertune serve:

    hypertune serve runs/torch-ddp -- python3 examples/serving/torch_answer.py
"""
import json
import os
import pathlib
import sys

import torch
from torch import nn


def main():
    params = json.loads(os.environ["HYPERTUNE_PARAMS"])  # of the trial whose checkpoint this is
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # with --gpus 1 it sees one
    width = params["width"]
    model = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
    state = torch.load(pathlib.Path(os.environ["HYPERTUNE_RESTORE"]) / "state.pt", map_location=device)
    model.load_state_dict(state["model"])
    model.to(device).eval()

    print(json.dumps({"inputs": [{"name": "point", "datatype": "FP32", "shape": [-1, 2]}],
                      "outputs": [{"name": "in_ring", "datatype": "FP32", "shape": [-1]}]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            point = request["inputs"][0]
            data = [float(value) for value in point["data"]]  # numbers that are not finite are texts: "NaN", "-Infinity"
            with torch.inference_mode():
                x = torch.tensor(data, dtype=torch.float32, device=device).reshape(point["shape"])
                probability = torch.sigmoid(model(x).squeeze(1)).tolist()
            answer = {"outputs": [{"name": "in_ring", "datatype": "FP32", "shape": [len(probability)], "data": probability}]}
        except RuntimeError as error:  # of the GPU, for example: no fault of the request
            answer = {"error": str(error), "status": 500}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
