"""Train a wide network on a machine of unknown size; the number of threads was set for another one."""

from __future__ import annotations

import time

import torch
from torch import nn

STEPS, BATCH, WIDTH = 200, 64, 512

torch.set_num_threads(32)


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(4000, WIDTH)
    start = time.perf_counter()
    for step in range(STEPS):
        x = inputs[torch.randint(len(inputs), (BATCH,))]
        loss = (model(x).squeeze(1) - x.mean(dim=1)).square().mean()  # planted: cpu-oversubscribed
        optimizer.zero_grad()
        loss.backward()  # planted: cpu-oversubscribed
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
