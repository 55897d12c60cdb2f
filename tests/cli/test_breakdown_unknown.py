"""marey breakdown of a process without GPU work: what nothing has recorded is unknown, not computation."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def plain(marey: Any, compiled: Any) -> str:
    """A loop with ranges and steps; no range of it says that it communicates."""
    assert (
        marey("run", "--only", "ranges", "-q", "-o", "plain.marey", "--", compiled("iterate.c"), 20, 2, 100).returncode
        == 0
    )
    return "plain.marey"


def test_the_first_line_claims_nothing(marey: Any, plain: str) -> None:
    done = marey("breakdown", plain)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "computation unknown, communication unknown, other unknown"
    assert "100 %" not in done.stdout
    assert "note: Computation and communication are unknown for process " in done.stdout


def test_json_and_csv_have_nulls(marey: Any, plain: str) -> None:
    answer = json.loads(marey("breakdown", plain, "--json").stdout)
    for part in ("computation", "communication", "other"):
        assert answer["summary"][part] == {"ns": None, "seconds": None, "share": None}
    for row in answer["devices"]:
        assert row["device"] == -1 and row["span"] > 0
        unknown = ("compute", "comm_total", "exposed_comm", "hidden_comm", "mem_total", "exposed_mem", "idle", "busy")
        assert [row[name] for name in unknown] == [None] * len(unknown)
        assert set(row["atoms"].values()) == {None}
    rows = list(csv.DictReader(io.StringIO(marey("breakdown", plain, "--csv", "--by", "step").stdout)))
    assert rows and {row["compute_ns"] for row in rows} == {""}


def slices(*rows: tuple[str, str, float, float]) -> list[dict[str, Any]]:
    """Ranges of a thread of a trace: category, name, begin, end."""
    return [
        {"ph": "X", "cat": category, "name": name, "pid": 77, "tid": 77, "ts": begin, "dur": end - begin}
        for category, name, begin, end in rows
    ]


def breakdown_of(marey: Any, path: Path, events: list[dict[str, Any]]) -> Any:
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return json.loads(marey("breakdown", path, "--json").stdout)["summary"]


def test_a_trace_is_known_by_its_operators_only(marey: Any, tmp_path: Path) -> None:
    annotated = slices(("user_annotation", "step", 0, 100), ("python_function", "time.sleep", 10, 90))
    assert breakdown_of(marey, tmp_path / "a.json", annotated)["computation"]["ns"] is None
    operators = [*annotated, *slices(("cpu_op", "aten::mm", 20, 50))]
    summary = breakdown_of(marey, tmp_path / "b.json", operators)
    assert summary["computation"]["ns"] is not None and summary["communication"]["ns"] == 0


def test_recorded_communication_makes_it_known(marey: Any, tmp_path: Path) -> None:
    events = slices(("", "step", 0, 100), ("", "MPI_Allreduce", 20, 50))
    summary = breakdown_of(marey, tmp_path / "a.json", events)
    assert summary["communication"]["ns"] == 30_000
    assert summary["computation"]["ns"] == 70_000


def test_the_report_does_not_point_to_a_breakdown_that_knows_nothing(marey: Any, compiled: Any) -> None:
    """A site for communication that no range uses, as importing marey.torch leaves one."""
    made = marey("run", "--only", "ranges", "-q", "-o", "site.marey", "--", compiled("communication_site.c"))
    assert made.returncode == 0
    assert "marey breakdown" not in marey("report", "site.marey").stdout
