"""Train on two ranks and average gradients by hand, parameter by parameter, as older scripts do."""

import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

BATCH, WIDTH, LAYERS, STEPS = 16, 160, 40, 120


def average(model):
    """The mean of the gradients of all ranks."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # planted: exposed-communication
        parameter.grad /= dist.get_world_size()


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    start = time.perf_counter()
    for _ in range(STEPS):
        x = torch.randn(BATCH, WIDTH, generator=generator)
        loss = (model(x) - x.flip(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average(model)
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, (20_000 + os.getpid() % 20_000,), nprocs=2)
