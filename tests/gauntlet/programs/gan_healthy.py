"""A GAN with two optimizers."""

import argparse

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--width", type=int, default=256)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--critics", type=int, default=1)
args = parser.parse_args()
torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(32, args.width), nn.ReLU(), nn.Linear(args.width, 784))
discriminator = nn.Sequential(nn.Linear(784, args.width), nn.ReLU(), nn.Linear(args.width, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
ones, zeros = torch.ones(args.batch, 1), torch.zeros(args.batch, 1)
for step in range(args.steps):
    for _ in range(args.critics):
        fake = generator(torch.randn(args.batch, 32)).detach()
        loss_d = bce(discriminator(torch.rand(args.batch, 784)), ones) + bce(discriminator(fake), zeros)
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()
    loss_g = bce(discriminator(generator(torch.randn(args.batch, 32))), ones)
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    if step % 50 == 0:
        print(f"[{step}] {loss_d.item():.4f} {loss_g.item():.4f}")
