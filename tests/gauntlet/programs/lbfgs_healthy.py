"""Style transfer in miniature: an image is optimized by L-BFGS, whose closure runs several times per step."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())
features.requires_grad_(False)
target = features(torch.rand(1, 3, 64, 64))
image = torch.rand(1, 3, 64, 64, requires_grad=True)
optimizer = torch.optim.LBFGS([image], max_iter=8)


def closure():
    optimizer.zero_grad()
    loss = (features(image) - target).square().mean()
    loss.backward()
    return loss


for _ in range(int(sys.argv[1])):
    loss = optimizer.step(closure)
print(f"loss {float(loss):.6f}")
