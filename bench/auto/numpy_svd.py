"""A numpy script without training."""

import sys

import numpy as np
from alternate import end, step

rng = np.random.default_rng(1)
for _ in range(int(sys.argv[1])):
    step()
    a = rng.random((200, 200))
    u, s, v = np.linalg.svd(a)
    rows = sorted((float(x), i) for i, x in enumerate(u[0]))
    assert abs(float(np.abs(u @ np.diag(s) @ v - a).max())) < 1e-6 and rows
end()
