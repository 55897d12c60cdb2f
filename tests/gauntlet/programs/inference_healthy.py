"""Inference over a DataLoader."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=80)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--width", type=int, default=256)
args = parser.parse_args()
torch.manual_seed(0)


class Rows(Dataset):
    """Whole batches at once."""

    def __init__(self, n):
        self.x = torch.randn(n, 16, args.width)

    def __len__(self):
        return len(self.x)

    def __getitems__(self, indices):
        return [self.x[indices]]


layer = nn.TransformerEncoderLayer(args.width, 4, 2 * args.width, batch_first=True)
model = nn.TransformerEncoder(layer, 2).eval()
loader = DataLoader(Rows(args.batches * args.batch), batch_size=args.batch, collate_fn=list)
total = 0.0
with torch.inference_mode():
    for (x,) in loader:
        total += model(x).mean().item()
print(f"{total:.6f}")
