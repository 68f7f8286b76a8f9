"""The training of elastic_benchmark.cpp as a worker of torchrun: DistributedDataParallel over Gloo, a checkpoint on disk.

torch_training.py FOLDER BATCH STEPS_BETWEEN_CHECKPOINTS. Writes Notes into FOLDER; FOLDER/stop ends it.
"""
import os
import sys
import time

began = time.monotonic()
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import torch_network

folder, batch, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
note = torch_network.Notes(folder)
note("began", rank, size, began)
note("connected", rank, size)
training = torch_network.Training(batch)
model, optimizer = training.model, training.optimizer
saved = os.path.join(folder, "checkpoint")
step = 0
if os.path.exists(saved):
    state = torch.load(saved)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
parallel = DistributedDataParallel(model)
note("formed", rank, size)
stop = torch.zeros(1)
while True:
    training.backward(parallel, optimizer, step, rank, size)
    optimizer.step()
    step += 1
    if step % every == 0:
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, saved + ".new")
            os.replace(saved + ".new", saved)
        stop[0] = os.path.exists(os.path.join(folder, "stop"))
        dist.all_reduce(stop)
        if stop[0] > 0:
            break
    note("committed", rank, size)
dist.destroy_process_group()
