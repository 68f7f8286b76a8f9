#!/usr/bin/env python3
"""A script for torchrun that is also a trainer for hypertune: DistributedDataParallel over a small network that learns
whether a point lies in a ring. The environment has its group (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).

    torchrun --nproc-per-node 2 train.py --lr 0.1 --width 32          trains without hypertune, too
"""
import argparse
import json
import os
import pathlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def points(seed, count):
    draw = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 2, generator=draw) * 2 - 1
    distance = x.norm(dim=1) + torch.randn(count, generator=draw) * 0.05
    return TensorDataset(x, ((distance > 0.3) & (distance < 0.8)).float())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=9)
    args = parser.parse_args()

    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()) if cuda else torch.device("cpu")
    torch.manual_seed(int(os.environ.get("HYPERTUNE_SEED", "0")) % 2**63)

    model = nn.Sequential(nn.Linear(2, args.width), nn.Tanh(), nn.Linear(args.width, args.width), nn.Tanh(), nn.Linear(args.width, 1))
    model = DistributedDataParallel(model.to(device))  # all ranks start with rank 0's weights
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    step = int(os.environ.get("HYPERTUNE_STEP", "0"))
    restore = os.environ.get("HYPERTUNE_RESTORE")  # set for every rank
    if restore:
        state = torch.load(pathlib.Path(restore) / "state.pt", map_location=device)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    train, held_out = points(1, 4000), points(2, 1000)
    sampler = DistributedSampler(train, seed=1)  # each rank has its share of the samples
    loader = DataLoader(train, batch_size=64 // dist.get_world_size(), sampler=sampler)
    loss_of = nn.BCEWithLogitsLoss()
    while step < args.epochs:
        sampler.set_epoch(step)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(model(x.to(device)).squeeze(1), y.to(device))
            loss.backward()  # gradients are averaged over the ranks
            optimizer.step()

        with torch.no_grad():  # each rank evaluates its share of the held-out points
            x, y = (part[dist.get_rank() :: dist.get_world_size()].to(device) for part in held_out.tensors)
            right = ((model.module(x).squeeze(1) > 0) == (y > 0.5)).sum().double()
        dist.all_reduce(right)

        if dist.get_rank() == 0:
            report = {"step": step, "accuracy": right.item() / len(held_out)}
            folder = os.environ.get("HYPERTUNE_CHECKPOINT")  # set for rank 0 only
            if folder:
                (pathlib.Path(folder) / f"step-{step}").mkdir(parents=True, exist_ok=True)
                torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()},
                           pathlib.Path(folder) / f"step-{step}" / "state.pt")
                report["checkpoint"] = f"step-{step}"
            print(json.dumps(report), flush=True)
        step += 1
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
