"""Contrastive learning on a GPU with negatives that are chosen in each step."""

from __future__ import annotations

import random
import time

import torch
from torch import nn
from torch.nn import functional

STEPS, BATCH, NEGATIVES, ITEMS, WIDTH = 150, 512, 16, 20_000, 512
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(ITEMS, WIDTH)
        self.net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return functional.normalize(self.net(self.items(ids)), dim=-1)


def choose_negatives(positives: list[int], chance: random.Random) -> torch.Tensor:
    rows = []
    for positive in positives:
        row: list[int] = []
        while len(row) < NEGATIVES:
            item = int(ITEMS * chance.random())  # planted: host-bound
            if item != positive:
                row.append(item)
        rows.append(row)
    return torch.tensor(rows).to(DEVICE)


def main() -> None:
    torch.manual_seed(0)
    chance = random.Random(0)
    model = Tower().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=DEVICE == "cuda")
    every = torch.randint(ITEMS, (STEPS, BATCH)).tolist()
    start = time.perf_counter()
    for step in range(STEPS):
        positives = every[step]
        negatives = choose_negatives(positives, chance)
        anchors = model(torch.tensor(positives, device=DEVICE))
        scores = torch.einsum("bw,bnw->bn", anchors, model(negatives)) / 0.1
        loss = functional.cross_entropy(scores, torch.zeros(BATCH, dtype=torch.long, device=DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
