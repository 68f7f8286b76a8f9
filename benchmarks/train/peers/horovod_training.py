"""The training of elastic_benchmark.cpp as a worker of Elastic Horovod: state in memory, a commit after each batch.

horovod_training.py FOLDER BATCH [steady]. Writes Notes into FOLDER; FOLDER/stop ends it. steady: ten steps with a
commit and ten without in turn, noted as "committed" and "trained".
"""
import os
import sys
import time

began = time.monotonic()
import torch
import horovod.torch as hvd

import torch_network

folder, batch, steady = sys.argv[1], int(sys.argv[2]), "steady" in sys.argv[3:]
hvd.init()
note = torch_network.Notes(folder)
note("began", hvd.rank(), hvd.size(), began)
training = torch_network.Training(batch)
optimizer = hvd.DistributedOptimizer(training.optimizer, named_parameters=training.model.named_parameters())
state = hvd.elastic.TorchState(model=training.model, optimizer=optimizer, step=0)


@hvd.elastic.run
def train(state):
    rank, size = hvd.rank(), hvd.size()
    note("formed", rank, size)
    while True:
        training.backward(state.model, optimizer, state.step, rank, size)
        optimizer.step()
        state.step += 1
        if state.step % 10 == 0:
            stop = torch.tensor([float(os.path.exists(os.path.join(folder, "stop")))])
            if hvd.allreduce(stop, name="stop", op=hvd.Sum)[0] > 0:
                return
        commits = not steady or state.step // 10 % 2 == 0
        if commits:
            state.commit()
        note("committed" if commits else "trained", rank, size)


train(state)
