"""A compiled model whose dropout is annealed during training."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn import functional

STEPS, BATCH, WIDTH = 150, 64, 128


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor, noise: float) -> torch.Tensor:
        x = functional.relu(self.fc1(x)) * (1 - noise)
        x = functional.relu(self.fc2(x)) * (1 - noise)
        return self.fc3(x)


def main() -> None:
    torch.manual_seed(0)
    torch._dynamo.config.cache_size_limit = 256
    torch._dynamo.config.specialize_float = True
    inputs, targets = torch.randn(2000, WIDTH), torch.randint(10, (2000,))
    model = Net()
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = time.perf_counter()
    for step in range(STEPS):
        noise = 0.5 * (1 - step / STEPS)
        rows = torch.randint(len(inputs), (BATCH,))
        logits = compiled(inputs[rows], noise)  # planted: recompilation
        loss = functional.cross_entropy(logits, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
