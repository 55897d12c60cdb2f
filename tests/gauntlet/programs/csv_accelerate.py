"""Regression on rows of a CSV file with accelerate, as in its examples for plain PyTorch."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


def write_csv(path: Path, rows: int, columns: int) -> None:
    chance = random.Random(0)
    values = [f"{chance.gauss(0, 1):.6f}" for _ in range(997)]
    with path.open("w") as out:
        for i in range(rows):
            out.write(",".join(values[(i * columns + j * 7) % 997] for j in range(columns + 1)) + "\n")


class CsvRows(Dataset):
    """Lines stay text until they are used, so that large files take little memory."""

    def __init__(self, path: Path) -> None:
        self.lines = path.read_text().splitlines()

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        values = [float(value) for value in self.lines[i].split(",")]  # planted: input-bound
        return torch.tensor(values[:-1]), torch.tensor(values[-1])  # planted: input-bound


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=1024)
    args = parser.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.csv")
        write_csv(path, args.rows, args.columns)
        dataset = CsvRows(path)
    model = nn.Sequential(
        nn.Linear(args.columns, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.hidden), nn.ReLU(),
        nn.Linear(args.hidden, 1),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    n = args.epochs * len(loader)
    accelerator.print(f"{n} steps, {1e3 * (time.perf_counter() - start) / n:.3f} ms/step")


if __name__ == "__main__":
    main()
