"""Inference over a DataLoader."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batches", type=int, default=80)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--width", type=int, default=256)
args = parser.parse_args()
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(args.width, 4, 2 * args.width, batch_first=True)
model = nn.TransformerEncoder(layer, 2).eval()
loader = DataLoader(TensorDataset(torch.randn(args.batches * args.batch, 16, args.width)), batch_size=args.batch)
total = 0.0
with torch.inference_mode():
    for (x,) in loader:
        total += model(x).mean().item()
print(f"{total:.6f}")
