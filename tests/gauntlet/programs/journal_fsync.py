"""Train a small recommender and keep a journal of its steps that survives a crash of the machine."""

from __future__ import annotations

import os
import tempfile
import time

import torch
from torch import nn

USERS, ITEMS, WIDTH, STEPS, BATCH = 2000, 1000, 16, 8000, 64


class Journal:
    def __init__(self, path: str) -> None:
        self.file = open(path, "a")

    def append(self, step: int, loss: float) -> None:
        self.file.write(f"{step} {loss:.6f}\n")
        self.file.flush()
        os.fsync(self.file.fileno())  # planted: io-bound

    def close(self) -> None:
        self.file.close()


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        return (self.users(users) * self.items(items)).sum(dim=1)


def main() -> None:
    torch.manual_seed(0)
    model = Factors()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    journal = Journal(os.path.join(tempfile.mkdtemp(dir="."), "journal.txt"))
    start = time.perf_counter()
    for step in range(STEPS):
        users, items = torch.randint(USERS, (BATCH,)), torch.randint(ITEMS, (BATCH,))
        loss = nn.functional.mse_loss(model(users, items), torch.rand(BATCH))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        journal.append(step, loss.item())
    journal.close()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
