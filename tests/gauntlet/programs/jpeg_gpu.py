"""Train a convolutional network on JPEG files, torchvision style, on a GPU."""

from __future__ import annotations

import io
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

IMAGES, SIZE, BATCH, EPOCHS = 512, 256, 32, 5
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def encode(rng: np.random.Generator) -> bytes:
    coarse = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
    out = io.BytesIO()
    coarse.resize((2 * SIZE, 2 * SIZE), Image.Resampling.BICUBIC).save(out, "jpeg", quality=92)
    return out.getvalue()


class JpegFolder(Dataset):
    """Files in memory, as after the first epoch."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.files = [encode(rng) for _ in range(64)]

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        image = Image.open(io.BytesIO(self.files[i % 64])).convert("RGB")  # planted: input-bound
        pixels = np.asarray(image.resize((224, 224), Image.Resampling.NEAREST))
        return torch.from_numpy(pixels.transpose(2, 0, 1).copy()), i % 10


def build() -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def main() -> None:
    torch.manual_seed(0)
    loader = DataLoader(JpegFolder(), batch_size=BATCH, shuffle=True, num_workers=0, pin_memory=True)
    model = build().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start, n = time.perf_counter(), 0
    for epoch in range(EPOCHS):
        for images, labels in loader:
            images = images.to(DEVICE, non_blocking=True).float() / 255
            loss = nn.functional.cross_entropy(model(images), labels.to(DEVICE, non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            n += 1
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    print(f"{n} steps, {1e3 * (time.perf_counter() - start) / n:.3f} ms/step")


if __name__ == "__main__":
    main()
