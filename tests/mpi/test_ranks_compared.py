"""marey breakdown of real MPI jobs: every collective is matched over all ranks, and its time is wait and transfer."""

from __future__ import annotations

import json

import pytest
from test_programs import STEPS


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_collective_of_a_job_is_matched(mpi, compiled, run, tool, ranks):
    run([tool, "run", "--mpi", "-o", "run.marey", "--", *mpi.run(ranks, compiled("program.c", "-lpthread"))])
    answer = json.loads(run([tool, "breakdown", "--json", "run.marey"]).stdout)
    reduced = [row for row in answer["collectives"] if row["what"] == "all_reduce"]
    assert sum(row["count"] for row in reduced) == 2 * STEPS
    assert sum(row["bytes"] for row in reduced) == 2 * STEPS * 8, "a double each"
    for row in answer["collectives"]:
        assert (row["ranks"], row["partial"]) == (ranks, 0), row
        assert row["skew_ns"] is not None, "one machine has one clock"
    rows = answer["collective_ranks"]
    assert {row["rank"] for row in rows} == set(range(ranks))
    for row in rows:
        assert row["wait_ns"] + row["transfer_ns"] == row["ns"]
    for group in {row["group"] for row in rows}:
        of_group = [row for row in rows if row["group"] == group]
        assert len({row["transfer_ns"] for row in of_group}) == 1, "the same for all ranks"
        calls = sum(row["count"] for row in answer["collectives"] if row["group"] == group)
        assert sum(row["last"] for row in of_group) == calls, "somebody is the last of each"
    assert not [text for text in answer["warnings"] if "some ranks only" in text or "overlap" in text]
