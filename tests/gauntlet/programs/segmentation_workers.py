"""Train a small U-Net on generated shapes; two worker processes draw the masks."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE, STEPS, BATCH = 64, 120, 8


class Disks(Dataset):
    """Images of noisy disks, and the masks of the disks."""

    def __init__(self, n: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.disks = (torch.rand(n, 3, generator=generator) * torch.tensor([SIZE, SIZE, SIZE / 3])).tolist()

    def __len__(self) -> int:
        return len(self.disks)

    def draw(self, x0: float, y0: float, radius: float) -> torch.Tensor:
        rows = []
        for y in range(SIZE):
            rows.append([float((x - x0) ** 2 + (y - y0) ** 2 < radius**2) for x in range(SIZE)])  # planted: input-bound
        return torch.tensor(rows)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        mask = self.draw(*self.disks[i])
        return (mask + 0.3 * torch.randn(SIZE, SIZE))[None], mask[None]


class UNet(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.middle = nn.Sequential(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(width + 1, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.cat([self.up(self.middle(self.down(x))), x], dim=1))


def main() -> None:
    torch.manual_seed(0)
    loader = DataLoader(Disks(STEPS * BATCH), batch_size=BATCH, num_workers=2, shuffle=True)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, running = time.perf_counter(), 0.0
    for i, (image, mask) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if i % 40 == 39:
            print(f"[{i + 1}] loss {running / 40:.3f}")
            running = 0.0
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
