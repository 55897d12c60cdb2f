"""Iterations, epochs and phases of a plain loop, and what a report makes of them.

    python examples/count_steps.py [RUN.kymo]

One count for the whole program: the stopwatch, the dumper, GPU windows and reports all go by it.
"""

import sys
import tempfile
import time
from pathlib import Path

import kymo


def batches() -> list[int]:
    return list(range(6))


def step(batch: int) -> None:
    with kymo.range("step"):
        time.sleep(0.004 if batch == 5 else 0.001)


def main(path: str) -> None:
    kymo.start(path)
    kymo.set_warmup(2)  # the first two are in no average
    for number in range(2):
        with kymo.epoch(number):
            with kymo.phase("train"):
                for batch in kymo.iterations(batches(), samples=32, data="data"):
                    step(batch)
            with kymo.phase("evaluate"), kymo.iteration(samples=8):
                step(0)
    step(1)
    kymo.finish_iteration(samples=32)  # a loop that only knows where an iteration ends
    print(f"counted: {kymo.progress()}")
    kymo.stop()

    run = kymo.load(path, data="data")
    print(run.iterations)
    print(run.throughput)
    print(run.epochs(by="epoch", first=True))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "steps.kymo"))
