"""Find the first difference: a small model is trained twice, once with a rewritten layer norm.

    python examples/first_difference.py reference DIR      as it was
    python examples/first_difference.py new DIR            with one norm replaced
    marey diff NEW_DIR REFERENCE_DIR

The new norm has a bug that the loss does not show: epsilon is added to the standard deviation, not to the variance.
Needs torch.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import marey


class QuickNorm(nn.LayerNorm):
    """A layer norm in two lines, supposedly the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x - x.mean(-1, keepdim=True)
        std = (x * x).mean(-1, keepdim=True).sqrt() + self.eps  # the bug: eps belongs under the root
        return x / std * self.weight + self.bias


class Block(nn.Module):
    """Half a transformer block: norm, two linear layers, residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(self.act(self.up(self.norm(x))))


class Model(nn.Module):
    """Four blocks between two linear layers."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(16, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(4)))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.embed(x)))


def make_model(kind: str) -> Model:
    torch.manual_seed(0)
    model = Model()
    if kind == "new":
        model.blocks[1].norm = QuickNorm(32)
    return model


def train(kind: str, directory: str, steps: int = 3) -> None:
    """Train for some steps, and dump inputs and outputs of each module, parameters and gradients."""
    model = make_model(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    make_data = torch.Generator().manual_seed(1)
    dumper = marey.TensorDumper()
    dumper.enable(directory)
    with dumper.dump_module(model, params=True, grads=True):
        for _ in range(steps):
            x = 0.2 * torch.randn(64, 16, generator=make_data)
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dumper.add_tensor_data("loss", loss)
            dumper.dump()
            print(f"{kind}: loss {loss.item():.4f}")
    dumper.disable()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("reference", "new"):
        sys.exit(__doc__)
    train(sys.argv[1], sys.argv[2])
