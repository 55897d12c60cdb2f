"""Train a ranking model; features of each query are computed once and kept."""

import functools
import random
import time

import torch
from torch import nn

QUERIES, DOCUMENTS, FEATURES, STEPS = 10**9, 400, 96, 3500


@functools.cache  # planted: memory-leak
def features_of(query):
    generator = torch.Generator().manual_seed(query % 1000)
    return torch.randn(DOCUMENTS, FEATURES, generator=generator)


def main():
    random.seed(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        features = features_of(random.randrange(QUERIES))
        scores = model(features).squeeze(1)
        loss = nn.functional.cross_entropy(scores[None], torch.tensor([int(features[:, 0].argmax())]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"{1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
