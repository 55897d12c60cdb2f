#!/usr/bin/env python3
"""One point of the curve of names in Python: the cost of a range with N names, for the first and later uses.

    growth_names.py kept|literal|run-time N --dir DIR [--turns M]

    kept       with on ranges that were made before
    literal    with marey.range("...") on N lines of their own
    run-time   push and pop of names that are put together each time; doing that is subtracted

The output is one JSON object on one line: CPU time of this thread in nanoseconds per range and bytes of memory per
name. Each point needs a separate process, because names exist until its end.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from pathlib import Path
from typing import Callable

import marey

Pass = Callable[[], None]


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def kept(n: int) -> tuple[Pass, Pass]:
    names = [f"kept_{i}" for i in range(n)]
    ranges: list[marey.Range] = []

    def one_pass() -> None:
        if not ranges:
            ranges.extend(map(marey.range, names))
        for region in ranges:
            with region:
                pass

    def without() -> None:
        for _ in names:
            pass

    return one_pass, without


def literal(n: int) -> tuple[Pass, Pass]:
    """Return functions of 20 lines each, run in sequence; the time to call them is subtracted."""
    functions, empty = [], []
    for first in range(0, n, 20):
        lines = [f'    with range("line_{i}"): pass' for i in range(first, min(first + 20, n))]
        scope = {"range": marey.range}
        exec("def part(range=range):\n" + "\n".join(lines) + "\ndef empty(range=range): pass", scope)
        functions.append(scope["part"])
        empty.append(scope["empty"])

    def one_pass() -> None:
        for function in functions:
            function()

    def without() -> None:
        for function in empty:
            function()

    return one_pass, without


def run_time(n: int) -> tuple[Pass, Pass]:
    push, pop = marey.push, marey.pop

    def one_pass() -> None:
        for i in range(n):
            push(f"run_time_{i}")
            pop()

    def without() -> None:
        for i in range(n):
            f"run_time_{i}"

    return one_pass, without


FORMS = {"kept": kept, "literal": literal, "run-time": run_time}


def time_pass(one_pass: Pass, n_times: int) -> int:
    started = time.thread_time_ns()
    for _ in range(n_times):
        one_pass()
    return time.thread_time_ns() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=sorted(FORMS))
    parser.add_argument("n", type=int)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--turns", type=int, default=400_000, help="ranges for each of five rounds")
    arguments = parser.parse_args()

    one_pass, without = FORMS[arguments.form](arguments.n)
    n_times = max(arguments.turns // arguments.n, 1)
    turns = n_times * arguments.n
    marey.start(Path(arguments.dir) / "names.marey")
    gc.collect()
    gc.disable()
    before = resident_bytes()
    first_ns = (time_pass(one_pass, 1) - time_pass(without, 1)) / arguments.n
    name_bytes = (resident_bytes() - before) / arguments.n
    rounds = [time_pass(one_pass, n_times) - time_pass(without, n_times) for _ in range(5)]
    marey.stop()
    print(
        json.dumps({"range_ns": statistics.median(rounds) / turns, "first_ns": first_ns, "name_bytes": name_bytes}),
        flush=True,
    )


if __name__ == "__main__":
    main()
