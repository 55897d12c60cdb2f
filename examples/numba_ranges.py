"""Ranges inside functions that Numba compiles, in the recording and in any NVTX tool.

    python examples/numba_ranges.py [RUN.marey]

Without Numba the same functions run as plain Python.
"""

import sys
import tempfile
from pathlib import Path

import marey
from marey import numba_nvtx

try:
    from numba import njit
except ImportError:

    def njit(function):
        return function


SOLVE = numba_nvtx.register_string("solve")


@njit
def solve(n):
    numba_nvtx.range_push(SOLVE)
    total = 0
    for i in range(n):
        total += i * i % 7
    numba_nvtx.range_pop()
    return total


def main(path):
    marey.start(path)
    for _ in range(10):
        solve(100_000)
    marey.stop()
    row = marey.load(path).ranges.row(name="solve")
    print(f"solve: {row['count']} times, mean {row['mean_ns'] / 1e3:.0f} us")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "numba.marey"))
