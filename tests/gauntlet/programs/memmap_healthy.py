"""Train on a large file in a np.memmap: its pages are mapped, one after another, and are no memory of the program."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

WIDTH, PIECES, USED, BATCH = 256, 64, 24, 16


class Records(torch.utils.data.Dataset):
    """Each record is 64 KB; the sum of its first pieces counts."""

    def __init__(self, path: Path, n: int) -> None:
        self.data = np.memmap(path, dtype=np.float32, mode="w+", shape=(n, PIECES, WIDTH))

    def __len__(self) -> int:
        return len(self.data)

    def __getitems__(self, at: list[int]) -> torch.Tensor:
        return torch.from_numpy(self.data[at, :USED].sum(axis=1))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    path = Path("records.bin")
    records = Records(path, args.steps * BATCH)
    path.unlink()  # the kernel removes it at the end
    loader = torch.utils.data.DataLoader(
        records, batch_size=BATCH, shuffle=True, num_workers=args.workers, collate_fn=lambda batch: batch
    )
    model = nn.Sequential(nn.Linear(WIDTH, 2048), nn.ReLU(), nn.Linear(2048, WIDTH))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    start = time.perf_counter()
    for x in loader:
        x = (x[:, None] + torch.randn(BATCH, 8, WIDTH)).flatten(0, 1)
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}, {1e3 * (time.perf_counter() - start) / args.steps:.3f} ms/step")


if __name__ == "__main__":
    main()
