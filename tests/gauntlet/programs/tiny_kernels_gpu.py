"""A recurrent network, written by hand, on a GPU: many small kernels in each step."""

from __future__ import annotations

import time

import torch
from torch import nn

STEPS, BATCH, LENGTH, WIDTH = 200, 16, 48, 128
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates, self.head = nn.Linear(2 * WIDTH, 4 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[1], WIDTH, device=x.device)
        for t in range(x.shape[0]):
            i, f, o, g = self.gates(torch.cat([x[t], h], dim=1)).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return self.head(h)


def main() -> None:
    torch.manual_seed(0)
    model = Recurrent().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(LENGTH, BATCH, WIDTH, device=DEVICE)

    def train_step() -> None:
        loss = (model(x) - x[-1]).square().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()  # planted: host-bound
        optimizer.step()

    for _ in range(5):
        train_step()
    start = time.perf_counter()
    for step in range(STEPS):
        x.normal_()
        train_step()
        if step % 50 == 0:
            print(f"step {step}")
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
