"""An autoencoder for sensor data; a thread prepares batches ahead and puts them into a queue."""

from __future__ import annotations

import math
import queue
import random
import threading
import time

import torch
from torch import nn

STEPS, BATCH, SENSORS = 400, 32, 128


def read_sensors(chance: random.Random) -> list[float]:
    phase = chance.random()
    values = []
    for i in range(SENSORS):
        values.append(math.sin(i / 5 + phase) + 0.1 * chance.gauss(0, 1))  # planted: gil-contention
    return values


class Prefetcher(threading.Thread):
    """Keeps batches ready; the training loop never waits for it, and takes the last batch again if it is late."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ready: queue.Queue = queue.Queue(maxsize=4)
        self.last = torch.randn(BATCH, SENSORS)

    def run(self) -> None:
        chance = random.Random(0)
        while True:
            self.ready.put(torch.tensor([read_sensors(chance) for _ in range(BATCH)]))

    def next(self) -> torch.Tensor:
        try:
            self.last = self.ready.get_nowait()
        except queue.Empty:
            pass
        return self.last


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(layer for _ in range(6) for layer in (nn.Linear(SENSORS, SENSORS), nn.LayerNorm(SENSORS), nn.SiLU()))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    prefetcher = Prefetcher()
    prefetcher.start()
    start = time.perf_counter()
    for step in range(STEPS):
        batch = prefetcher.next()
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    elapsed = time.perf_counter() - start
    print(f"{STEPS} steps, {1e3 * elapsed / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
