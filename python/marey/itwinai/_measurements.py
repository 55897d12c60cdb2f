"""itwinai's files as the CSV of measurements that `marey scale` reads: docs/formats/scaling-csv.md.

A file of GPU power has the number of GPUs, a file of epochs the number of nodes; they belong to one run if folder,
strategy, repeat and nodes agree. Averages are per strategy and number of GPUs over all runs, so each such run gets
them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import Optional

from marey.itwinai._averages import FRACTIONS, fractions_of_files
from marey.itwinai._energy import Energy, Files, Run
from marey.itwinai._files import Cell, OtherFile, Path

COLUMNS = ("experiment", "strategy", "workers", "nodes", "run", "rank", "measure", "step", "unix_ms", "value")

# rank, measure, step, value
Measured = tuple[Cell, Cell, Cell, Cell]


def write_measurements(path: Path, output: Path) -> int:
    """Write the measurements of itwinai's files at `path`, a file or a folder. Returns their number."""
    rows = list(_rows(os.fspath(path)))
    with open(output, "w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return len(rows)


def _rows(path: str) -> Iterator[tuple[Cell, ...]]:
    notes: list[str] = []
    fractions = _fractions(path, notes)
    known = set()  # strategies and numbers of workers of runs
    for run, workers, nodes, measured in _runs(path, notes):
        known.add((run.strategy, workers))
        yield from _run_rows(run, workers, nodes, [*measured, *fractions.get((run.strategy, workers), [])])
    for (strategy, workers), shares in fractions.items():
        if (strategy, workers) not in known:
            yield from _run_rows(Run("averages", strategy, workers, 0), workers, 0, shares)
    for note in notes:
        yield ("", "", "", "", "", "", "note", "", "", note)


def _run_rows(run: Run, workers: int, nodes: int, measured: list[Measured]) -> Iterator[tuple[Cell, ...]]:
    name = ", ".join(filter(None, (run.name, run.strategy)))
    name += f" (repeat {run.repeat + 1})" if run.repeat != 0 else ""
    for rank, measure, step, value in measured:
        yield ("", run.strategy, workers, nodes or "", name, rank, measure, step, "", value)


def _fractions(path: str, notes: list[str]) -> dict[tuple[str, int], list[Measured]]:
    """Fractions over all ranks, by strategy and number of GPUs."""
    try:
        table, n_dropped = fractions_of_files([path], lambda sentence: notes.append(f"Read in part: {sentence}."))
    except OtherFile:
        return {}
    _note_dropped(path, n_dropped, notes)
    return {
        (str(row["strategy"]), int(row["num_gpus"] or 0)): [("", name, "", row[name]) for name in FRACTIONS]
        for row in table
        if row["rank"] is None and row[FRACTIONS[0]] is not None
    }


def _runs(path: str, notes: list[str]) -> Iterator[tuple[Run, int, int, list[Measured]]]:
    """Runs with their workers and nodes."""
    try:
        files = Files([path], lambda sentence: notes.append(f"Read in part: {sentence}."))
    except OtherFile:
        return
    _note_dropped(path, files.n_dropped, notes)
    with_power = [files.epochs_of(run) for run in files.power]
    for run, epochs in zip(files.power, with_power):
        measured = [*_power(run, Energy(run, epochs).scale * run.interval_s), *_epochs(epochs)]
        yield run, run.number, run.nodes, measured
    for run in files.epochs:
        if any(run is each for each in with_power):
            continue
        # The number of GPUs of this many nodes, preferably from a run of the strategy.
        found = sorted((each.strategy != run.strategy, each.number) for each in files.power if each.nodes == run.number)
        if not found:
            which = f"{run.number} nodes of {run.strategy}"
            notes.append(f"{path}: no file says how many GPUs {which} have, so nodes count as workers.")
        yield run, found[0][1] if found else run.number, run.number, list(_epochs(run))


def _power(run: Run, interval_s: float) -> Iterator[Measured]:
    yield ("", "probing_interval", "", interval_s)
    for rank, gpu in enumerate(run.gpus.values()):
        for index, watts in zip(gpu.index, gpu.watts):
            yield (rank, "gpu_power_W", index * interval_s, watts)
        for i, use in enumerate(gpu.use):
            yield (rank, "gpu_utilization_percent", i, use)


def _epochs(run: Optional[Run]) -> Iterator[Measured]:
    for i, seconds in enumerate(run.epochs_s if run is not None else []):
        if seconds > 0:
            yield ("", "epoch_time_s", i, seconds)


def _note_dropped(path: str, n: int, notes: list[str]) -> None:
    if n != 0:
        notes.append(f"{path}: {n} rows of itwinai's files lack a value and are ignored.")
