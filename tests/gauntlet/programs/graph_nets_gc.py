"""Train on small graphs that are kept as Python objects; memory is cleaned up after each step, to be safe."""

from __future__ import annotations

import gc
import random
import time

import torch
from torch import nn

GRAPHS, NODES, STEPS, BATCH = 500, 30, 80, 16


class Node:
    def __init__(self, value: float) -> None:
        self.value, self.neighbors = value, []


class Graph:
    def __init__(self, chance: random.Random) -> None:
        self.nodes = [Node(chance.random()) for _ in range(NODES)]
        for node in self.nodes:
            node.neighbors = [(other, chance.random()) for other in chance.sample(self.nodes, 3)]
        self.adjacency = torch.rand(NODES, NODES).round()
        self.label = chance.randrange(2)


class GraphNet(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(NODES, width), nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, adjacency: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(adjacency @ self.first(adjacency))
        return self.head(torch.relu(adjacency @ self.second(hidden)).mean(dim=1))


def main() -> None:
    torch.manual_seed(0)
    chance = random.Random(0)
    graphs = [Graph(chance) for _ in range(GRAPHS)]
    model = GraphNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(STEPS):
        batch = chance.sample(graphs, BATCH)
        logits = model(torch.stack([graph.adjacency for graph in batch]))
        loss = nn.functional.cross_entropy(logits, torch.tensor([graph.label for graph in batch]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
        gc.collect()  # planted: gc-pauses
    print(f"{STEPS} steps, {1e3 * (time.perf_counter() - start) / STEPS:.3f} ms/step")


if __name__ == "__main__":
    main()
