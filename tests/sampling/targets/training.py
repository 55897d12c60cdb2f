"""A real training loop of torch with a slow step planted in its loss; prints the steps done."""

import sys
import time

import torch


def slow_metric(out):
    total = 0.0
    for value in range(60000):
        total += value * 0.5  # planted
    return total


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    out = model(x)
    loss = torch.nn.functional.mse_loss(out, y)
    loss.backward()
    optimizer.step()
    slow_metric(out)


def main(seconds):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(32, 64), torch.randn(32, 8)
    train_step(model, optimizer, x, y)
    print("ready", flush=True)
    steps, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        train_step(model, optimizer, x, y)
        steps += 1
    print("steps", steps, flush=True)


main(float(sys.argv[1]))
