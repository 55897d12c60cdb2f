"""Files of other tools in Python: marey.import_trace(), and marey.load() and marey.compare() of such files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import marey

KINETO = Path(__file__).parent.parent / "data" / "kineto"
RANKS = [KINETO / "sampled_rank-0.json.gz", KINETO / "sampled_rank-1.json.gz"]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def totals(recording: marey.Recording) -> dict[object, object]:
    return dict(zip(recording.ranges["name"], recording.ranges["total_ns"]))


def test_an_import_is_a_recording_that_stays(tmp_path):
    imported = marey.import_trace(RANKS, tmp_path / "run.marey")
    assert list(imported.processes["rank"]) == [0, 1]
    again = marey.load(tmp_path / "run.marey")
    assert totals(again) == totals(imported)
    assert "ProfilerStep#551" in totals(again)


def test_a_trace_is_loaded_as_if_it_were_a_recording(scratch):
    loaded = marey.load(RANKS[0])
    assert totals(loaded)["ProfilerStep#551"] > 0
    assert list(loaded.processes["rank"]) == [0]
    assert list(scratch.iterdir()) == []


def test_a_loaded_trace_is_exported_with_its_arguments(tmp_path):
    arguments = {"Input Dims": [[2, 3]]}
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "args": arguments}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [event]}))
    marey.load(tmp_path / "t.json").export("chrome", tmp_path / "out.json")
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert any(event.get("args", {}).get("Input Dims") == [[2, 3]] for event in events)


def test_traces_are_compared(tmp_path):
    def write(name: str, duration: float) -> Path:
        events = [
            {"ph": "X", "name": "step", "pid": 1, "tid": 1, "ts": 100 * i, "dur": duration + i % 3} for i in range(60)
        ]
        (tmp_path / name).write_text(json.dumps({"traceEvents": events}))
        return tmp_path / name

    answer = marey.compare(write("a.json", 20), write("b.json", 40))
    assert list(answer["verdict"]) == ["slower"]


def test_mistakes_are_reported(tmp_path):
    (tmp_path / "notes.md").write_text("# Notes\n")
    with pytest.raises(marey.MareyError, match="has an unknown format"):
        marey.load(tmp_path / "notes.md")
    with pytest.raises(ValueError, match="no format 'flac' to import"):
        marey.import_trace(RANKS[0], tmp_path / "x.marey", format="flac")
    with pytest.raises(ValueError, match="needs a file"):
        marey.import_trace([], tmp_path / "x.marey")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("Dear all")
    with pytest.raises(ValueError, match="not empty"):
        marey.import_trace(RANKS[0], tmp_path / "full")
    assert not (tmp_path / "x.marey").exists()
