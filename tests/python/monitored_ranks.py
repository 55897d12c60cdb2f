"""A rank of test_training_monitor_torch.py: a small model under torchrun, wrapped as the first argument says.

The last rank is slow in its data. It prints what its monitor is called.
"""

from __future__ import annotations

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

import marey

SLOW_S = 0.015


def wrapped(kind: str) -> torch.nn.Module:
    """Give the model, as it is, under DDP or under FSDP."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if kind == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
    return model


class Slow(torch.utils.data.Dataset):
    """Eight batches' worth of samples, slow on one rank."""

    def __init__(self, is_slow: bool) -> None:
        self.samples = TensorDataset(torch.randn(32, 16), torch.randn(32, 1))
        self.is_slow = is_slow

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, ...]:
        if self.is_slow and i % 4 == 0:
            time.sleep(SLOW_S)
        return self.samples[i]


def main() -> None:
    kind, output_dir = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    is_slow = dist.get_rank() == dist.get_world_size() - 1
    model = wrapped(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Slow(is_slow), batch_size=4)
    monitor = marey.TrainingMonitor(
        enable_torch_profiling=True, store_torch_profiling_traces=kind == "ddp", output_dir=output_dir
    )
    with monitor:
        for _ in monitor.epochs(3):
            for x, y in monitor.batches(loader):
                with monitor.phase("forward"):
                    loss = torch.nn.functional.mse_loss(model(x), y)
                with monitor.phase("backward"):
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
    os.write(1, f"rank {dist.get_rank()} was {monitor.run_name}\n".encode())  # whole, beside those of others
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
