"""Commands that Python has: itwinai's older files in them, and Pythons that cannot run them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


def sections_of(text):
    """Titles to rows of cells; None where nothing was found."""
    found = {}
    for part in text.split("\n########## ")[1:]:
        title, _, body = part.partition(" Report ##########\n")
        lines = [[cell.strip() for cell in line.split("|")] for line in body.splitlines() if "|" in line]
        found[title] = lines or None
    return found


@pytest.fixture
def older(tmp_path: Path) -> Path:
    for run, seconds in (("first", 8.0), ("second", 4.0)):
        folder = tmp_path / "scalability-metrics" / run / "epoch-time"
        folder.mkdir(parents=True)
        for nodes in (1, 2):
            times = [3 * seconds, *[seconds / nodes] * 3]
            lines = "".join(f"{i},{time},torch-ddp,{nodes}\n" for i, time in enumerate(times))
            (folder / f"epochtime_torch-ddp_{nodes}N.csv").write_text("epoch_id,time,name,nodes\n" + lines)
    return tmp_path / "scalability-metrics"


def test_files_of_older_versions(marey, older):
    done = marey("generate-scalability-report", "--log-dir", "scalability-metrics", "--run-ids", "second")
    assert done.returncode == 0, done.stderr
    rows = sections_of(done.stdout)["Epoch Time"][1:]
    assert [row[2] for row in rows] == ["4.00 s", "2.00 s"]
    both = marey("generate-scalability-report", "--log-dir", "scalability-metrics")
    assert [row[-1] for row in sections_of(both.stdout)["Epoch Time"][1:]] == ["2", "2"]
    assert marey("generate-scalability-report", "--run-ids", "first").returncode == 2
    assert marey("generate-scalability-report", "--log-dir", "missing").returncode == 2


def test_scale_reads_the_same_files(marey, older):
    done = marey("scale", older, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    points = {row["workers"]: row for row in answer["points"]}
    assert [(workers, points[workers]["time_s"], points[workers]["runs"]) for workers in points] == [
        (1, 6.0, 2),
        (2, 3.0, 2),
    ]
    assert any("so nodes count as workers" in note for note in answer["notes"])
    assert {row["run"] for row in answer["runs"]} == {f"{older}: {run}, torch-ddp" for run in ("first", "second")}
    named = json.loads(marey("scale", f"ddp={older / 'first'}", "--json").stdout)
    assert {row["strategy"] for row in named["points"]} == {"ddp"}


def test_a_folder_without_a_whole_row_is_one_sentence(marey, tmp_path):
    (tmp_path / "epochs.csv").write_text("epoch_id,time,name,nodes\n")
    done = marey("scale", "epochs.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "marey: epochs.csv has no row with a number of workers and a measure\n"


@pytest.mark.parametrize(
    "command",
    [
        ["generate-scalability-report"],
        ["generate-py-spy-report", "--file", "train.raw"],
        ["scale", "--mlflow", "store"],
        ["scale", "scalability-metrics"],
        ["breakdown", "--legacy", "scalability-metrics"],
        ["report", "--energy", "scalability-metrics"],
    ],
    ids=" ".join,
)
def test_without_python_one_sentence(marey, older, command):
    (older.parent / "train.raw").write_text("main (a.py:1) 1\n")
    done = marey(*command, env={"MAREY_PYTHON": "/no/such/python"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marey: this needs Python, and /no/such/python cannot be started")
    assert len(done.stderr.splitlines()) == 1


def test_a_python_without_marey_is_named(marey, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "sitecustomize.py").write_text("")
    done = marey("generate-scalability-report", env={"MAREY_PYTHON": str(python), "MAREY_BOOT": str(tmp_path / "boot")})
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "cannot import marey (" in done.stderr and "MAREY_PYTHON" in done.stderr
