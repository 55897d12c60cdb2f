"""The heat equation on a grid, by slices of numpy arrays."""

import sys

import numpy as np

steps, size = int(sys.argv[1]), int(sys.argv[2])
grid = np.zeros((size, size))
grid[size // 4 : size // 2, size // 4 : size // 2] = 100.0
for step in range(steps):
    inner = grid[1:-1, 1:-1]
    inner += 0.1 * (grid[2:, 1:-1] + grid[:-2, 1:-1] + grid[1:-1, 2:] + grid[1:-1, :-2] - 4 * inner)
print(f"mean {grid.mean():.4f}, max {grid.max():.4f}")
