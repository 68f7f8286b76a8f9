"""The training of elastic_benchmark.cpp as a worker of torchrun: DistributedDataParallel over Gloo, a checkpoint on disk.

torch_training.py FOLDER BATCH STEPS_BETWEEN_CHECKPOINTS. Notes in FOLDER/events-PID, a line each: when (of the clock
that all processes share), what, generation, rank, size. FOLDER/stop ends it.
"""
import os
import sys
import time

began = time.monotonic()
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

folder, batch, every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
log = open(os.path.join(folder, f"events-{os.getpid()}"), "a", buffering=1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def note(what, when=None):
    log.write(f"{when or time.monotonic():.6f} {what} {os.environ['TORCHELASTIC_RUN_ID']} {rank} {size}\n")


note("began", began)
note("connected")
torch.set_num_threads(1)
torch.manual_seed(7)
inputs, hidden, outputs, samples = 256, 256, 10, 4096
labels = torch.randint(outputs, (samples,))
data = (torch.rand(outputs, inputs) - 0.5)[labels] + 2 * (torch.rand(samples, inputs) - 0.5)
model = torch.nn.Sequential(torch.nn.Linear(inputs, hidden, bias=False), torch.nn.ReLU(),
                            torch.nn.Linear(hidden, outputs, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
saved = os.path.join(folder, "checkpoint")
step = 0
if os.path.exists(saved):
    state = torch.load(saved)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]
parallel = DistributedDataParallel(model)
loss_of = torch.nn.CrossEntropyLoss()
note("formed")
stop = torch.zeros(1)
while True:
    share = batch * (rank + 1) // size - batch * rank // size
    begin = (step * batch + batch * rank // size) % samples
    picked = torch.arange(begin, begin + share) % samples
    optimizer.zero_grad()
    loss_of(parallel(data[picked]), labels[picked]).backward()
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
    note("committed")
dist.destroy_process_group()
