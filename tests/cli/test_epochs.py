"""marey report --epochs: a program of ours with two epochs, run on two ranks, one of them slow."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
from page_decoder import Page, needs_viewer

N = 8
PHASES = ("data", "forward", "backward", "optimizer", "evaluate", "checkpoint", "logging", "other")


@pytest.fixture
def ranks(marey, compiled, tmp_path) -> Path:
    """Rank 1 takes 5 ms longer in each iteration."""
    program = compiled("iterate.c", "-pthread")
    for rank in range(2):
        env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MAREY_RUN_ID": "one"}
        ran = marey(
            "run",
            "--only",
            "ranges",
            "-q",
            "-o",
            "e.marey",
            "--append",
            "--",
            program,
            N,
            0,
            5000 * (rank == 1),
            env=env,
        )
        assert ran.returncode == 0
    return tmp_path / "e.marey"


def test_the_answer_comes_first_and_names_the_slow_rank(marey, ranks):
    result = marey("report", "--epochs", ranks)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("an epoch takes ") and "(one of 2)" in lines[0]
    assert lines[1].startswith("rank 1 is the slowest in 1 of 1, by ")
    assert "train" in result.stdout  # a phase of the program's own


def test_json_and_csv_have_every_number(marey, ranks):
    tables = json.loads(marey("report", "--epochs", "--json", ranks).stdout)
    assert set(tables) == {"epochs", "ranks", "averages", "phases", "notes"}
    assert [row["slowest_rank"] for row in tables["epochs"]] == [1, 1]
    assert [row["counted"] for row in tables["epochs"]] == [False, True]
    for row in tables["ranks"]:
        assert sum(row[f"{name}_ns"] for name in PHASES) == row["duration_ns"]
        assert row["iterations"] == N // 2
    rows = list(csv.DictReader(io.StringIO(marey("report", "--epochs", "--csv", ranks).stdout)))
    assert [(row["epoch"], row["rank"]) for row in rows] == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]
    averages = marey("report", "--epochs", "--csv", "--table", "averages", ranks).stdout
    assert len(averages.splitlines()) == 4


def test_the_first_epoch_counts_when_asked(marey, ranks):
    tables = json.loads(marey("report", "--epochs", "--first", "--json", ranks).stdout)
    assert [row["counted"] for row in tables["epochs"]] == [True, True]
    assert tables["averages"][0]["epochs"] == 2


@needs_viewer
def test_the_page_has_the_tables(marey, ranks, tmp_path):
    page = tmp_path / "e.html"
    assert marey("report", ranks, "--html", page).returncode == 0
    tables = {table["name"]: table for table in Page(page).index["tables"]}
    assert tables["epochs by rank"]["help"] == "each epoch on each rank"
    assert all(table["help"] for table in tables.values())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--first"], "--first goes with --epochs"),
        (["--epochs", "--energy"], "--epochs and --energy exclude one another"),
        (["--epochs", "--csv", "--table", "x"], "no table 'x' of epochs"),
    ],
)
def test_wrong_options_are_reported(marey, ranks, options, sentence):
    result = marey("report", ranks, *options)
    assert result.returncode == 2
    assert sentence in result.stderr


def test_a_recording_without_epochs_says_how_to_have_some(marey, emit, tmp_path):
    assert marey("run", "--only", "ranges", "-q", "-o", "n.marey", "--", emit, 2).returncode == 0
    result = marey("report", "--epochs", tmp_path / "n.marey")
    assert result.returncode == 2
    assert "no epochs" in result.stderr and "marey.TrainingMonitor" in result.stderr
