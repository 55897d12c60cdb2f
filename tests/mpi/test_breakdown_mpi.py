"""`marey breakdown` of MPI programs, against the programs' own measurements."""

from __future__ import annotations

import json

import pytest
from mpi_jobs import Mpi


@pytest.fixture
def planted(compiled, build):
    """It has an event of its own: libmarey is there once, for the program and for libmarey-mpi."""
    libraries = build / "core"
    return compiled("planted.c", f"-L{libraries}", "-lmarey", f"-Wl,-rpath,{libraries}")


def share(part: int, whole: int) -> float:
    return 100 * part / whole


@pytest.mark.parametrize("ranks", [2, 4])
def test_planted_shares_come_out_within_2_percent(mpi: Mpi, planted, run, tool, tmp_path, ranks):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(ranks, planted, tmp_path / "own")])
    devices = json.loads(run([tool, "breakdown", "--json", "run.marey"]).stdout)["devices"]
    assert [device["rank"] for device in devices] == list(range(ranks))
    for device in devices:
        computing, communicating, hidden = map(int, (tmp_path / f"own.{device['rank']}").read_text().split())
        whole = computing + communicating
        # What was planted is there: nobody computed for less time than it was told to.
        assert computing >= 15 * (40 if device["rank"] % 2 else 20) * 1_000_000
        assert device["compute"] + device["exposed_comm"] + device["exposed_mem"] + device["idle"] == device["span"]
        assert share(device["span"], whole) == pytest.approx(100, abs=2)
        assert share(device["compute"], device["span"]) == pytest.approx(share(computing, whole), abs=2)
        assert share(device["exposed_comm"], device["span"]) == pytest.approx(share(communicating, whole), abs=2)
        assert share(device["hidden_comm"], device["span"]) == pytest.approx(share(hidden, whole), abs=2)


def test_the_rank_that_others_wait_for_is_named(mpi: Mpi, planted, run, tool, tmp_path):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(2, planted, tmp_path / "own")])
    found = json.loads(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    reduce = next(row for row in found["collectives"] if row["what"] == "all_reduce")
    assert reduce["group"] == "MPI_COMM_WORLD 0-1"
    assert reduce["count"] == 30  # 15 of them started and waited for, which is one operation
    assert reduce["slowest_rank"].startswith("rank 1 ")
