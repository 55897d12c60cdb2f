"""Train a ranking model while a thread keeps statistics of the losses for a dashboard."""

from __future__ import annotations

import threading
import time

import torch
from torch import nn

STEPS, BATCH, ITEMS, FEATURES = 250, 32, 20, 32


class Dashboard(threading.Thread):
    """Mean, spread and autocorrelation of all losses so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.losses: list[float] = [1.0] * 2000
        self.done = threading.Event()
        self.summary = (0.0, 0.0)

    def autocorrelation(self, values: list[float], mean: float) -> float:
        best = 0.0
        for lag in range(1, 40):
            products = [(a - mean) * (b - mean) for a, b in zip(values, values[lag:])]  # planted: gil-contention
            best = max(best, sum(products))
        return best

    def run(self) -> None:
        while not self.done.is_set():
            values = self.losses[-2000:]
            mean = sum(values) / len(values)
            self.summary = (mean, self.autocorrelation(values, mean))


class Scorer(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        return self.head(self.net(items)).squeeze(-1)


def main() -> None:
    torch.manual_seed(0)
    model = Scorer()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
    dashboard = Dashboard()
    dashboard.start()
    start = time.perf_counter()
    for step in range(STEPS):
        items = torch.randn(BATCH, ITEMS, FEATURES)
        loss = nn.functional.cross_entropy(model(items), items[..., 0].argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dashboard.losses.append(loss.item())
        if step % 50 == 0:
            print(f"step {step}: mean loss {dashboard.summary[0]:.4f}")
    elapsed = time.perf_counter() - start
    dashboard.done.set()
    dashboard.join()
    print(f"{STEPS} steps, {1e3 * elapsed / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
