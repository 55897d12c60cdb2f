"""A recurrent network that continues signals."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--length", type=int, default=50)
parser.add_argument("--kind", choices=("RNN", "GRU", "LSTM"), default="LSTM")
parser.add_argument("--optimizer", default="Adam")
args = parser.parse_args()
torch.manual_seed(0)
rnn, head = getattr(nn, args.kind)(8, args.width, batch_first=True), nn.Linear(args.width, 8)
parameters = [*rnn.parameters(), *head.parameters()]
optimizer = getattr(torch.optim, args.optimizer)(parameters, lr=1e-3)
for step in range(args.steps):
    x = torch.randn(16, args.length, 8).cumsum(1)
    loss = nn.functional.mse_loss(head(rnn(x[:, :-1])[0]), x[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
print(f"loss {loss.item():.4f}")
