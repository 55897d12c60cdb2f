"""A compiled text model on sentences of all lengths."""

from __future__ import annotations

import time

import torch
from torch import nn

STEPS, BATCH, TOKENS, WIDTH = 150, 8, 400, 64


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(6)))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(ids)))


def main() -> None:
    torch.manual_seed(0)
    torch._dynamo.config.cache_size_limit = 256
    model = Tagger()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        length = int(torch.randint(10, 90, (1,)))
        ids = torch.randint(TOKENS, (BATCH, length))
        logits = compiled(ids)  # planted: recompilation
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten() % 10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
