"""GPU activity of a Kineto trace, slow and simple: an independent implementation to compare `marey report --gpu` with.

It shares no code with marey: the file is read as JSON, and every number is computed from all events for each activity.
As a program, it prints its results:

    python tests/cli/gpu_reference.py TRACE.json.gz
"""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, Optional

from breakdown_reference import RUNTIMES, category, load, span

KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set"}
LAUNCH_WAIT_NS = 100_000


class Work(NamedTuple):
    begin: int
    end: int
    name: str
    kind: str
    device: int
    correlation: Optional[int]
    arguments: dict[str, Any]


class Launch(NamedTuple):
    begin: int
    end: int
    correlation: int
    ranges: tuple[tuple[str, int, int, int], ...]  # around it, the outermost first: name, begin, end, a number


class Trace:
    def __init__(self, path: Path) -> None:
        slices = [e for e in load(path)[1] if e.get("ph") == "X" and "dur" in e]
        self.work = [
            Work(*span(e), e["name"], KINDS[category(e)], e["args"]["device"], e["args"].get("correlation"), e["args"])
            for e in slices
            if category(e) in KINDS
        ]
        by_thread = collections.defaultdict(list)
        calls = []
        for number, e in enumerate(slices):
            if category(e) in RUNTIMES:
                calls.append(e)
            elif category(e) not in KINDS and not category(e).startswith(("gpu_", "cuda_sync", "trace")):
                by_thread[e["tid"]].append((e["name"], *span(e), number))
        launched = {w.correlation for w in self.work if w.correlation is not None}
        self.launches = {
            c: Launch(*span(e), c, around(by_thread[e["tid"]], *span(e)))
            for e in calls
            if (c := e.get("args", {}).get("correlation")) in launched
        }


def around(ranges: list[tuple[str, int, int, int]], begin: int, end: int) -> tuple[tuple[str, int, int, int], ...]:
    """The ranges around the call, the outermost first."""
    return tuple(sorted((r for r in ranges if r[1] <= begin and end <= r[2]), key=lambda r: (r[1], -r[2], r[3])))


def kernels(trace: Trace) -> dict[tuple[str, str], dict[str, int]]:
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for key in {(w.name, w.kind) for w in trace.work}:
        mine = [w for w in trace.work if (w.name, w.kind) == key]
        times = [w.end - w.begin for w in mine]
        rows[key] = {
            "count": len(times),
            "total_ns": sum(times),
            "min_ns": min(times),
            "max_ns": max(times),
            "bytes": sum(int(w.arguments.get("bytes", 0)) for w in mine),
        }
    return rows


def shapes(trace: Trace) -> dict[tuple[Any, ...], tuple[int, int]]:
    """(count, total) by name, grid, block, registers and shared memory."""
    rows: dict[tuple[Any, ...], list[int]] = collections.defaultdict(list)
    for w in trace.work:
        a = w.arguments
        if w.kind == "kernel" and "grid" in a:
            key = (w.name, a["grid"], a["block"], a.get("registers per thread", 0), a.get("shared memory", 0))
            rows[tuple("x".join(map(str, k)) if isinstance(k, list) else k for k in key)].append(w.end - w.begin)
    return {key: (len(times), sum(times)) for key, times in rows.items()}


def ranges(trace: Trace) -> dict[str, dict[str, int]]:
    rows: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for launch in trace.launches.values():
        mine = [w for w in trace.work if w.correlation == launch.correlation]
        gpu = sum(w.end - w.begin for w in mine)
        names = [r[0] for r in launch.ranges] or ["(no range)"]
        rows[names[-1]]["self_gpu_ns"] += gpu
        delay = max(0, min(w.begin for w in mine) - launch.begin)
        for name in set(names):
            row = rows[name]
            row["launches"] += 1
            row["work"] += len(mine)
            row["gpu_ns"] += gpu
            row["launch_ns"] += launch.end - launch.begin
            row["delay_max_ns"] = max(row["delay_max_ns"], delay)
    for name, row in rows.items():
        row["calls"] = len({r for launch in trace.launches.values() for r in launch.ranges if r[0] == name})
    return {name: dict(row) for name, row in rows.items()}


def united(windows: list[tuple[int, int]]) -> int:
    total, until = 0, 0
    for begin, end in sorted(windows):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def spans(trace: Trace) -> dict[str, int]:
    """How long each name's windows are together."""
    windows: dict[tuple[str, int], list[int]] = {}
    devices = collections.defaultdict(set)
    for launch in trace.launches.values():
        mine = [w for w in trace.work if w.correlation == launch.correlation]
        for name, begin, end, number in launch.ranges:
            window = windows.setdefault((name, number), [begin, end])
            window[1] = max(window[1], *(w.end for w in mine))
            devices[name] |= {w.device for w in mine}
    names = {name for name, _ in windows}
    return {
        name: united([(w[0], w[1]) for key, w in windows.items() if key[0] == name]) * len(devices[name])
        for name in names
    }


def waits(trace: Trace, device: int) -> tuple[dict[str, int], dict[str, collections.Counter[str]], list[int]]:
    """Of the device, by the names around launches, and the lengths of all gaps."""
    work = [w for w in trace.work if w.device == device]
    sums: collections.Counter[str] = collections.Counter()
    names: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    gaps = []
    for moment in sorted({w.begin for w in work}):
        earlier = [w.end for w in work if w.begin < moment]
        if not earlier or max(earlier) >= moment:
            continue
        until = max(earlier)
        gaps.append(moment - until)
        known = [trace.launches[w.correlation] for w in work if w.begin == moment and w.correlation in trace.launches]
        launch = min(known, key=lambda call: call.begin, default=None)
        if launch is None or launch.begin < until:
            sums["other_idle_ns"] += moment - until
            continue
        kind = "launch_wait_ns" if moment - until <= LAUNCH_WAIT_NS else "host_wait_ns"
        sums[kind] += moment - until
        if not launch.ranges:
            names["(no range)"][kind] += moment - until
        for name in {r[0] for r in launch.ranges}:
            first = min(r[1] for r in launch.ranges if r[0] == name)
            names[name][kind] += max(0, moment - max(until, first))
    return dict(sums), names, gaps


if __name__ == "__main__":
    read = Trace(Path(sys.argv[1]))
    print(json.dumps({"ranges": ranges(read), "spans": spans(read)}, indent=1))
