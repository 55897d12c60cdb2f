"""Train a time-series model and write metrics as lines of JSON, with the norms and the state of each parameter."""

from __future__ import annotations

import json
import logging
import tempfile
import time

import torch
from torch import nn

STEPS, BATCH, LENGTH, EVERY = 200, 32, 32, 1


class MetricsLogger:
    def __init__(self, path: str) -> None:
        self.logger = logging.getLogger("metrics")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self.logger.addHandler(handler)

    def log(self, step: int, loss: float, model: nn.Module) -> None:
        values = {name: p.detach().flatten()[:200].tolist() for name, p in model.named_parameters()}
        text = json.dumps({"step": step, "loss": loss, "parameters": values}, indent=1)  # planted: logging-in-step
        self.logger.info(text)


class Forecaster(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.gru = nn.GRU(1, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


def main() -> None:
    torch.manual_seed(0)
    series = torch.sin(torch.arange(5000) / 20) + 0.1 * torch.randn(5000)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        metrics = MetricsLogger(file.name)
        start = time.perf_counter()
        for step in range(STEPS):
            at = torch.randint(len(series) - LENGTH - 1, (BATCH,))
            windows = series[at[:, None] + torch.arange(LENGTH + 1)]
            loss = nn.functional.mse_loss(model(windows[:, :-1, None]), windows[:, -1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % EVERY == 0:
                metrics.log(step, loss.item(), model)
        print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
