#!/usr/bin/env python3
"""How reports grow with ranks: 10 to 10,000 logs of 1,000 iterations of 30 ranges, written by rank_logs.

    bench_scale.py [--quick] [--dir DIR] [--results FILE] [--tables FOLDER]

For each number of ranks `marey report` runs with four sets of options. CPU time is for one thread, wall time for one
thread per core; medians of three runs, but one run of the largest recording. An event is the begin or end of a range,
or the end of an iteration: 61 per iteration. --quick stops at 1,000 ranks. The largest takes 1.3 GB of disk.
docs/internals/scale.md has the table, and an estimate for 100,000 ranks.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench_results import Results, options_of

EVENTS_OF_RANK = 61 * 1000
FORMS: tuple[tuple[str, ...], ...] = ((), ("--ranks",), ("--iterations",), ("--json",))
FEW_FILES = 64
Point = dict[str, float]


class Bench:
    """The programs and the directory of logs."""

    def __init__(self, folder: Path) -> None:
        self.build = Path(os.environ["MAREY_BUILD"])
        self.marey = self.build / "cli" / "marey"
        self.recording = folder / "ranks.marey"

    def make(self, n_ranks: int) -> int:
        """Write the logs and return their size in bytes."""
        shutil.rmtree(self.recording, ignore_errors=True)
        subprocess.run([self.build / "bench" / "rank_logs", self.recording, str(n_ranks)], check=True)
        return sum(entry.stat().st_size for entry in os.scandir(self.recording))

    def run(self, *arguments: Any) -> Point:
        command = [self.build / "bench" / "bench_growth", "time", *arguments]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def report(self, form: tuple[str, ...], n_runs: int) -> Point:
        """Return medians: CPU time and memory with one thread, wall time with all."""
        alone = [self.run(self.marey, "report", self.recording, *form, "--jobs", 1) for _ in range(n_runs)]
        together = [self.run(self.marey, "report", self.recording, *form) for _ in range(n_runs)]
        cpu, memory = ([point[key] for point in alone] for key in ("cpu_seconds", "rss_mb"))
        wall, memory_of_all = ([point[key] for point in together] for key in ("seconds", "rss_mb"))
        return {
            "cpu_s": statistics.median(cpu),
            "alone_s": statistics.median(point["seconds"] for point in alone),
            "wall_s": statistics.median(wall),
            "mb": max(*memory, *memory_of_all),
        }

    def runs_with_few_files(self) -> bool:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES))

        command = [self.marey, "report", self.recording]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, preexec_fn=limit, check=False)
        return done.returncode == 0


# ---- MPI ----


def run_mpi(bench: Bench, n: int) -> tuple[float, str]:
    """Return the duration of a report by this many processes, and their output."""
    command = ["mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", str(n), str(bench.marey), "report"]
    begin = time.monotonic()
    done = subprocess.run([*command, str(bench.recording), "--jobs", "1"], capture_output=True, text=True, check=True)
    return time.monotonic() - begin, done.stdout


def measure_mpi(bench: Bench, results: Results, n_ranks: int, n_runs: int) -> None:
    """Compare one process with two, each with one thread."""
    if shutil.which("mpirun") is None:
        results.put("Report by two processes of MPI, efficiency", "not measured: no mpirun")
        return
    headlines = [line for line in run_mpi(bench, 2)[1].splitlines() if " processes, " in line and " events" in line]
    if len(headlines) != 1:
        results.put("Report by two processes of MPI, efficiency", "not measured: each process reports alone")
        return
    alone, both = ([run_mpi(bench, n)[0] for _ in range(n_runs)] for n in (1, 2))
    one, two = statistics.median(alone), statistics.median(both)
    share = one / (2 * two)
    measured = f"{100 * share:.0f} % ({one:.2f} s, {two:.2f} s), {n_ranks:,} ranks"
    results.put("Report by two processes of MPI, efficiency", measured, ">= 70 %", share >= 0.7)


# ---- the table ----

COLUMNS = ("ranks", "log MB", "report", "CPU s", "M events/s", "wall s", "MB", "kB/rank")
WIDTHS = (7, 7, 14, 8, 10, 8, 7, 8)


def line(cells: tuple[str, ...]) -> str:
    return "|" + "|".join(f" {cell:>{width}} " for cell, width in zip(cells, WIDTHS)) + "|"


def measure(bench: Bench, results: Results, sizes: list[int], n_runs: int) -> list[str]:
    lines = [line(COLUMNS), "|" + "|".join("-" * (width + 1) + ":" for width in WIDTHS) + "|"]
    print("\n".join(lines), flush=True)
    points: dict[tuple[int, tuple[str, ...]], Point] = {}
    for n_ranks in sizes:
        n_bytes = bench.make(n_ranks)
        for form in FORMS:
            point = bench.report(form, n_runs if n_ranks < sizes[-1] else max(1, n_runs // 2))
            points[n_ranks, form] = point
            grown = (point["mb"] - points[sizes[0], form]["mb"]) * 1e3 / max(n_ranks - sizes[0], 1)
            rate = n_ranks * EVENTS_OF_RANK / point["cpu_s"] / 1e6
            cells = (f"{n_ranks:,}", f"{n_bytes / 1e6:.1f}", " ".join(form) or "(plain)", f"{point['cpu_s']:.3f}")
            cells += (f"{rate:.1f}", f"{point['wall_s']:.2f}", f"{point['mb']:.1f}")
            lines.append(line((*cells, f"{grown:.1f}" if n_ranks > sizes[0] else "")))
            print(lines[-1], flush=True)
    put_bars(bench, results, sizes, points)
    measure_mpi(bench, results, sizes[-1], n_runs)
    return lines


def put_bars(
    bench: Bench, results: Results, sizes: list[int], points: dict[tuple[int, tuple[str, ...]], Point]
) -> None:
    least, most = sizes[1], sizes[-1]  # the smallest is mostly the start of the program
    for form in FORMS:
        few, many = points[least, form], points[most, form]
        name = f"Report {' '.join(form)}".strip()
        rate = most * EVENTS_OF_RANK / many["cpu_s"] / 1e6
        results.put(f"{name}, {most:,} ranks, one core", f"{rate:.1f} M events/s", ">= 50 M events/s", rate >= 50)
        growth = (many["cpu_s"] / most) / (few["cpu_s"] / least)
        results.put(f"{name}, CPU a rank, {least:,} to {most:,} ranks", f"x {growth:.2f}", "<= x 1.25", growth <= 1.25)
    few, many = points[sizes[0], ()], points[most, ()]
    grown = (many["mb"] - few["mb"]) * 1e3 / (most - sizes[0])
    what = f"Report, memory, {sizes[0]} to {most:,} ranks"
    results.put(what, f"{few['mb']:.0f} to {many['mb']:.0f} MB, {grown:.1f} kB a rank", "<= 3 kB a rank", grown <= 3)
    fits = bench.runs_with_few_files()
    results.put(f"Report, {most:,} ranks, {FEW_FILES} open files allowed", "runs" if fits else "fails", "runs", fits)


def main() -> int:
    parser = options_of(__doc__)
    parser.add_argument("--tables", type=Path, help="write the table there as well, to scale.md")
    arguments = parser.parse_args()
    bench = Bench(Path(arguments.dir))
    sizes = [10, 100, 1000] + ([] if arguments.quick else [10_000])
    try:
        lines = measure(bench, Results(arguments.results), sizes, 1 if arguments.quick else 3)
    finally:
        shutil.rmtree(bench.recording, ignore_errors=True)
    if arguments.tables:
        (arguments.tables / "scale.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
