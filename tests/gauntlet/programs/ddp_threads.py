"""Train a classifier of digits on two ranks with DistributedDataParallel. Each rank sets its number of threads."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

THREADS = 16


def train(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(THREADS)
    torch.manual_seed(rank)
    layers = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)
    )
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    for step in range(args.steps):
        images, labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
        loss = nn.functional.cross_entropy(model(images), labels)  # planted: cpu-oversubscribed
        optimizer.zero_grad()
        loss.backward()  # planted: cpu-oversubscribed
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    if rank == 0:
        print(f"{1e3 * (time.perf_counter() - start) / args.steps:.3f} ms/step")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    mp.spawn(train, (parser.parse_args(), 20_000 + os.getpid() % 20_000), nprocs=2)
