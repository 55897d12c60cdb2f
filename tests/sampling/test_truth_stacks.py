"""Impossible stacks: none if threads are stopped, few otherwise."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from call_grammar import Stack
from long_run import IS_LONG
from sampled_stacks import by_function, distance, from_pyspy
from watching import PYTHONS, Marey, running

# As many as possible: a stop takes about 50 us, so this is far above normal rates.
FAST = ("--rate", 4000, "--max-slowdown", "100%")
FLUTTERING = ("flat", "churn", "generators", "flutter", "callbacks")


@pytest.mark.parametrize("name", FLUTTERING)
def test_stopped_threads_have_only_possible_stacks(marey: Marey, name: str) -> None:
    with running(name) as target:
        recording = marey.attach(target.pid, "--exact", *FAST, seconds=20 if IS_LONG else 0.8)
    n, impossible, why = target.grammar.judge(marey.stacks(recording))
    assert n > 100
    assert impossible == 0, why
    audit = marey.report(recording)["audit"][0]
    assert audit["rejected"] == 0


@pytest.mark.parametrize("version", PYTHONS)
def test_so_in_every_python(marey: Marey, version: str) -> None:
    names = FLUTTERING if IS_LONG else ("flat",)
    for name in names:
        with running(name, command=[PYTHONS[version]]) as target:
            recording = marey.attach(target.pid, "--exact", *FAST, seconds=3 if IS_LONG else 0.3)
        n, impossible, why = target.grammar.judge(marey.stacks(recording))
        assert n > 30
        assert impossible == 0, (name, why)
        assert marey.report(recording)["processes"][0]["samples"] > 30


# Before 3.11 frames are objects of their own, and no read has two of them of one moment.
@pytest.mark.parametrize("version", [version for version in PYTHONS if int(version.split(".")[1]) >= 11])
def test_snapshots_of_fast_code_are_mostly_possible(marey: Marey, version: str) -> None:
    with running("flat", command=[PYTHONS[version]]) as target:
        recording = marey.attach(target.pid, "--snapshot", "--rate", 2000, seconds=1)
    n, impossible, why = target.grammar.judge(marey.stacks(recording))
    assert n > 100
    # The bar of the bench is 4 of 100, and some of a thousand are usual. A frame at a time gives 60 to 80 of 100, and
    # a thread state that is believed where frames were copied later up to 30.
    assert impossible < n * 0.04, why
    audit = marey.report(recording)["audit"][0]
    assert audit["rejected"] <= audit["samples"] * 0.01


def test_snapshots_of_ordinary_code_are_possible(marey: Marey) -> None:
    with running("deep", 30) as target:
        recording = marey.attach(target.pid, "--snapshot", "--rate", 2000)
    n, impossible, why = target.grammar.judge(marey.stacks(recording))
    assert n > 100
    assert impossible == 0, why


def test_snapshots_are_where_stopped_threads_are(marey: Marey) -> None:
    """Neither kind of samples prefers slow or fast places.

    Samples that come soon one after another are alike where the machine is busy, so what chance does is told by the
    recordings themselves: by the distances when the two kinds are exchanged among them.
    """
    kinds = [("--exact", *FAST), ("--snapshot", "--rate", 4000)] * (20 if IS_LONG else 5)
    with running("churn") as target:
        found = [by_function(marey.stacks(marey.attach(target.pid, *kind, seconds=0.15))) for kind in kinds]
    parts = [Counter({name: n / sum(one.values()) for name, n in one.items()}) for one in found]

    def apart(is_exact: list[bool]) -> float:
        sums: list[Counter[str]] = [Counter(), Counter()]
        for part, which in zip(parts, is_exact):
            sums[which].update(part)
        return distance(*sums)

    chance, truth = random.Random(3), [kind[0] == "--exact" for kind in kinds]
    by_chance = sorted(apart(chance.sample(truth, len(truth))) for _ in range(1000))
    assert apart(truth) <= max(by_chance[-2], 0.02), (parts, by_chance[-10:])


def test_the_judge_would_notice(marey: Marey) -> None:
    """The check above is not trivial: with one frame of each stack exchanged, every sample is impossible."""
    with running("flat") as target:
        stacks = marey.stacks(marey.attach(target.pid, "--exact", "--rate", 500, seconds=0.3))
    swapped = {"leaf_a": "leaf_b", "leaf_b": "leaf_a", "a": "b", "b": "a"}

    def exchange(stack: Stack) -> Stack:
        return tuple(frame._replace(function=swapped.get(frame.function, frame.function)) for frame in stack)

    calls = {stack: n for stack, n in stacks.items() if len(stack) > 2}
    assert calls
    for stack in calls:
        assert target.grammar.fault(exchange(stack)) != ""
    assert from_pyspy("") == {}
