"""Counters of the process tree in the default recording: CPU cores, threads, faults, I/O."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean, quantiles

from built import Finished


def counters(marey: Callable[..., Finished], recording: str, folder: Path) -> dict[str, list[float]]:
    assert marey("export", recording, "--to", "chrome", "-o", "trace.json").returncode == 0
    trace = json.loads((folder / "trace.json").read_text())
    values = defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("ph") == "C":
            values[event["name"]].append(event["args"]["value"])
    return values


def test_threads_are_counted_by_the_kernel(marey, compiled, tmp_path):
    """Four threads, of which at most one works at a time; or one that works."""
    solver = compiled("solver.c", "-O2", "-lpthread", "-lm")
    assert marey("run", "-o", "locks.marey", solver, "locks", 2).returncode == 7
    locks = counters(marey, "locks.marey", tmp_path)
    assert max(locks["threads"]) == 5
    assert max(locks["processes"]) == 1
    assert marey("run", "-o", "hot.marey", "taskset", "-c", "0", solver, "hot", 2).returncode == 7
    hot = counters(marey, "hot.marey", tmp_path)
    assert hot["usable CPU cores"][-1] == 1
    wanted = [a + b for a, b in zip(hot["threads that run"], hot["threads that wait for a CPU core"], strict=True)]
    assert 0.8 < mean(wanted[1:-1]) < 1.1
    assert 3 <= len(wanted) <= 21  # ten times a second, or rarer on a busy machine


def test_children_count(marey, compiled, tmp_path):
    solver = compiled("solver.c", "-O2", "-lpthread", "-lm")
    command = f"{solver} hot 1.5 & {solver} hot 1.5; wait"
    assert marey("run", "-o", "two.marey", "sh", "-c", command).returncode == 0
    two = counters(marey, "two.marey", tmp_path)
    assert max(two["processes"]) == 3
    wanted = [a + b for a, b in zip(two["threads that run"], two["threads that wait for a CPU core"], strict=True)]
    assert 1.6 < quantiles(wanted, n=10)[7] < 2.3
