"""Train a small ResNet on images, with the usual augmentations of CIFAR: random crop, flip, color jitter."""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MEAN, STD = np.float32([0.49, 0.48, 0.45]), np.float32([0.25, 0.24, 0.26])


class RandomCrop:
    def __init__(self, size: int, padding: int) -> None:
        self.size, self.padding = size, padding

    def __call__(self, image: np.ndarray) -> np.ndarray:
        padded = np.zeros((self.size + 2 * self.padding, self.size + 2 * self.padding, 3), image.dtype)
        padded[self.padding : -self.padding, self.padding : -self.padding] = image
        top, left = (random.randint(0, 2 * self.padding) for _ in range(2))
        return padded[top : top + self.size, left : left + self.size]


class RandomFlip:
    def __call__(self, image: np.ndarray) -> np.ndarray:
        return image[:, ::-1] if random.random() < 0.5 else image


class ColorJitter:
    """Brightness and contrast."""

    def __call__(self, image: np.ndarray) -> np.ndarray:
        brightness, contrast = random.uniform(0.8, 1.2), random.uniform(0.8, 1.2)
        out = np.empty(image.shape, np.uint8)
        for y in range(image.shape[0]):
            for x in range(image.shape[1]):
                out[y, x] = np.clip((image[y, x] * brightness - 128) * contrast + 128, 0, 255)  # planted: input-bound
        return out


class Compose:
    def __init__(self, *transforms) -> None:
        self.transforms = transforms

    def __call__(self, image: np.ndarray) -> torch.Tensor:
        for transform in self.transforms:
            image = transform(image)
        return torch.from_numpy(((image / np.float32(255) - MEAN) / STD).transpose(2, 0, 1).copy())


class Images(Dataset):
    def __init__(self, n: int, size: int, transform: Compose) -> None:
        self.images = np.random.default_rng(0).integers(0, 256, (n, size, size, 3), dtype=np.uint8)
        self.labels = np.random.default_rng(1).integers(0, 10, n)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return self.transform(self.images[i]), int(self.labels[i])


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


def build(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2, padding=1), Block(width), Block(width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10),
    )  # fmt: skip


def train_one_epoch(model, criterion, optimizer, scheduler, loader) -> float:
    model.train()
    total = 0.0
    for images, labels in loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(loader)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--images", type=int, default=640)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=80)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    transform = Compose(RandomCrop(args.size, 4), RandomFlip(), ColorJitter())
    images = Images(args.images, args.size, transform)
    loader = DataLoader(images, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True)
    model = build(args.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))
    start = time.perf_counter()
    for epoch in range(args.epochs):
        loss = train_one_epoch(model, nn.CrossEntropyLoss(), optimizer, scheduler, loader)
        print(f"epoch {epoch}: loss {loss:.4f}")
    n = args.epochs * len(loader)
    print(f"{n} steps, {1e3 * (time.perf_counter() - start) / n:.3f} ms/step")


if __name__ == "__main__":
    main()
