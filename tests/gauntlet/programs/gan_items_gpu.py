"""Train a GAN on a GPU, after the example of PyTorch, with averages of the losses and scores."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

STEPS, BATCH, LATENT, WIDTH = 400, 512, 64, 4096
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class AverageMeter:
    def __init__(self) -> None:
        self.total, self.n = 0.0, 0

    def update(self, value: torch.Tensor) -> None:
        self.total += value.item()  # planted: sync-bound
        self.n += 1

    def average(self) -> float:
        return float(self.total / max(1, self.n))


def mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, WIDTH),
        nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, WIDTH),
        nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, outputs),
    ).to(DEVICE)


def main() -> None:
    torch.manual_seed(0)
    generator, discriminator = mlp(LATENT, 784), mlp(784, 1)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=DEVICE == "cuda")
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=DEVICE == "cuda")
    ones, zeros = torch.ones(BATCH, 1, device=DEVICE), torch.zeros(BATCH, 1, device=DEVICE)
    meters = {name: AverageMeter() for name in ("loss_d", "loss_g", "score_real", "score_fake")}
    start = time.perf_counter()
    for step in range(STEPS):
        real = torch.rand(BATCH, 784, device=DEVICE)
        scores = discriminator(real)
        meters["score_real"].update(scores.mean())
        fake = generator(torch.randn(BATCH, LATENT, device=DEVICE))
        scores_fake = discriminator(fake.detach())
        meters["score_fake"].update(scores_fake.mean())
        loss_d = bce(scores, ones) + bce(scores_fake, zeros)
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
        meters["loss_d"].update(loss_d)
        loss_g = bce(discriminator(fake), ones)
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        meters["loss_g"].update(loss_g)
        if step % 200 == 0:
            print(f"[{step}] " + " ".join(f"{name} {meter.average():.4f}" for name, meter in meters.items()))
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
