"""Calls by argument signature: your own types, the signature of one value, an interactive chart.

    python examples/signed_calls.py [FOLDER]          leaves calls.html and calls.marey there

`marey report FOLDER/calls.marey --calls --by signature` shows the same numbers.
"""

import sys
import tempfile
from pathlib import Path

import marey
from marey import profiler


class Batch:
    """Some items that belong together."""

    def __init__(self, n: int) -> None:
        self.items = list(range(n))


def total(batch: Batch) -> int:
    return sum(item * item for item in batch.items)


def main(folder: Path) -> None:
    profiler.register(Batch, lambda batch: f"Batch(n={len(batch.items)})")
    print("a call is recorded as", profiler.signature(total, Batch(3)))
    with marey.Profile() as profile:
        for n in (10, 10, 2000):
            total(Batch(n))
    profile.print_stats("tottime")
    profile.save(str(folder / "calls.marey"))
    page = marey.plot(profile, path=str(folder / "calls.html"), open_browser=False)
    print(f"{len(page.html) // 1024} kB in calls.html")
    profiler.run("sum(range(1000))", sort="tottime")
    profiler.runctx("total(batch)", {"total": total}, {"batch": Batch(5)}, sort="tottime")
    profiler.register(Batch, None)  # no longer


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
