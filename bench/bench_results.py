"""Shared by the benchmarks in Python: medians with intervals, and rows of the final table."""

from __future__ import annotations

import argparse
import random
import statistics
from typing import Optional

Interval = tuple[float, float, float]


def median_with_interval(values: list[float]) -> Interval:
    """Return the median between the ends of the middle 95 % of a thousand resampled medians."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(1000))
    return medians[25], statistics.median(values), medians[974]


def options_of(description: Optional[str], folder: Optional[str] = ".") -> argparse.ArgumentParser:
    """Return a parser of the arguments that bench/run passes to every benchmark."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="enough to see that it works, not to quote")
    parser.add_argument("--dir", default=folder, help="where files go")
    parser.add_argument("--results", help="append the lines of the closing table to this file")
    return parser


class Results:
    """Rows of the final table, printed and appended to a file: what, measured, bar, met?"""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def put(self, what: str, measured: str, bar: str = "", met: bool | None = None) -> None:
        word = {None: "", True: "yes", False: "no"}[met]
        print(f"  {what:44} {measured}" + (f"   bar: {bar}   met: {word}" if bar else ""))
        if self.path:
            with open(self.path, "a", encoding="utf-8") as out:
                out.write(f"{what}\t{measured}\t{bar}\t{word}\n")
