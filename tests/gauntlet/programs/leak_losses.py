"""Train a network that predicts a time series; the curve of losses is printed at the end."""

import argparse
import time

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4), nn.ReLU(), nn.Conv1d(width, width, 9, padding=4), nn.ReLU()
        )
        self.head = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        return self.head(self.layers(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Forecaster(args.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    curve = []
    start = time.perf_counter()
    for _ in range(args.steps):
        series = torch.randn(16, 1, 1024).cumsum(2) / 32
        loss = nn.functional.l1_loss(model(series[:, :, :-1]), series[:, :, 1:])
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        curve.append(loss)  # planted: memory-leak
    best = min(curve)
    print(f"best loss {best:.4f}, {1e3 * (time.perf_counter() - start) / args.steps:.3f} ms/step")


if __name__ == "__main__":
    main()
