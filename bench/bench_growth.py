#!/usr/bin/env python3
"""How costs grow with events, names, threads and processes: one table for each.

    bench_growth.py [--quick] [--dir DIR] [--results FILE] [--tables FOLDER] [AXIS...]

AXIS is events, names, python (names in Python), threads or processes; all of them by default.

The program bench_growth (for names in Python: growth_names.py) records each point several times in a separate process,
and the table has the medians. Then `marey report` and `marey export --to perfetto` read the recording, with discarded
output. MAREY_BUILD is the build folder. docs/internals/growth.md explains the tables.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench_results import options_of

Point = dict[str, float]


class Bench:
    """The programs, the directory of recordings, and the sizes."""

    def __init__(self, folder: Path, is_quick: bool) -> None:
        self.build = Path(os.environ["MAREY_BUILD"])
        self.folder = folder
        self.recording = folder / "growth.marey"
        self.n_repeats = 1 if is_quick else 3
        self.is_quick = is_quick

    def ask(self, *command: Any) -> Point:
        answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(answer)

    def growth(self, *arguments: Any) -> Point:
        return self.ask(self.build / "bench" / "bench_growth", *arguments)

    def record(self, **options: float) -> Point:
        """Record a point several times, a long one once, and return the medians; the last recording is kept."""
        words = [word for name, value in options.items() for word in (f"--{name}", int(value))]
        n_repeats = self.n_repeats_of(options["events"])
        return medians([self.growth("record", "--path", self.recording, *words) for _ in range(n_repeats)])

    def n_repeats_of(self, n_events: float) -> int:
        return 1 if n_events > 2e8 else self.n_repeats

    def read(self, n_events: float) -> dict[str, Point]:
        marey = self.build / "cli" / "marey"
        jobs = {
            "open": ("open", self.recording),
            "report": ("time", marey, "report", self.recording),
            "perfetto": ("time", marey, "export", self.recording, "--to", "perfetto", "-o", "-"),
        }
        n_repeats = self.n_repeats_of(n_events)
        return {name: medians([self.growth(*job) for _ in range(n_repeats)]) for name, job in jobs.items()}

    def python_names(self, form: str, n: int) -> Point:
        points = []
        for _ in range(self.n_repeats):
            shutil.rmtree(self.folder / "names.marey", ignore_errors=True)
            script = Path(__file__).with_name("growth_names.py")
            points.append(self.ask(sys.executable, script, form, n, "--dir", self.folder))
        return medians(points)


def medians(points: list[Point]) -> Point:
    return {key: statistics.median(point[key] for point in points) for key in points[0]}


# ---- tables ----


class Table:
    """A table printed row by row."""

    def __init__(self, title: str, *columns: str) -> None:
        self.columns = columns
        self.rows: list[tuple[str, ...]] = []
        self.widths = [max(len(name), 7) for name in columns]
        self.lines = [self.line(columns), "|" + "|".join("-" * (width + 1) + ":" for width in self.widths) + "|"]
        print(f"\n{title}\n\n" + "\n".join(self.lines), flush=True)

    def line(self, cells: tuple[str, ...]) -> str:
        return "|" + "|".join(f" {cell:>{width}} " for cell, width in zip(cells, self.widths)) + "|"

    def add(self, *cells: str) -> None:
        self.rows.append(cells)
        self.lines.append(self.line(cells))
        print(self.lines[-1], flush=True)

    def spread(self, column: str) -> str:
        cells = [row[self.columns.index(column)].strip() for row in self.rows]
        return f"{cells[0]} to {cells[-1]}"


def count(n: float) -> str:
    exponent = len(str(int(n))) - 1
    return f"1e{exponent}" if n >= 1e5 and n == 10**exponent else f"{int(n):,}"


def share_lost(point: Point) -> str:
    share = point["lost"] / (point["kept"] + point["lost"])
    if share == 0:
        return "0"
    return f"{100 * share:.2f} %" if share >= 0.0001 else "<0.01 %"


def bytes_each(point: Point) -> str:
    return f"{point['log_bytes'] / max(point['kept'], 1):.2f}"


READ_COLUMNS = ("open ms", "report s", "ns/event", "MB", "perfetto s", "ns/event", "MB")


def read_cells(bench: Bench, n_events: float) -> list[str]:
    jobs = bench.read(n_events)
    cells = [f"{1e3 * jobs['open']['seconds']:.1f}"]
    for name in ("report", "perfetto"):
        job = jobs[name]
        cells += [f"{job['seconds']:.3f}", f"{1e9 * job['cpu_seconds'] / n_events:.1f}", f"{job['rss_mb']:.1f}"]
    return cells


# ---- the axes ----


def by_events(bench: Bench) -> Table:
    table = Table(
        "events, one thread at full speed, 16 names",
        "events",
        "ns/range",
        "lost",
        "B/event",
        "program MB",
        *READ_COLUMNS,
    )
    for n in [1e5, 1e6, 1e7] + ([] if bench.is_quick else [1e8, 1e9]):
        point = bench.record(events=n)
        first = [count(n), f"{point['range_ns']:.1f}", share_lost(point), bytes_each(point), f"{point['rss_mb']:.1f}"]
        table.add(*first, *read_cells(bench, point["kept"]))
    return table


NAMES = (10, 100, 1000, 10_000, 100_000)


def by_names(bench: Bench) -> Table:
    n_events = 1e6 if bench.is_quick else 1e7
    table = Table(
        f"names in C, {count(n_events)} events of one thread; the files of ranges by id",
        *("names", "by id ns/range", "by string ns/range", "new name ns", "B/event", "program MB", *READ_COLUMNS),
    )
    for n in NAMES:
        by_string = bench.record(events=n_events, names=n, push=1)
        point = bench.record(events=n_events, names=n)
        costs = [f"{point['range_ns']:.1f}", f"{by_string['range_ns']:.1f}", f"{point['new_name_ns']:.0f}"]
        sizes = [bytes_each(point), f"{point['rss_mb']:.1f}"]
        table.add(count(n), *costs, *sizes, *read_cells(bench, point["kept"]))
    return table


def by_python_names(bench: Bench) -> Table:
    table = Table(
        "names in Python, ns for a range; new: the first time",
        *("names", "kept", "literal", "run-time push", "new kept", "new literal", "new run-time push", "B/name pushed"),
    )
    for n in (10, 256, 1000) if bench.is_quick else (10, 256, 1000, 10_000, 60_000, 100_000):
        points = [bench.python_names(form, n) for form in ("kept", "literal", "run-time")]
        costs = [f"{point['range_ns']:.1f}" for point in points] + [f"{point['first_ns']:.0f}" for point in points]
        table.add(count(n), *costs, f"{points[2]['name_bytes']:.0f}" if n >= 10_000 else "")
    return table


WRITERS = (1, 2, 4, 8, 16, 32, 64)
PACE = 10e6  # events per second, over all threads and processes


def by_writers(bench: Bench, title: str, option: str, *more: str) -> Table:
    """Measure threads or processes, at full speed and at a pace; reports read the recording of the latter."""
    table = Table(
        f"{title}; {count(PACE)} events a second over all, then as fast as they go",
        *(option, "paced ns/range", "lost", "full ns/range", "lost", "first us", "B/event", "program MB"),
        *READ_COLUMNS,
        *more,
    )
    n_full, n_paced = (6.4e6, 5e6) if bench.is_quick else (6.4e7, 2e7)
    for n in (1, 4, 64) if bench.is_quick else WRITERS:
        finalizing = []
        if more:
            bench.record(events=n_paced / 4, abandon=1, **{option: n})
            finalizing = [f"{1e3 * bench.growth('open', bench.recording)['seconds']:.1f}"]
        full = bench.record(events=n_full, **{option: n})
        paced = bench.record(events=n_paced, pace=PACE, **{option: n})
        costs = [cell for point in (paced, full) for cell in (f"{point['range_ns']:.1f}", share_lost(point))]
        sizes = [f"{paced['first_us']:.0f}", bytes_each(paced), f"{paced['rss_mb']:.1f}"]
        table.add(count(n), *costs, *sizes, *read_cells(bench, paced["kept"]), *finalizing)
    return table


def by_threads(bench: Bench) -> Table:
    return by_writers(bench, "threads of one process", "threads")


def by_processes(bench: Bench) -> Table:
    return by_writers(bench, "forked processes, one recording", "processes", "open and finalize ms")


# Function, description for the final table, and the column with the cost of a range.
AXES = {
    "events": (by_events, "events", "ns/range"),
    "names": (by_names, "names, by id", "by id ns/range"),
    "python": (by_python_names, "names in Python, kept", "kept"),
    "threads": (by_threads, "threads", "paced ns/range"),
    "processes": (by_processes, "processes", "paced ns/range"),
}


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--tables", type=Path, help="write each table there as well, to AXIS.md")
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=", ".join(AXES))
    arguments = parser.parse_args()
    unknown = [axis for axis in arguments.axes if axis not in AXES]
    if unknown:
        parser.error(f"nothing grows with {unknown[0]}; there are {', '.join(AXES)}")

    bench = Bench(Path(arguments.dir), arguments.quick)
    lines = [f"T, one clock read\t{bench.growth('clock')['t_ns']:.2f} ns\t\t\n"]
    for axis in arguments.axes or AXES:
        measure, what, column = AXES[axis]
        table = measure(bench)
        lines.append(f"A range, {table.spread(table.columns[0])} {what}\t{table.spread(column)} ns\t\t\n")
        if arguments.tables:
            (arguments.tables / f"{axis}.md").write_text("\n".join(table.lines) + "\n", encoding="utf-8")
    shutil.rmtree(bench.recording, ignore_errors=True)
    if arguments.results:
        with open(arguments.results, "a", encoding="utf-8") as out:
            out.writelines(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
