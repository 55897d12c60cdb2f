"""Shared by the tests of trainers' phases: queries of recordings, and checks after each training."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import marey
from marey._phases import phases

STEP = ("data", "forward", "backward", "optimizer")

Event = tuple[str, int, int]  # name, begin, end


def counts(path: Path) -> dict[str, int]:
    return {row["name"]: row["count"] for row in marey.load(path).ranges}


def events(path: Path, kind: str) -> list[Event]:
    """The "range" or "iteration" events in the order of their begins."""
    with tempfile.TemporaryDirectory() as folder:
        marey.load(path).export("csv", f"{folder}/events.csv")
        file = Path(folder, "events.csv").read_text().splitlines()
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    found = [(row["name"], int(row["start_ns"]), int(row["start_ns"]) + int(row["duration_ns"])) for row in rows]
    return sorted(found, key=lambda event: event[1])


def steps(path: Path) -> list[list[str]]:
    """The phases of each iteration, in order. None overlaps the next, and none lies across an iteration's edge."""
    ranges = [event for event in events(path, "range") if event[0] in STEP]
    assert all(a[2] <= b[1] for a, b in zip(ranges, ranges[1:]))
    found = []
    for _, begin, end in events(path, "iteration"):
        inside = [event for event in ranges if event[2] > begin and event[1] < end]
        assert all(begin <= event[1] and event[2] <= end for event in inside)
        found.append([event[0] for event in inside])
    return found


def shadowed(owner: object) -> set[str]:
    """Methods in the object's __dict__: wrappers that were not removed."""
    return {name for name in vars(owner) if callable(getattr(type(owner), name, None))}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Such small work is slower with more."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert phases.depth == 0
    assert phases.leader is None
    assert phases.now is None
