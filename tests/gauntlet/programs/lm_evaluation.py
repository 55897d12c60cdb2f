"""A language model by an LSTM, after the word language model of the PyTorch examples; it is evaluated now and then."""

from __future__ import annotations

import math
import time

import torch
from torch import nn

TOKENS, WIDTH, BATCH, BPTT, STEPS = 500, 128, 16, 24, 360
EVAL_EVERY = 12


class RNNModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.rnn = nn.LSTM(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor, hidden: tuple | None) -> tuple[torch.Tensor, tuple]:
        out, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(out).flatten(0, 1), hidden


def batchify(tokens: torch.Tensor, n: int) -> torch.Tensor:
    return tokens[: len(tokens) // n * n].view(n, -1).t().contiguous()


def evaluate(model: RNNModel, data: torch.Tensor, criterion: nn.Module) -> float:
    model.eval()
    total, hidden = 0.0, None
    with torch.no_grad():
        for i in range(0, len(data) - 1, BPTT):
            n = min(BPTT, len(data) - 1 - i)
            output, hidden = model(data[i : i + n], hidden)  # planted: slow-steps
            total += n * criterion(output, data[i + 1 : i + 1 + n].flatten()).item()
    model.train()
    return total / (len(data) - 1)


def main() -> None:
    torch.manual_seed(1111)
    train = batchify(torch.randint(TOKENS, ((STEPS * BPTT + 1) * BATCH,)), BATCH)
    valid = batchify(torch.randint(TOKENS, (16 * 480,)), 16)
    model, criterion = RNNModel(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    start, hidden = time.perf_counter(), None
    for step in range(STEPS):
        data, targets = train[step * BPTT : (step + 1) * BPTT], train[step * BPTT + 1 : (step + 1) * BPTT + 1]
        if hidden is not None:
            hidden = tuple(h.detach() for h in hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        if (step + 1) % EVAL_EVERY == 0:
            print(f"step {step + 1}: perplexity {math.exp(evaluate(model, valid, criterion)):.2f}")
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
