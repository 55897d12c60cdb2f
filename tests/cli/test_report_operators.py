"""marey report --operators: torch's key averages of a trace, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TRACE = Path(__file__).parent.parent / "data/kineto/event_sync_trace.json.gz"


def test_the_report_is_that_of_artifacts(marey, tmp_path):
    assert marey("artifacts", TRACE, "-o", "out", "--only", "averages").returncode == 0
    text = (tmp_path / "out/rank0_key_averages.txt").read_text()
    assert marey("report", "--operators", TRACE, "-n", 25).stdout == text
    assert (
        marey("report", "--operators", TRACE, "--csv").stdout == (tmp_path / "out/rank0_key_averages.csv").read_text()
    )
    report = json.loads(marey("report", "--operators", TRACE, "--json").stdout)
    assert report["operators"] == json.loads((tmp_path / "out/rank0_key_averages.json").read_text())
    assert report["notes"] == []


def test_settings_choose_rows_and_order(marey):
    rows = json.loads(marey("report", "--operators", TRACE, "--by-name", "--sort", "count", "--json").stdout)[
        "operators"
    ]
    assert len({(row["name"], row["kind"]) for row in rows}) == len(rows)
    assert [row["calls"] for row in rows] == sorted((row["calls"] for row in rows), reverse=True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([TRACE, "--sort", "speed"], "operators cannot be sorted by 'speed'"),
        ([TRACE, TRACE], "operators reads one trace, not 2"),
        ([TRACE, "--energy"], "--energy and --operators exclude one another"),
    ],
)
def test_mistakes_are_named(marey, args, message):
    done = marey("report", "--operators", *args)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_recording_has_ranges_and_no_operators(marey, recording):
    done = marey("report", "--operators", recording)
    assert done.returncode == 2
    assert "has no operators in it: torch.profiler records them" in done.stderr
