"""The parts of a program in its own words: ranges, marks, counters; a recording made and read in one program.

    python examples/own_words.py [RUN.kymo]

Everything here may stay in a program: without a recording it does next to nothing.
"""

import sys
import tempfile
from pathlib import Path

import kymo


@kymo.range("load", category="data")  # around each call; generators and coroutines do as well
def load(i: int) -> list[int]:
    return [i * k % 251 for k in range(20_000)]


def work(numbers: list[int]) -> int:
    kymo.push("sort")  # ended somewhere else: here, in another function, or in C
    numbers.sort()
    kymo.pop("sort")
    with kymo.range("sum", payload=len(numbers)):
        return sum(numbers)


def main(path: str) -> None:
    print(f"recording: {kymo.enabled()}")
    kymo.set_rank(0, 1)  # where no launcher says it
    kymo.start(path, check=True, pool="4MiB")  # check: a pop that does not fit raises
    for i in range(50):
        total = work(load(i))
        kymo.counter("total", total)
        if i == 25:
            kymo.mark("half way", payload=i)
    kymo.push("report")
    try:
        kymo.pop("sort")
    except kymo.RangeError as error:
        print(f"told, and nothing popped: {str(error).splitlines()[0]}")
    kymo.pop("report")
    print(f"events so far: {kymo.counts()['events']}, into {Path(kymo.recording_path()).name}")
    kymo.stop()
    kymo.reset()  # as if nothing had been started

    run = kymo.load(path)
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
            main(str(Path(folder) / "own_words.kymo"))
