"""Train a wide network on two ranks, with gradients that are large for the size of a batch."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

BATCH, WIDTH, BATCHES, ACCUMULATE = 4, 1400, 240, 1


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(4)))
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    start = time.perf_counter()
    for i in range(BATCHES):
        model.require_backward_grad_sync = i % ACCUMULATE == ACCUMULATE - 1
        x = torch.randn(BATCH, WIDTH)
        loss = (model(x) - x.flip(1)).square().mean() / ACCUMULATE
        loss.backward()  # planted: exposed-communication
        if model.require_backward_grad_sync:
            optimizer.step()
            optimizer.zero_grad()
    if rank == 0:
        print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / BATCHES:.3f} ms/batch")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (20_000 + os.getpid() % 20_000,), nprocs=2)
