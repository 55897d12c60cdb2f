"""Principal components of random data in numpy."""

import sys

import numpy as np

n, size = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
for _ in range(n):
    x = rng.standard_normal((size, size // 2))
    _, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    print(f"{(s[:5] ** 2 / (s**2).sum()).sum():.4f}")
