"""An unmodified training that waits for its data; `--fixed` applies the fix that the diagnosis suggests.

marey run -o slow.marey python starved.py
marey run -o fast.marey python starved.py --fixed
marey compare slow.marey fast.marey
"""

from __future__ import annotations

import math
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WIDTH, BATCH, STEPS = 1024, 32, 150


class Signals(Dataset):
    """Rows of samples of a signal."""

    def __init__(self, n: int) -> None:
        self.rows = torch.rand(n, WIDTH)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        return self.rows[indices]


def augment(row: torch.Tensor) -> torch.Tensor:
    values = []
    for value in row.tolist():
        values.append(math.sqrt(abs(2 * value - 1)))  # one value after the other
    return torch.tensor(values)


def collate(rows: torch.Tensor) -> torch.Tensor:
    return torch.stack([augment(row) for row in rows])


def collate_fixed(rows: torch.Tensor) -> torch.Tensor:
    return (2 * rows - 1).abs().sqrt()  # the whole batch at once


def main() -> None:
    torch.manual_seed(1)
    function = collate_fixed if "--fixed" in sys.argv else collate
    loader = DataLoader(Signals(BATCH * STEPS), batch_size=BATCH, collate_fn=function)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 384), torch.nn.ReLU(), torch.nn.Linear(384, WIDTH))
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in loader:
        loss = (model(batch) - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
