"""marey.breakdown(): computation, communication and other of a program with marked ranges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import marey

PROGRAM = """
import threading, time
import marey

def send():
    with marey.range("send", category="communication"):
        time.sleep(0.02)

for step in range(4):
    beside = threading.Thread(target=send)
    with marey.range("load", category="data"):
        time.sleep(0.01)
    beside.start()
    with marey.range("forward"):
        time.sleep(0.04)
    beside.join()
    with marey.range("all-reduce", category="communication"):
        time.sleep(0.03)
    marey.finish_iteration()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("breakdown") / "run.marey"
    environment = {**os.environ, "MAREY": str(path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, timeout=100)
    return path


def test_the_parts_are_what_the_program_says(run: Path) -> None:
    b = marey.breakdown(run, window="steps")
    row = b.devices.row(window="steps")
    assert row["compute_ns"] + row["exposed_comm_ns"] + row["exposed_mem_ns"] + row["idle_ns"] == row["span_ns"]
    assert row["compute_ns"] >= 4 * 40e6
    assert row["exposed_comm_ns"] >= 4 * 30e6
    assert row["hidden_comm_ns"] >= 4 * 20e6, "what a thread sends beside the main thread is hidden"
    assert row["idle_ns"] >= 4 * 10e6, "waiting for data is not computing"
    assert b.summary["computation"]["ns"] == row["compute_ns"]
    assert b.summary["other"]["ns"] == row["idle_ns"]
    assert sum(part["share"] or 0 for part in b.summary.values()) == pytest.approx(1)


def test_it_prints_as_the_command_does_and_gives_its_json(run: Path) -> None:
    b = marey.breakdown([run], by="step")
    assert str(b).startswith("computation ")
    answer = json.loads(b.to_json())
    assert next(iter(answer)) == "summary"
    assert answer["summary"]["computation"]["ns"] == b.summary["computation"]["ns"]
    assert b.by is not None
    assert b.by["step"] == [0, 1, 2, 3] == [row["step"] for row in answer["by"]]
    assert sum(b.by["span_ns"]) == b.devices.row(window="steps")["span_ns"]


def test_ranges_have_their_own_rows(run: Path) -> None:
    b = marey.breakdown(run, by="range")
    assert b.by is not None
    forward, exchange = b.by.row(range="forward"), b.by.row(range="all-reduce")
    assert forward["compute_ns"] == forward["span_ns"]
    assert exchange["exposed_comm_ns"] == exchange["span_ns"]


def test_rules_of_ones_own_come_first(run: Path, tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text("# waiting for data is a copy here\nmine  copy  range  load\n")
    b = marey.breakdown(run, rules=rules)
    caught = b.rules.row(rule="mine")
    assert (caught["class"], caught["count"]) == ("copy", 4)
    assert b.devices["mem_total_ns"][0] == caught["ns"]


def test_mistakes_are_exceptions(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not 'colour'"):
        marey.breakdown(run, by="colour")
    with pytest.raises(ValueError, match=r"gpu_span\|steps, not 'moon'"):
        marey.breakdown(run, window="moon")
    with pytest.raises(marey.MareyError, match=r"missing\.marey"):
        marey.breakdown(tmp_path / "missing.marey")
    bad = tmp_path / "bad.rules"
    bad.write_text("\n\nmine  copied  range  load\n")
    with pytest.raises(marey.MareyError, match="line 3"):
        marey.breakdown(run, rules=bad)
    with pytest.raises(KeyError, match="no table 'x'"):
        marey.breakdown(run).table("x")


def test_traces_are_taken_as_they_are() -> None:
    traces = Path(__file__).parent.parent / "data" / "kineto"
    b = marey.breakdown([traces / "sampled_rank-0.json.gz", traces / "sampled_rank-1.json.gz"], window="steps")
    assert sorted(zip(b.devices["rank"], b.devices["window"])) == [
        (rank, window) for rank in (0, 1) for window in ("gpu_span", "steps")
    ]
    assert b.summary["communication"]["ns"] == sum(
        row["exposed_comm_ns"] for row in b.devices if row["window"] == "steps"
    )
    assert b.rules.row(rule="nccl")["count"] == 20
