"""Train a variational autoencoder, after the example of PyTorch, with checkpoints to go on from."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

SAVE_EVERY = 5


class VAE(nn.Module):
    def __init__(self, inputs: int, hidden: int, latent: int) -> None:
        super().__init__()
        self.fc1, self.fc21, self.fc22 = (
            nn.Linear(inputs, hidden), nn.Linear(hidden, latent), nn.Linear(hidden, latent),
        )  # fmt: skip
        self.fc3, self.fc4 = nn.Linear(latent, hidden), nn.Linear(hidden, inputs)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = functional.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(functional.relu(self.fc3(z)))), mu, logvar


def loss_function(recon: torch.Tensor, x: torch.Tensor, mu: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
    bce = functional.binary_cross_entropy(recon, x, reduction="sum")
    return bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())


def save_checkpoint(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path)  # planted: slow-steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=1600)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    images = TensorDataset(torch.rand(args.steps * args.batch_size, 784))
    loader = DataLoader(images, batch_size=args.batch_size)
    model = VAE(784, args.hidden, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        for step, (x,) in enumerate(loader, 1):
            optimizer.zero_grad()
            recon, mu, logvar = model(x)
            loss = loss_function(recon, x, mu, logvar)
            loss.backward()
            optimizer.step()
            if step % SAVE_EVERY == 0:
                save_checkpoint(Path(folder, "last.pt"), model, optimizer, step)
            if step % 50 == 0:
                print(f"step {step}: loss {loss.item() / len(x):.3f}")
        print(f"{args.steps} steps, {1e3 * (time.perf_counter() - start) / args.steps:.3f} ms/step")


if __name__ == "__main__":
    main()
