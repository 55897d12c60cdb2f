"""Ranges, marks and counters with your own names; a recording written and read in one program.

    python examples/own_words.py [RUN.marey]

All this can stay in a program: without a recording it does next to nothing.
"""

import sys
import tempfile
from pathlib import Path

import marey


@marey.range("load", category="data")  # around each call; also for generators and coroutines
def load(i: int) -> list[int]:
    return [i * k % 251 for k in range(20_000)]


def work(numbers: list[int]) -> int:
    marey.push("sort")  # ended elsewhere: here, in another function, or in C
    numbers.sort()
    marey.pop("sort")
    with marey.range("sum", payload=len(numbers)):
        return sum(numbers)


def main(path: str) -> None:
    print(f"recording: {marey.enabled()}")
    marey.set_rank(0, 1)  # if no launcher sets it
    marey.start(path, check=True, pool="4MiB")  # check: a mismatched pop raises
    for i in range(50):
        total = work(load(i))
        marey.counter("total", total)
        if i == 25:
            marey.mark("half way", payload=i)
    marey.push("report")
    try:
        marey.pop("sort")
    except marey.RangeError as error:
        print(f"reported, and nothing popped: {str(error).splitlines()[0]}")
    marey.pop("report")
    print(f"events so far: {marey.counts()['events']}, into {Path(marey.recording_path()).name}")
    marey.stop()
    marey.reset()  # back to the initial state

    run = marey.load(path)
    print(run.report())
    slowest = max(run.ranges, key=lambda row: row["total_ns"])
    print(f"{slowest['name']} took most: {slowest['total_ns'] / 1e6:.1f} ms in {slowest['count']} calls")
    run.export("chrome", str(Path(path).with_suffix(".json")))
    run.to_html(str(Path(path).with_suffix(".html")))


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(str(Path(folder) / "own_words.marey"))
