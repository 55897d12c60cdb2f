"""A training with slow input, in a program without marey.

Run it with `marey run --sample -o slow.marey -- python slow_input.py`; then `marey report slow.marey --samples` names
augment(), and the line in it. Or start it with a number of seconds and sample it: `marey top PID`.
"""

from __future__ import annotations

import sys
import threading
import time
import zlib

SIZE = 4000
VALUES = [i * 31 % 251 for i in range(2 * SIZE)]


def load(number: int) -> list[int]:
    start = number % SIZE
    return VALUES[start : start + SIZE]


def augment(sample: list[int]) -> list[int]:
    out = []
    for i, value in enumerate(sample):
        out.append((value * 7 + sample[-i] * 3) % 251)  # element by element: this is where the time goes
    return out


def forward(sample: list[int]) -> int:
    return zlib.crc32(bytes(sample) * 20)


def heartbeat(stop: threading.Event) -> None:
    while not stop.wait(0.5):
        pass


def train(seconds: float) -> int:
    steps = loss = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        loss ^= forward(augment(load(steps)))
        steps += 1
    print(f"{steps} steps, loss {loss:08x}")
    return steps


if __name__ == "__main__":
    done = threading.Event()
    threading.Thread(target=heartbeat, args=(done,), name="heartbeat").start()
    train(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
    done.set()
