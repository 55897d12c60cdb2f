"""Train a transformer on a GPU and watch the norm of the gradient of each parameter."""

from __future__ import annotations

import time

import torch
from torch import nn

STEPS, BATCH, LENGTH, WIDTH, LAYERS, TOKENS = 200, 32, 256, 1024, 4, 4000
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.embedding, self.encoder = nn.Embedding(TOKENS, WIDTH), nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(ids)))


def watch(model: nn.Module, largest: torch.Tensor) -> torch.Tensor:
    for parameter in model.parameters():
        norm = parameter.grad.norm()
        if (norm > largest).item():  # planted: sync-bound
            largest = norm
    return largest


def main() -> None:
    torch.manual_seed(0)
    model = Model().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    start = time.perf_counter()
    largest = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        ids = torch.randint(TOKENS, (BATCH, LENGTH), device=DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        largest = watch(model, largest)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, largest norm {largest.item():.4f}")
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
