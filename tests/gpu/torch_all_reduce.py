"""PyTorch's all-reduce over NCCL, beside hypertune's: torch_all_reduce.py RANKS. The same sizes, by processes."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int, ranks: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": os.environ["PORT"]}
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    size = 4096
    while size <= 256 << 20:
        data = torch.zeros(size // 4, device="cuda")
        rounds = 10 if size > 1 << 24 else 100
        for _ in range(3):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(rounds):  # each is waited for, as hypertune's are
            dist.all_reduce(data)
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - begin) / rounds
        if rank == 0:
            rate = size / seconds / 1e9
            print(f"  {size:12} {1e6 * seconds:12.1f} {rate:14.2f} {rate * 2 * (ranks - 1) / ranks:12.2f}", flush=True)
        size *= 8
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    os.environ["PORT"] = str(20000 + os.getpid() % 20000)
    print(f"PyTorch {torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}: all-reduce of float, {sys.argv[1]} ranks", flush=True)
    mp.spawn(work, (int(sys.argv[1]),), nprocs=int(sys.argv[1]))
