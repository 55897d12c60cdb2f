"""Two ranks of DDP with gloo, which wait for each other in each step; the first one switches the tool on and off."""

import os
import sys

import torch
import torch.multiprocessing
from torch import distributed


def train(rank: int, n_steps: int) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    if rank == 0:
        from alternate import end, step
    distributed.init_process_group("gloo")
    torch.manual_seed(rank)
    layers = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(n_steps):
        if rank == 0:
            step()
        loss = model(torch.randn(64, 256)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    distributed.destroy_process_group()
    if rank == 0:
        end()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("BENCH_PORT", "29511"))
    torch.set_num_threads(1)
    torch.multiprocessing.start_processes(train, args=(int(sys.argv[1]),), nprocs=2, start_method="fork")
