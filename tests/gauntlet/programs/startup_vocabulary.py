"""Train word vectors by skip-gram. The pairs of words come first, then the training."""

from __future__ import annotations

import random
import time

import torch
from torch import nn

WORDS, LENGTH, WINDOW, BATCH, STEPS, WIDTH = 2000, 2_000_000, 4, 256, 150, 32


def generate() -> list[int]:
    chance = random.Random(0)
    return [int(WORDS * chance.random() ** 2) for _ in range(LENGTH)]


def make_pairs(text: list[int]) -> list[tuple[int, int]]:
    pairs = []
    for i in range(len(text)):
        for j in range(max(0, i - WINDOW), min(len(text), i + WINDOW + 1)):
            if i != j and (31 * text[i] + 17 * text[j] + text[i] * text[j]) % 64 == 0:  # planted: startup-dominates
                pairs.append((text[i], text[j]))  # every word has its own context words
    return pairs


def main() -> None:
    torch.manual_seed(0)
    pairs = torch.tensor(make_pairs(generate()))
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        batch = pairs[torch.randint(len(pairs), (BATCH,))]
        loss = nn.functional.cross_entropy(model(batch[:, 0]), batch[:, 1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"done after {time.process_time():.1f} s of CPU time")


if __name__ == "__main__":
    main()
