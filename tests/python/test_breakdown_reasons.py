"""The tables of reasons in marey.breakdown(): idle time, collectives, and itwinai's measure on request."""

from __future__ import annotations

from pathlib import Path

import pytest

import marey

TRACES = Path(__file__).parent.parent / "data" / "kineto"
RANKS = [TRACES / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)]


def test_idle_time_is_explained_by_rank_operator_and_step() -> None:
    b = marey.breakdown(RANKS)
    for rank in (0, 1):
        row = b.devices.row(rank=rank, window="gpu_span")
        reasons = [ns for of, ns in zip(b.idle["rank"], b.idle["ns"]) if of == rank]
        operators = b.table("idle_by_operator")
        assert sum(reasons) == row["idle_ns"]
        assert sum(ns for of, ns in zip(operators["rank"], operators["ns"]) if of == rank) == row["idle_ns"]
    assert set(b.table("idle_by_step")["step"]) == {551, 552}


def test_ranks_in_files_of_their_own_are_compared() -> None:
    b = marey.breakdown(RANKS)
    assert b.collectives["ranks"] == [2]
    assert b.table("collective_ranks")["rank"] == [0, 1]


def test_the_legacy_measure_is_a_table_where_asked_for() -> None:
    with pytest.raises(KeyError):
        marey.breakdown(RANKS[0]).table("legacy")
    try:
        table = marey.breakdown(RANKS[0], legacy=True).table("legacy")
    except marey.MareyError as error:
        if "no SQLite" not in str(error):
            raise
        pytest.skip("this build has no SQLite")
    assert table["rank"] == [None, 0]
    assert 0 < table["computation_fraction"][0] < 1
