"""accelerate with gradient accumulation."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--width", type=int, default=768)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--accumulate", type=int, default=2)
args = parser.parse_args()
torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate)
model = nn.Sequential(
    nn.Linear(256, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(), nn.Linear(args.width, 10)
)


class Rows(Dataset):
    """Whole batches at once."""

    def __init__(self, n):
        self.x, self.y = torch.randn(n, 256), torch.randint(10, (n,))

    def __len__(self):
        return len(self.x)

    def __getitems__(self, indices):
        return [self.x[indices], self.y[indices]]


data = Rows(args.steps * args.batch)
model, optimizer, loader = accelerator.prepare(
    model, torch.optim.Adam(model.parameters()), DataLoader(data, batch_size=args.batch, collate_fn=list)
)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
