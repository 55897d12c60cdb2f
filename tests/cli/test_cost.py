"""The cost of a recording includes every instrument that ran, or lists it as missing."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("marey")

PROGRAM = """
def called(i):
    return [i] * 100

def main():
    kept = []
    for i in range(200_000):
        kept.append(called(i))
        if len(kept) == 1000:
            kept.clear()

main()
"""


@pytest.fixture
def cost(tmp_path, marey):
    def record(*flags):
        (tmp_path / "program.py").write_text(PROGRAM)
        marey("run", "--only", "ranges", "-q", *flags, "-o", "run.marey", "--", sys.executable, "program.py")
        return json.loads(marey("report", "run.marey", "--json").stdout)["cost"], marey("report", "run.marey").stdout

    return record


def test_calls_and_memory_are_part_of_the_cost(cost):
    found, text = cost("--calls", "--memory")
    assert found["share"] * found["program_ns"] >= 200_000 * 5
    parts = {part["instrument"]: part for part in found["parts"]}
    assert set(parts) == {"calls", "memory"}
    assert parts["calls"]["count"] >= 200_000
    assert parts["calls"]["low_ns"] >= 200_000 * 5  # no profiler of Python calls is cheaper than 5 ns
    assert parts["memory"]["count"] >= 200_000 / 4  # estimated from samples
    assert parts["memory"]["low_ns"] > 0
    assert found["high_ns"] >= found["in_program_ns"] + parts["calls"]["low_ns"] + parts["memory"]["low_ns"]
    assert found["share"] * found["program_ns"] == pytest.approx(found["high_ns"], rel=1e-6)
    assert " Python calls x " in text
    assert " allocations x " in text


def test_a_recording_of_calls_alone_has_a_share(cost):
    found, text = cost("--calls")
    assert found["share"] > 0
    assert " of the program" in text


def test_sampling_is_named_where_it_is_not_included(cost):
    found, text = cost("--sample", "--memory")
    assert found["sampling_included"] is False
    assert "not included: sampling (see --samples)" in text
