"""Train a small convolutional network on the CPU, with ranges that show where the time goes.

    marey run -o run.marey -- python examples/train_torch.py
    marey report run.marey

The task is synthetic: noisy images of stripes, and the network classifies their direction, one of sixteen. Run without
`marey run` the script does the same; a range then costs a few nanoseconds. Arguments are the number of epochs (3) and
of images (6400).
"""

import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import marey

CLASSES = 16
SIZE = 32  # pixels on a side
EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PICTURES = int(sys.argv[2]) if len(sys.argv) > 2 else 6400


@marey.range("make pictures")
def make_pictures(count, seed):
    """Stripes of random width and phase, in one of CLASSES directions, under three times as much noise."""
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=rng)
    angle = (labels * math.pi / CLASSES).view(-1, 1, 1)
    frequency = 0.6 + 0.6 * torch.rand(count, 1, 1, generator=rng)
    phase = 2 * math.pi * torch.rand(count, 1, 1, generator=rng)
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    stripes = torch.sin(frequency * (x * angle.cos() + y * angle.sin()) + phase)
    noise = torch.randn(count, SIZE, SIZE, generator=rng)
    return TensorDataset((stripes + 3 * noise).unsqueeze(1), labels)


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, CLASSES),
    )  # fmt: skip


def train_step(model, optimizer, pictures, labels):
    with marey.range("forward"):
        loss = nn.functional.cross_entropy(model(pictures), labels)
    with marey.range("backward"):
        optimizer.zero_grad()
        loss.backward()
    with marey.range("optimizer"):
        optimizer.step()
    marey.counter("loss", loss.item())
    return loss


@marey.range("evaluate")
@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(pictures).argmax(1) == labels).sum().item() for pictures, labels in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train = DataLoader(make_pictures(PICTURES, seed=1), batch_size=64, shuffle=True)
    test = DataLoader(make_pictures(PICTURES // 5, seed=2), batch_size=256)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    for epoch in range(EPOCHS):
        with marey.range("epoch"):
            batches = iter(train)
            for _ in range(len(train)):
                with marey.range("step"):
                    with marey.range("data"):
                        pictures, labels = next(batches)
                    loss = train_step(model, optimizer, pictures, labels)
            correct = accuracy(model, test)
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {loss.item():.3f}, {correct:.1%} correct on unseen images")


if __name__ == "__main__":
    main()
