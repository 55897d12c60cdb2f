"""Train a classifier on two ranks with DistributedDataParallel. Rank 0 keeps a table of errors by class."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

CLASSES, WIDTH = 120, 384


class Confusion:
    """How often each class was taken for each other one, with a moving average."""

    def __init__(self):
        self.rates = [[0.0] * CLASSES for _ in range(CLASSES)]

    def update(self, guesses, labels):
        for guess, label in zip(guesses.tolist(), labels.tolist()):
            row = self.rates[label]
            for k in range(CLASSES):
                row[k] = 0.99 * row[k] + 0.01 * (k == guess)  # planted: straggler


def train(rank, args, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    layers = nn.Sequential(
        nn.Linear(256, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    confusion = Confusion()
    start = time.perf_counter()
    for step in range(args.steps):
        x, labels = torch.randn(args.batch, 256), torch.randint(CLASSES, (args.batch,))
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % args.every == 0:
            confusion.update(logits.argmax(1), labels)
    if rank == 0:
        print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / args.steps:.3f} ms/step")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--every", type=int, default=1)
    mp.spawn(train, (parser.parse_args(), 20_000 + os.getpid() % 20_000), nprocs=2)
