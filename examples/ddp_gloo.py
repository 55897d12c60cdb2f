"""Train a small network with DistributedDataParallel on the CPU, two ranks or more, by gloo.

    marey run -o ddp.marey -- torchrun --nproc-per-node 2 examples/ddp_gloo.py
    marey breakdown ddp.marey

Two lines record the communication: trace_distributed() for the program's own calls, trace_ddp() for the gradients,
which DistributedDataParallel reduces in C++. `--slow RANK` gives one rank twice the work, and the breakdown shows which
rank waits for it.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import marey
import marey.torch

FEATURES = 512
BATCH = 256


def make_model():
    torch.manual_seed(0)
    hidden = [layer for _ in range(3) for layer in (nn.Linear(FEATURES, FEATURES), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(FEATURES, 1))


def train(model, steps, is_slow):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rng = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(steps):
        with marey.iteration():
            with marey.range("data"):
                x = torch.randn(BATCH, FEATURES, generator=rng)
                y = x.mean(dim=1, keepdim=True)
            with marey.range("forward"):
                loss = nn.functional.mse_loss(model(x), y)
                if is_slow:
                    with torch.no_grad():  # only takes time
                        for _ in range(3):
                            model.module(x)
            with marey.range("backward"):
                optimizer.zero_grad()
                loss.backward()
            with marey.range("optimizer"):
                optimizer.step()
    return loss.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--slow", type=int, metavar="RANK", help="the rank with twice the work")
    options = parser.parse_args()

    marey.torch.trace_distributed()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(make_model(), bucket_cap_mb=1)
    marey.torch.trace_ddp(model)
    loss = train(model, options.steps, is_slow=dist.get_rank() == options.slow)
    dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    if dist.get_rank() == 0:
        print(f"loss {loss.item() / dist.get_world_size():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
