"""Which arguments make a function slow? The `dot` of the guide, called with short arrays, long ones, and lists.

    python examples/calls_dot.py
    marey run --calls=__main__ -o dot.marey -- python examples/calls_dot.py
    marey report dot.marey --calls --by shape

A function profile shows that `dot` takes the time. With signatures it shows for which arguments, and the time per
element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import marey


def dot(a: Any, b: Any) -> Any:
    sum = 0
    for i in range(len(a)):
        sum += a[i] * b[i]
    return sum


def main() -> None:
    short, long = (np.arange(n, dtype=np.float32) for n in (16, 4096))
    profile = marey.Profile()
    profile.enable()
    for _ in range(200):
        dot(short, short)
    for _ in range(4):
        dot(long, long)
        dot(long.tolist(), long.tolist())
    profile.disable()
    profile.print_stats("tottime")


if __name__ == "__main__":
    main()
