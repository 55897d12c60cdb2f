"""A loop with a leak: each step keeps a copy of its batch in a history that is never read.

Run it with `marey run --memory -o leak.marey -- python leak.py`; then `marey report --memory leak.marey` names
remember(), and its growth per step.
"""

import sys
import time

import marey

BATCH_BYTES = 400_000
history: list[bytearray] = []


def load() -> bytearray:
    """Make a batch; temporaries are freed."""
    raw = bytearray(4 * BATCH_BYTES)
    return raw[:BATCH_BYTES]


def remember(batch: bytearray) -> None:
    """Keep a copy of the batch: this is the leak."""
    history.append(bytearray(batch))


def main(steps: int) -> None:
    """Run the loop; marey counts the steps."""
    for _ in marey.iterations(range(steps)):
        batch = load()
        remember(batch)
        time.sleep(0.005)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 80)
