"""Ranks that wait for each other: what one rank does counts in full, and once."""

from __future__ import annotations

import pytest
from test_diagnosis import diagnose

RANKS = """
import os
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

EVERY, STEPS = 20, 160

def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    layers = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    layers.register_buffer("bank", torch.zeros(24_000_000))
    model = nn.parallel.DistributedDataParallel(layers, broadcast_buffers=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    saving = 0.0
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % EVERY == 0:
            begin = time.perf_counter()
            torch.save(layers.state_dict(), "state.pt")
            saving += time.perf_counter() - begin
    if rank == 0:
        print(saving / (time.perf_counter() - start), file=open("share.txt", "w"))
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(train, (20_000 + os.getpid() % 20_000,), nprocs=2)
"""


@pytest.mark.needs_torch
@pytest.mark.slow
def test_a_checkpoint_of_one_rank_counts_in_full_and_once(tmp_path):
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    diagnosis, printed = diagnose(tmp_path, program)
    measured = float((tmp_path / "share.txt").read_text())
    finding = next(each for each in diagnosis["findings"] if each["id"] == "slow-steps")
    assert finding["share"] > 0.8 * measured, (printed, measured)
    assert "every 20th step" in finding["claim"], printed
    others = [each for each in diagnosis["findings"] if each["phase"] == "checkpoint" and each is not finding]
    assert others == [], printed
