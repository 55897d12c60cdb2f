"""Shares of time counted by a target, against those of its samples."""

from __future__ import annotations

from collections import Counter

import pytest
from long_run import IS_LONG
from sampled_stacks import distance, floor
from watching import Marey, running

SECONDS = 20 if IS_LONG else 1.5
NAMES = ("seventy", "twenty", "ten")


@pytest.mark.parametrize("strategy", ["--exact", "--snapshot"])
def test_duty_cycles_are_found(marey: Marey, strategy: str) -> None:
    with running("duty") as target:
        recording = marey.attach(target.pid, strategy, "--rate", 500, "--max-slowdown", "100%", seconds=SECONDS)
        took = target.said("took")
    truth = Counter({name: sum(float(line[i]) for line in took) for i, name in enumerate(NAMES)})
    rows = {row["function"]: row for row in marey.report(recording)["functions"]}
    # By the time that samples stand for: on a busy machine one that had to wait for a processor stands for more.
    found = Counter({name: rows[name]["total_ns"] for name in NAMES})
    n = sum(rows[name]["samples"] for name in NAMES)
    assert n > 100
    _, most = floor(truth, n)
    assert distance(found, truth) < max(1.5 * most, 0.1), (found, truth)


def test_threads_that_fight_for_the_interpreter_hold_it_in_turns(marey: Marey) -> None:
    """One holds it at a time, so the holders' samples are as many as the rounds at most."""
    with running("gil", 3) as target:
        recording = marey.attach(target.pid, "--exact", "--rate", 500, "--max-slowdown", "100%", seconds=SECONDS)
    found = marey.report(recording, "--mode", "gil")
    rounds = found["audit"][0]["rounds"]
    fighters = [row for row in found["threads"] if row["thread"].startswith("fighter")]
    held = sum(row["samples"] for row in fighters)
    assert len(fighters) == 3
    assert rounds * 0.5 < held <= rounds
    assert all(row["samples"] > held * 0.1 for row in fighters)


def test_work_without_the_interpreter_counts_as_work(marey: Marey) -> None:
    """Hashing threads have released the GIL: they are on a CPU core and hold no lock."""
    with running("releases") as target:
        recording = marey.attach(target.pid, "--rate", 200, seconds=SECONDS)
    rows = [row for row in marey.report(recording, "--mode", "cpu")["threads"] if row["thread"].startswith("hasher")]
    assert len(rows) == 2
    assert all(row["gil"] < 0.5 for row in rows), rows
