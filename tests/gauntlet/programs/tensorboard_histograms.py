"""An MLP with TensorBoard: scalars, and histograms of weights and gradients."""

from __future__ import annotations

import tempfile
import time

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

STEPS, BATCH, LOG_EVERY = 150, 64, 1


def log_histograms(writer: SummaryWriter, model: nn.Module, step: int) -> None:
    for name, parameter in model.named_parameters():
        writer.add_histogram(f"weights/{name}", parameter, step)  # planted: logging-in-step
        writer.add_histogram(f"gradients/{name}", parameter.grad, step)  # planted: logging-in-step


def main() -> None:
    torch.manual_seed(0)
    inputs, targets = torch.randn(4096, 64), torch.randint(10, (4096,))
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        writer = SummaryWriter(folder)
        start = time.perf_counter()
        for step in range(STEPS):
            rows = torch.randint(len(inputs), (BATCH,))
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % LOG_EVERY == 0:
                writer.add_scalar("loss", loss.item(), step)
                log_histograms(writer, model, step)
        print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")
        writer.close()


if __name__ == "__main__":
    main()
