"""Iterations, epochs and phases of a plain loop, and their report.

    python examples/count_steps.py [RUN.marey]

There is one count for the whole program: the stopwatch, the dumper, GPU windows and reports all use it.
"""

import sys
import tempfile
import time
from pathlib import Path

import marey


def batches() -> list[int]:
    return list(range(6))


def step(batch: int) -> None:
    with marey.range("step"):
        time.sleep(0.004 if batch == 5 else 0.001)


def main(path: str) -> None:
    marey.start(path)
    marey.set_warmup(2)  # averages exclude the first two
    for number in range(2):
        with marey.epoch(number):
            with marey.phase("train"):
                for batch in marey.iterations(batches(), samples=32, data="data"):
                    step(batch)
            with marey.phase("evaluate"), marey.iteration(samples=8):
                step(0)
    step(1)
    marey.finish_iteration(samples=32)  # for loops that only mark the end of an iteration
    print(f"counted: {marey.progress()}")
    marey.stop()

    run = marey.load(path, data="data")
    print(run.iterations)
    print(run.throughput)
    print(run.epochs(by="epoch", first=True))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "steps.marey"))
