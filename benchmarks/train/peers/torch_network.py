"""The network of elastic_benchmark.cpp in PyTorch, its samples, and the notes of a worker."""
import os
import time

import torch

inputs, hidden, outputs, samples = 256, 256, 10, 4096


class Training:
    """One worker's: computes in one thread; the same data, weights and order in each process."""

    def __init__(self, batch):
        torch.set_num_threads(1)
        torch.manual_seed(7)
        self.batch = batch
        self.labels = torch.randint(outputs, (samples,))
        self.data = (torch.rand(outputs, inputs) - 0.5)[self.labels] + 2 * (torch.rand(samples, inputs) - 0.5)
        self.model = torch.nn.Sequential(torch.nn.Linear(inputs, hidden, bias=False), torch.nn.ReLU(),
                                         torch.nn.Linear(hidden, outputs, bias=False))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.loss_of = torch.nn.CrossEntropyLoss()

    def backward(self, model, optimizer, step, rank, size):
        """Of this rank's share of the step's batch."""
        share = self.batch * (rank + 1) // size - self.batch * rank // size
        begin = (step * self.batch + self.batch * rank // size) % samples
        picked = torch.arange(begin, begin + share) % samples
        optimizer.zero_grad()
        self.loss_of(model(self.data[picked]), self.labels[picked]).backward()


class Notes:
    """FOLDER/events-PID, a line each: when (of the clock that all processes share), what, rank, size."""

    def __init__(self, folder):
        self.log = open(os.path.join(folder, f"events-{os.getpid()}"), "a", buffering=1)

    def __call__(self, what, rank, size, when=None):
        self.log.write(f"{when or time.monotonic():.6f} {what} {rank} {size}\n")
