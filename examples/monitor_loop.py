"""A plain training loop, monitored: the time of an epoch by phase, and computation and communication.

    python examples/monitor_loop.py              one process
    torchrun --standalone --nproc-per-node 2 examples/monitor_loop.py

Files go below monitor-runs/. At the end rank 0 prints a summary, and `marey report monitor-runs/NAME.marey --epochs`
shows it again.
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import marey
import marey.torch

EPOCHS = 4


def data(seed):
    """Points in 64 dimensions, labelled by the side of a curved surface."""
    rng = torch.Generator().manual_seed(seed)
    points = torch.randn(2048, 64, generator=rng)
    return TensorDataset(points, (points.square().sum(1) > 64).long())


def main(output_dir="monitor-runs"):
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    if ranks > 1:
        marey.torch.trace_distributed()  # also record communication between ranks
        distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
        marey.torch.trace_ddp(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    training, testing = data(0), data(1)
    sampler = DistributedSampler(training) if ranks > 1 else None
    loader = DataLoader(training, batch_size=128, sampler=sampler, shuffle=sampler is None)

    monitor = marey.TrainingMonitor(enable_torch_profiling=True, output_dir=output_dir)
    with monitor:
        for epoch in monitor.epochs(EPOCHS):
            if sampler is not None:
                sampler.set_epoch(epoch)
            for points, labels in monitor.batches(loader):
                with monitor.phase("forward"):
                    loss = nn.functional.cross_entropy(model(points), labels)
                with monitor.phase("backward"):
                    optimizer.zero_grad()
                    loss.backward()
                optimizer.step()  # a phase without marking it
            with monitor.phase("evaluate"), torch.no_grad():
                points, labels = testing.tensors
                right = (model(points).argmax(1) == labels).float().mean().item()
            monitor.log_metrics({"accuracy": right}, step=epoch)

    if ranks > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
