"""The critical path of public traces: lengths are those of the steps, and everything adds up."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data" / "kineto"
SIDES = ("device_ns", "host_ns", "between_ns", "unexplained_ns")


def path_of(marey: Any, trace: Path, *more: str) -> dict[str, Any]:
    done = marey("report", trace, "--path", "--json", *more)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def steps_of(trace: Path) -> dict[int, int]:
    """The length of each ProfilerStep on the host, in nanoseconds."""
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    return {
        int(event["name"].partition("#")[2]): round(event["dur"] * 1000)
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    }


@pytest.mark.parametrize("trace", sorted(DATA.glob("*.json.gz")), ids=lambda path: path.name)
def test_segments_add_up_to_the_steps(marey: Any, trace: Path) -> None:
    answer, lengths = path_of(marey, trace), steps_of(trace)
    for step in answer["steps"]:
        assert sum(step[side] for side in SIDES) == step["length_ns"]
        if lengths:
            assert step["length_ns"] == lengths[step["step"]]
    assert len(answer["steps"]) >= 1
    total = sum(step["length_ns"] for step in answer["steps"])
    for table in ("classes", "parts"):
        assert sum(row["ns"] for row in answer[table]) == total
        assert sum(row["share"] for row in answer[table]) == pytest.approx(1)


def test_ranks_are_merged_by_name(marey: Any) -> None:
    ranks = [DATA / "sampled_rank-0.json.gz", DATA / "sampled_rank-1.json.gz"]
    single = [path_of(marey, rank) for rank in ranks]
    done = marey("report", *ranks, "--path", "--json")
    assert done.returncode == 0, done.stderr
    both = json.loads(done.stdout)
    assert [step["rank"] for step in both["steps"]] == [0, 0, 1, 1]
    for row in both["classes"]:
        of_class = [other for answer in single for other in answer["classes"] if other["class"] == row["class"]]
        assert row["ns"] == sum(other["ns"] for other in of_class)
        assert row["step_ns"] == pytest.approx(row["ns"] / 4)


def test_formats_have_the_same_rows(marey: Any) -> None:
    trace = DATA / "mi250_minitoy_train_ROCm6_2_kineto.json.gz"
    answer = path_of(marey, trace)
    rows = list(csv.DictReader(io.StringIO(marey("report", trace, "--path", "--csv").stdout)))
    assert [(row["name"], int(row["ns"])) for row in rows] == [(row["name"], row["ns"]) for row in answer["parts"]]
    text = marey("report", trace, "--path").stdout
    assert text.startswith("The critical path of a step (9.29 ms): copy 0.41 %, host ")
    assert "note: steps without GPU tracing or a launch, excluded: 1" in text
    assert "| name |" in marey("report", trace, "--path", "--markdown", "--table", "parts").stdout


def test_a_recording_without_gpu_says_what_to_do(marey: Any, tmp_path: Path) -> None:
    trace = tmp_path / "host.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    done = marey("report", trace, "--path")
    assert done.returncode == 2
    assert "'marey run --gpu' records it" in done.stderr
