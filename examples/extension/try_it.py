"""Python ranges around C ranges.

pip install ./examples/extension
marey run -o smooth.marey -- python examples/extension/try_it.py
marey report smooth.marey --tree
"""

import array
import math
import random

import smooth

import marey


def main():
    noisy = array.array("d", (math.sin(i / 500) + random.uniform(-1, 1) for i in range(20_000)))
    result = array.array("d", bytes(8 * len(noisy)))
    for width in (10, 50, 250):
        with marey.range("try", payload=width):
            smooth.cpu(noisy, result, width)
        error = max(abs(result[i] - math.sin(i / 500)) for i in range(width, len(result) - width))
        print(f"width {width:3}: off by at most {error:.2f}")


if __name__ == "__main__":
    main()
