"""Recordings with energy as itwinai's files of GPU power and epoch times (0.3).

itwinai reads power each second, and its energy is the sum of power times the interval. Here power is the mean of each
second, scaled to the GPU's measured joules, so that the sum is the energy of the run.
"""

from __future__ import annotations

import csv
import math
import os
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from marey._replace import replacing
from marey.itwinai._events import database
from marey.itwinai._files import Cell, Failure, Path

_POWER_COLUMNS = [
    "sample_idx",
    "utilization",
    "power",
    "local_rank",
    "node_idx",
    "num_global_gpus",
    "strategy",
    "probing_interval",
]
_EPOCH_COLUMNS = ["epoch_id", "time", "name", "nodes"]
_MAX_READINGS = 100 * 24 * 3600
_S = 1_000_000_000

_READINGS = (
    "SELECT r.at_ns, r.value FROM reading r JOIN process p ON p.id = r.process"
    " WHERE p.run_id = ? AND p.host = ? AND r.domain = ? || '|' || ? ORDER BY r.at_ns"
)


def write_power(recordings: Sequence[Path], folder: Path, strategy: str = "unknown") -> None:
    """Write gpu-energy-data/STRATEGY_GPUS.csv and epoch-time/epochtime_STRATEGY_NODESN.csv into `folder`.

    With several runs each has a subfolder. Raises Failure if no GPU in use was measured.
    """
    from marey import load

    recording = load(recordings)
    table = recording.energy()  # the MareyError explains how to record it
    runs = sorted(set(zip(table["run"], table["run_id"])))
    gpus: list[dict[str, Any]] = [row for row in recording.energy("device") if row["kind"] == "gpu" and row["used"]]
    if not gpus:
        raise Failure(f"{recordings[0]} has no energy of GPUs in use, which itwinai's files contain")
    with database(recordings) as events:
        for run, run_id in runs:
            into = os.path.join(folder, _plain(run_id)) if len(runs) > 1 else os.fspath(folder)
            used = [gpu for gpu in gpus if gpu["run"] == run]
            name = f"{_plain(strategy)}_{len(used)}.csv"
            _write(into, "gpu-energy-data", name, _POWER_COLUMNS, _power_rows(events, run_id, used, strategy))
            hosts = "SELECT count(DISTINCT host) FROM process WHERE run_id = ?"
            (nodes,) = events.execute(hosts, [run_id]).fetchone()
            name = f"epochtime_{_plain(strategy)}_{nodes}N.csv"
            _write(into, "epoch-time", name, _EPOCH_COLUMNS, _epoch_rows(events, run_id, strategy, nodes))


def _plain(text: str) -> str:
    """Convert a string to a part of a file name."""
    return re.sub(r"[^0-9A-Za-z_-]", "_", text)


def _write(folder: str, kind: str, name: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    listed = list(rows)
    if not listed:
        return
    into = os.path.join(folder, kind)
    try:
        os.makedirs(into, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make {into}: {error.strerror}") from error
    with replacing(os.path.join(into, name), newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(listed)


def _power_rows(
    events: sqlite3.Connection, run_id: str, gpus: Sequence[dict[str, Any]], strategy: str
) -> Iterator[tuple[Cell, ...]]:
    n_of_host: dict[str, int] = {}
    for gpu in gpus:
        host = gpu["host"]
        local_rank = n_of_host.setdefault(host, 0)
        n_of_host[host] += 1
        window = "SELECT min(first_ns), max(last_ns) FROM process WHERE run_id = ? AND host = ?"
        begin, end = events.execute(window, [run_id, host]).fetchone()
        n = math.ceil((end - begin) / _S)
        if n > _MAX_READINGS:
            raise Failure(f"{run_id} lasts more than a hundred days, too long for a reading each second")
        power, use = (
            events.execute(_READINGS, [run_id, host, gpu["device"], quantity]).fetchall()
            for quantity in ("power", "utilization")
        )
        edges = [min(begin + i * _S, end) for i in range(n + 1)]
        joules = _integral(power, edges)
        scale = (gpu["joules"] or 0.0) / (joules[-1] - joules[0]) if joules[-1] > joules[0] else 0.0
        times = [at for at, _ in use]
        about = (local_rank, list(n_of_host).index(host), len(gpus), strategy, 1)
        for i in range(n):
            within = [value for _, value in use[bisect_right(times, edges[i]) : bisect_right(times, edges[i + 1])]]
            busy = f"{sum(within) / len(within):.9g}" if within else ""
            yield (i, busy, f"{(joules[i + 1] - joules[i]) * scale:.9g}", *about)


def _integral(readings: Sequence[tuple[int, float]], edges: Sequence[int]) -> list[float]:
    """Return the joules up to each edge, interpolated between readings and constant outside."""
    if not readings:
        return [(edge - edges[0]) / _S for edge in edges]  # constant power
    (first, at_first), (last, at_last) = readings[0], readings[-1]
    points = [(min(edges[0], first), at_first), *readings, (max(edges[-1], last), at_last)]
    joules, total, at = [], 0.0, 0
    for edge in edges:
        while at + 1 < len(points) and points[at + 1][0] <= edge:
            (a, x), (b, y) = points[at : at + 2]
            total += (b - a) / _S * (x + y) / 2
            at += 1
        (a, x), (b, y) = points[at], points[min(at + 1, len(points) - 1)]
        here = x + (y - x) * (edge - a) / (b - a) if b > a else x
        joules.append(total + (edge - a) / _S * (x + here) / 2)
    return joules


def _epoch_rows(events: sqlite3.Connection, run_id: str, strategy: str, nodes: int) -> Iterator[tuple[Cell, ...]]:
    """The time of an epoch on the first rank that has it."""
    query = (
        "SELECT e.number, e.duration_ns FROM epoch e JOIN process p ON p.id = e.process WHERE p.run_id = ?"
        " AND e.duration_ns IS NOT NULL ORDER BY e.number, coalesce(p.rank, 1 << 31), p.id"
    )
    last = None
    for epoch, ns in events.execute(query, [run_id]):
        if epoch != last:
            yield (epoch, f"{ns / _S:.9g}", strategy, nodes)
        last = epoch
