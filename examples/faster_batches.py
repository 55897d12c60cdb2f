"""Is a change faster? A small training loop with two ways to make its batches, for `marey compare`.

    marey run --repeat 5 -o loader.marey -- python examples/faster_batches.py loader
    marey run --repeat 5 -o slices.marey -- python examples/faster_batches.py slices
    marey compare loader.marey slices.marey

The data is in memory as one tensor. "loader" uses a DataLoader, which picks 64 samples one by one and
stacks them; "slices" shuffles the indices and takes 64 rows at once. The rest of the loop is the same.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import marey

SAMPLES, FEATURES, BATCH = 12800, 256, 64


def from_loader(inputs, labels):
    yield from DataLoader(TensorDataset(inputs, labels), batch_size=BATCH, shuffle=True)


def from_slices(inputs, labels):
    for rows in torch.randperm(len(inputs)).split(BATCH):
        yield inputs[rows], labels[rows]


def main(make_batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = torch.randn(SAMPLES, FEATURES)
    labels = (inputs[:, :8].sum(1) > 0).long()
    model = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    marey.set_warmup(20)
    batches = iter(make_batches(inputs, labels))
    for _ in range(SAMPLES // BATCH):
        with marey.step(samples=BATCH):
            with marey.range("data"):
                samples, targets = next(batches)
            with marey.range("forward"):
                loss = nn.functional.cross_entropy(model(samples), targets)
            with marey.range("backward"):
                optimizer.zero_grad()
                loss.backward()
            with marey.range("optimizer"):
                optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main({"loader": from_loader, "slices": from_slices}[sys.argv[1] if len(sys.argv) > 1 else "loader"])
